"""The instruction of ``kernels/arg_min_max.py``."""

from delegraph_numba_cpu.instructions import Instruction

ARG = Instruction("arg", "arg_min_max", "source target outer length inner kind smallest wide tiles")
"""Position of the first largest or smallest element along axis 1 of ``[outer, length, inner]``.

It is int32, or int64 if ``wide`` is not 0.
"""

ARG_KINDS = {"FLOAT32": 0, "INT8": 1, "UINT8": 2, "INT32": 3}
