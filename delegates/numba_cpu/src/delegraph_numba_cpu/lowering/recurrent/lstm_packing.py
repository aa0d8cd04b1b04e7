"""Packs weights of recurrent layers into strips of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_numba_cpu.instructions.memory import padded

STRIP = 64
"""Number of columns of a strip."""

BLOCK = 16
"""Number that divides the number of columns of a gate."""

DEPTH = 8
"""Number that divides the number of rows of a strip."""


def byte_strips(weights: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return *weights*, ``[O, K]``, as ``[O / 64, K / 4, 64, 4]``.

    Zeros are first added, so that O is a multiple of 64, and K one of :data:`DEPTH`.
    """
    outputs, depth = weights.shape
    size = padded(outputs, STRIP), padded(depth, DEPTH)
    whole = np.zeros(size, np.int8)
    whole[:outputs, :depth] = weights
    strips = whole.reshape(-1, STRIP, size[1] // 4, 4).swapaxes(1, 2)
    return np.ascontiguousarray(strips)


def float_strips(weights: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Return *weights*, ``[O, K]``, as ``[O / width, K, width]``: outputs in strips of *width*.

    O is first padded with zeros to a multiple of :data:`STRIP`, which *width* must divide.
    """
    missing = padded(len(weights), STRIP) - len(weights)
    whole = np.pad(weights, [(0, missing), (0, 0)])
    return np.ascontiguousarray(whole.reshape(-1, width, whole.shape[1]).swapaxes(1, 2))


def strip_row(values: NDArray[Any]) -> NDArray[Any]:
    """Return *values*, ``[O]``, padded with zeros to whole strips."""
    return np.pad(values, (0, padded(len(values), STRIP) - len(values)))


def stacked_gates(gates: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the gates in one array, each padded with zeros to a multiple of :data:`BLOCK` rows."""
    missing = padded(len(gates[0]), BLOCK) - len(gates[0])
    rest = [(0, 0)] * (gates[0].ndim - 1)
    return np.concatenate([np.pad(gate, [(0, missing), *rest]) for gate in gates])
