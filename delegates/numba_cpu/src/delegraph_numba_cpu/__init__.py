"""A delegate for the CPU whose kernels are written in Python and compiled by Numba."""
