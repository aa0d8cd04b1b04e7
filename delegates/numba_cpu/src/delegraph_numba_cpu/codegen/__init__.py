"""Parts of LLVM IR for kernels, and their compilation to native code by Numba.

A *micro-kernel* computes one register tile; kernels call it in loops. An *intrinsic* is a function
that kernels call and that appends LLVM IR where it is called. Modules named after a family, such as
``conv_int8_amx``, hold the micro-kernels of that family. ``vector_ir``, ``lanes``, ``registers``
and ``intrinsics`` serve all families. ``cpu_levels``, ``host_platform``, ``object_code`` and
``numba_runtime_symbols`` import no compiler, as they are used at run time.
"""
