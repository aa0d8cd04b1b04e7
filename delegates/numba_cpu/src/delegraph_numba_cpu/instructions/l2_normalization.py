"""The instruction of ``kernels/l2_normalization.py``; words are those of ``softmax``."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.softmax import ROWS

L2_NORMALIZATION = Instruction("l2_normalization", "l2_normalization", ROWS)
