"""The block of ``kernels/arg_min_max.py``."""

from delegraph_numba_cpu.instructions import Instruction

ARG = Instruction("arg", "arg_min_max", "source target outer length inner kind smallest wide tiles")
"""Position of the first largest (or smallest) element along the middle axis of ``[outer, length,
inner]``: int32, or int64 when ``wide``."""

ARG_KINDS = {"FLOAT32": 0, "INT8": 1, "UINT8": 2, "INT32": 3}
