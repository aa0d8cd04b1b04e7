"""Where an SVDF node keeps its tensors."""

from __future__ import annotations

from enum import IntEnum


class SvdfInput(IntEnum):
    """Inputs of SVDF. Source: tflite/kernels/svdf.cc."""

    INPUT = 0
    WEIGHTS_FEATURE = 1
    WEIGHTS_TIME = 2
    BIAS = 3
    STATE = 4
