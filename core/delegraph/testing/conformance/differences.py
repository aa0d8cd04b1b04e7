"""Differences between the results of a delegate and those of Delegraph's kernels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.partition_tolerance import ComputedNode, partition_tolerances
from delegraph.delegation.tolerance import Tolerance
from delegraph.schema.enums import TensorType
from delegraph.testing.conformance.trials import Outputs, Trial

Array = NDArray[Any]


def difference(got: Outputs, trial: Trial, capabilities: Capabilities) -> str:
    """Return how the outputs *got* differ from the right outputs of *trial*; empty if tolerated.

    The tolerance is that of *capabilities*.
    """
    allowed = (
        [None] * len(trial.outputs)
        if trial.case.is_random
        else allowed_of(trial.computed, trial.outputs, trial.output_types, capabilities)
    )
    for step, (mine, right) in enumerate(zip(got, trial.expected, strict=True)):
        for i, type in enumerate(trial.output_types):
            found = array_difference(mine[i], right[i], type, allowed[i])
            if found:
                return f"output {i}" + f" of invoke {step + 1}" * (step > 0) + f": {found}"
    return ""


def allowed_of(
    computed: Iterable[ComputedNode],
    outputs: Iterable[int],
    types: Iterable[TensorType],
    capabilities: Capabilities,
) -> list[Tolerance | None]:
    """Return the tolerance of each graph output; None if only its shape can be compared.

    The tolerance is the error that the delegate may make.
    """
    found = partition_tolerances(computed, capabilities)
    return [
        found.get(i, capabilities.tolerance_of(type))
        for i, type in zip(outputs, types, strict=True)
    ]


def array_difference(
    got: Array, right: Array, type: TensorType, tolerance: Tolerance | None
) -> str:
    """Text about a difference beyond the tolerance; empty if there is none.

    If *tolerance* is None, only shapes are compared.
    """
    if got.shape != right.shape:
        return f"shape {list(got.shape)}, expected {list(right.shape)}"
    if tolerance is None:
        return ""
    wrong = tolerance.compare(got, right) > 0
    if not wrong.any():
        return ""
    place = tuple(map(int, np.unravel_index(np.flatnonzero(wrong)[0], got.shape)))
    return (
        f"{int(wrong.sum())} of {got.size} {type.name} values differ, first at {list(place)}: "
        f"{got[place]} instead of {right[place]} (allowed: {_described(tolerance, got.dtype)})"
    )


def is_same(first: Iterable[Array], second: Iterable[Array]) -> bool:
    """Whether all arrays have equal shapes and bytes, or equal texts."""
    return all(
        a.shape == b.shape and _raw(a) == _raw(b) for a, b in zip(first, second, strict=True)
    )


def _raw(array: Array) -> object:
    return array.tolist() if array.dtype.hasobject else array.tobytes()


def _described(tolerance: Tolerance, dtype: np.dtype[Any]) -> str:
    if dtype.kind in "OSU":
        return "equal text"
    if tolerance == Tolerance():
        return "no difference"
    return str(tolerance)
