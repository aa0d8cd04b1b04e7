"""Compiled kernels: how they are stored, built, linked and loaded."""
