"""Kernels of StableHLO operators."""
