"""Tolerances of outputs, and the number of elements that differ by more than the tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError, did_you_mean
from delegraph.tools.differing.array_metrics import absolute_differences, pieces_of
from delegraph.tools.differing.metrics import TensorDifference, real_values
from delegraph.tools.model_call import Details
from delegraph.tools.tensor_names import called_name

Tolerances = Tolerance | Mapping[str, Tolerance]
"""A tolerance for all outputs, or a mapping from an output's name to its tolerance.

The name ``""`` is for outputs that are not named.
"""


def outside(
    difference: TensorDifference,
    test: NDArray[Any],
    reference: NDArray[Any],
    test_details: Details,
    reference_details: Details,
    tolerance: Tolerance,
) -> int:
    """Return the number of elements in which *test* differs from *reference* beyond *tolerance*.

    All elements count if *difference* says that the arrays could not be compared. Stored values are
    compared, or real numbers if types or quantization differ.
    """
    a, b = test, reference
    if difference.compared is None:
        return max(1, test.size)
    if test.dtype.kind not in "ObSU" and difference.compared.max <= tolerance.absolute:
        return 0
    if difference.raw is not None and test.dtype.kind in "iu" and not tolerance.relative:
        least = math.floor(tolerance.absolute) + 1  # smallest distance of integers beyond it
        exponent = least.bit_length() - 1
        if least == 1 << exponent:
            return sum(n for e, n in difference.histogram.items() if e >= exponent)
    if difference.raw is None:
        a = real_values(test, test_details)  # type: ignore[assignment]  # there: real is
        b = real_values(reference, reference_details)  # type: ignore[assignment]
    if tolerance.relative or test.dtype.kind in "ObSU":
        return int(np.count_nonzero(tolerance.compare(a, b) > 0))
    pieces = zip(*(pieces_of(values.reshape(-1)) for values in (a, b)), strict=True)
    far = (absolute_differences(x, y) > tolerance.absolute for x, y in pieces)
    return sum(int(np.count_nonzero(piece)) for piece in far)


def tolerance_of(tolerance: Tolerances | None, output: Details) -> Tolerance | None:
    """Return the tolerance for *output*, found by either of its names; None if it has none."""
    if tolerance is None or isinstance(tolerance, Tolerance):
        return tolerance
    names = (output["name"], called_name(output), "")
    return next((tolerance[name] for name in names if name in tolerance), None)


def require_known_outputs(tolerance: Tolerances | None, outputs: Sequence[Details]) -> None:
    """Check that every output that a tolerance names exists.

    Raises:
        ArgumentError: an output does not exist.
    """
    if tolerance is None or isinstance(tolerance, Tolerance):
        return
    names = [entry["name"] for entry in outputs]
    for name in sorted(set(tolerance) - {"", *names, *map(called_name, outputs)}):
        raise ArgumentError(
            f"a tolerance is given for {name!r}{did_you_mean(name, names)}; the outputs are "
            f"{', '.join(map(repr, names))}"
        )
