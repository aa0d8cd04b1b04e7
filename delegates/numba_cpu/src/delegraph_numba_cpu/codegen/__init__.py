"""Pieces of LLVM IR that kernels are written with, and how Numba makes native code of them.

Modules named after a family, such as ``conv_int8_amx``, have the micro-kernels of that family;
``vector_ir``, ``lanes``, ``registers`` and ``intrinsics`` serve all. ``cpu_levels``,
``host_platform``, ``object_code`` and ``numba_runtime_symbols`` import no compiler, as they are
used at run time.
"""
