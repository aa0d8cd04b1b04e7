"""Positions of the inputs of an SVDF node."""

from __future__ import annotations

from enum import IntEnum


class SvdfInput(IntEnum):
    """Position of each input of an SVDF node.

    Source: tflite/kernels/svdf.cc.
    """

    INPUT = 0
    WEIGHTS_FEATURE = 1
    WEIGHTS_TIME = 2
    BIAS = 3
    STATE = 4
