"""Kernels written with Numba, imported only to compile them; see ``compiling``."""
