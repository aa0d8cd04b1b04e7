"""Kernels of operators that compute each element separately."""
