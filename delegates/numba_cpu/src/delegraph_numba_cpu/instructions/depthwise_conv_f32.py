"""Instructions of ``kernels/depthwise_conv_f32.py``; lengths are bytes, as in ``conv_f32``."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.conv_f32 import WINDOWS

DEPTHWISE = Instruction("depthwise", "depthwise_conv_f32", WINDOWS)
"""A convolution in which each output channel reads the input channel of the same number."""

REPEAT = Instruction("repeat_channels", "depthwise_conv_f32", "x y values times tiles")
"""Copy of ``values`` float32 values, each repeated ``times`` times."""
