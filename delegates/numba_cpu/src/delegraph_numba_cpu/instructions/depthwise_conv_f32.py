"""Blocks of ``kernels/depthwise_conv_f32.py``; lengths are bytes, as in ``conv_f32``."""

from delegraph_numba_cpu.instructions import Block
from delegraph_numba_cpu.instructions.conv_f32 import WINDOWS

DEPTHWISE = Block("depthwise", "depthwise_conv_f32", WINDOWS)
"""Each output channel from the input channel of the same number."""

REPEAT = Block("repeat_channels", "depthwise_conv_f32", "x y values times tiles")
"""Each of ``values`` float32 values ``times`` times."""
