"""Compiled kernels: where they are kept, how they are built, linked and loaded."""
