"""Tolerances: the largest allowed difference between two results, and their comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.dtypes import has_nan
from delegraph.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Largest allowed difference between a result and the result of Delegraph's kernels.

    A result a and the right result b must satisfy |a - b| <= absolute + relative |b|.

    Attributes:
        relative: allowed difference as a share of the right value; >= 0.
        absolute: allowed difference in units of the tensor's stored values (quantization steps for
            integers); >= 0.
    """

    relative: float = 0.0
    absolute: float = 0.0

    def __post_init__(self) -> None:
        if not (self.relative >= 0 and self.absolute >= 0):
            raise ArgumentError(f"{self!r} has a negative part")

    def __str__(self) -> str:
        is_exact = self.relative == self.absolute == 0
        return "exact" if is_exact else f"{self.relative:g} relative, {self.absolute:g} absolute"

    def compare(self, found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
        """Return by how much each element's difference exceeds the tolerance; <= 0 if allowed.

        NaN equals NaN, and infinity equals infinity of the same sign. Strings and bools are
        compared exactly.

        >>> Tolerance(absolute=1.0).compare(np.array([3, 4, 9]), np.array([3, 3, 4])).tolist()
        [0.0, 0.0, 4.0]

        Args:
            found: result of a delegate, of any type; 4-bit integers unpacked.
            expected: result of Delegraph's kernels; the same shape and type.
        """
        is_other = np.asarray(found != expected)
        if found.dtype.kind in "ObSU" or not is_other.any():
            return is_other.astype(np.float64)
        return np.where(is_other, self._excess(found, expected), 0.0)

    def _excess(self, found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
        """Return by how much each element's difference exceeds the tolerance.

        The difference is infinite if only one of both values is NaN.
        """
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            a, b = found.astype(wide), expected.astype(wide)  # garbage may be a signalling NaN
            size = np.abs(a - b)
            excess = np.asarray(size - (self.absolute + self.relative * np.abs(b)))
        if not has_nan(found.dtype):
            # Integers that are equal in float64 but differ are at least one unit apart.
            excess[size == 0] = 1.0 - self.absolute - self.relative * np.abs(b[size == 0])
            return excess
        same = (np.isnan(a) & np.isnan(b)) | (a == b)
        special = ~(np.isfinite(a) & np.isfinite(b))
        excess[special] = np.inf
        excess[same] = -np.inf
        return excess
