"""Numerics profile: differences that rounding alone may cause between right kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.tolerance import Tolerance
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.tools.differing.metrics import TensorDifference

_TYPES = {np.dtype(dtype): type_ for type_, dtype in reversed(tuple(NUMPY_DTYPES.items()))}


def rounding(
    values: NDArray[Any], details: Mapping[str, Any], test_details: Mapping[str, Any]
) -> Tolerance:
    """Return the tolerance for rounding errors of the node that computes a tensor.

    The tolerance is one step for a quantized tensor, and for floats the usual share of the largest
    value. Quantized integers beside floats may differ by their scale, which is one step.

    >>> rounding(np.float32([-50, 1]), {}, {}).absolute
    0.005

    Args:
        values: values of the reference.
        details: details of the reference's tensor.
        test_details: details of the test's tensor.
    """
    if values.dtype.kind in "iu":
        return Tolerance(absolute=1.0 if len(_scales(details)) else 0.0)
    if values.dtype not in _TYPES or not values.size or values.dtype.kind in "ObSU":
        return Tolerance()
    if len(steps := _scales(test_details)) and np.dtype(test_details["dtype"]).kind in "iu":
        return Tolerance(absolute=float(max(steps)))
    largest = _largest(values)
    return Tolerance(absolute=Capabilities().tolerance_of(_TYPES[values.dtype]).relative * largest)


def in_compared_numbers(
    tolerance: Tolerance, difference: TensorDifference, details: Mapping[str, Any]
) -> Tolerance:
    """Return *tolerance* in the numbers that *difference* compares: stored values, or real ones.

    Args:
        tolerance: tolerance of stored values.
        difference: difference of the tensor from its reference.
        details: details of the reference.
    """
    scales = _scales(details)
    if difference.raw is not None or not len(scales):
        return tolerance
    return Tolerance(absolute=tolerance.absolute * float(max(scales)), relative=tolerance.relative)


def _largest(values: NDArray[Any]) -> float:
    """Return the largest finite magnitude among *values*; 0.0 if there is none."""
    with np.errstate(all="ignore"):
        if values.dtype.kind == "f":
            largest = max(float(values.max()), -float(values.min()))
            if np.isfinite(largest):
                return largest
        sizes = np.abs(values).astype(np.float64)
    return float(sizes.max(where=np.isfinite(sizes), initial=0.0))


def _scales(details: Mapping[str, Any]) -> Sequence[float]:
    scales: Sequence[float] = details.get("quantization_parameters", {}).get("scales", ())
    return scales
