"""Matches tensors of two models, and converts values from one tensor's type to another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.dtypes import has_nan
from delegraph.tools.differing.metrics import Details, real_values
from delegraph.tools.model_call import declared_shape, input_name
from delegraph.tools.tensor_names import called_name


def matched(
    test: Sequence[Details], reference: Sequence[Details]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Return pairs of matching positions, and the unmatched positions of each side.

    Tensors are paired by position if all their names in the models or signatures are equal, or
    none is. Otherwise they are paired by the names that each side has exactly once.

    >>> named = lambda *names: [{"name": name} for name in names]
    >>> matched(named("a", "b"), named("b", "a"))
    ([(0, 1), (1, 0)], [], [])
    >>> matched(named("a", "b"), named("x"))
    ([(0, 0)], [1], [])
    """
    pairs = sorted(matched_names(test, reference).items())
    names, others = ([called_name(e) for e in details] for details in (test, reference))
    if not pairs or names == others:
        pairs = [(i, i) for i in range(min(len(test), len(reference)))]
    paired, paired_too = {i for i, _ in pairs}, {j for _, j in pairs}
    return (
        pairs,
        [i for i in range(len(test)) if i not in paired],
        [j for j in range(len(reference)) if j not in paired_too],
    )


def matched_names(test: Sequence[Details], reference: Sequence[Details]) -> dict[int, int]:
    """Return, for each position in *test*, the reference position with the same unique name.

    >>> named = lambda *names: [{"name": name} for name in names]
    >>> matched_names(named("a", "b", "b", ""), named("", "b", "a"))
    {0: 2}
    """
    places = _unique_names(reference)
    return {i: places[name] for name, i in _unique_names(test).items() if name in places}


def _unique_names(details: Sequence[Details]) -> dict[str, int]:
    names = [called_name(entry) for entry in details]
    counts = Counter(names)
    return {name: i for i, name in enumerate(names) if name and counts[name] == 1}


def matched_inputs(test: Sequence[Details], reference: Sequence[Details]) -> list[int]:
    """Return, for each input of the reference, the position of the test's matching input.

    Inputs are matched by name if both sides have the same names, otherwise by position.

    Raises:
        ArgumentError: the numbers of inputs differ, or two inputs cannot take the same values.
    """
    if len(test) != len(reference):
        raise ArgumentError(
            f"the model has {len(test)} inputs ({_list(test)}), the reference {len(reference)} "
            f"({_list(reference)}); both must take the same"
        )
    pairs, left, _ = matched(test, reference)
    of = {j: i for i, j in pairs} if not left else {i: i for i in range(len(test))}
    for j, i in of.items():
        _require_alike(test[i], reference[j])
    return [of[j] for j in range(len(reference))]


def _list(details: Sequence[Details]) -> str:
    return ", ".join(repr(entry["name"]) for entry in details)


def _require_alike(test: Details, reference: Details) -> None:
    one, other = declared_shape(test), declared_shape(reference)
    fits = len(one) == len(other) and all(
        a == b or -1 in (a, b) for a, b in zip(one, other, strict=True)
    )
    if not fits or not _is_convertible(test, reference):
        raise ArgumentError(
            f"{input_name(test)} and the reference's {input_name(reference)} cannot take the same "
            "values: give the reference the same inputs, in shape and type"
        )


def _is_convertible(source: Details, target: Details) -> bool:
    a, b = np.dtype(source["dtype"]), np.dtype(target["dtype"])
    return a == b or all(_stands_for_numbers(d) for d in (source, target))


def _stands_for_numbers(details: Details) -> bool:
    """Whether the tensor *details* has floats, or integers with one scale for all elements."""
    dtype = np.dtype(details["dtype"])
    scales = (details.get("quantization_parameters") or {}).get("scales", ())
    return (has_nan(dtype) and dtype.kind != "c") or (dtype.kind in "iu" and len(scales) == 1)


def converted(values: NDArray[Any], source: Details, target: Details) -> NDArray[Any]:
    """Convert *values* of the tensor *source* to type and quantization of the tensor *target*.

    Raises:
        ArgumentError: one of the tensors does not hold numbers, or a NaN would have to become an
            integer.
    """
    dtype = np.dtype(target["dtype"])
    same = values.dtype == dtype and source["quantization"] == target["quantization"]
    if same or dtype.kind == "S":
        return values
    if not (_stands_for_numbers(source) and _stands_for_numbers(target)):
        if values.dtype == dtype:  # plain integers, even if the other has a scale
            return values
        raise ArgumentError(
            f"{source['name']!r} is {values.dtype.name} and {target['name']!r} {dtype.name}: one "
            "cannot be given the other's values"
        )
    real = real_values(values, source)
    assert real is not None  # _stands_for_numbers has checked it
    if has_nan(dtype):
        return real.astype(dtype)
    if np.isnan(real).any():
        raise ArgumentError(f"{source['name']!r} holds NaN, which no {dtype.name} stands for")
    scale, zero_point = target["quantization"]
    limits: Any = np.iinfo(dtype.type)
    stored = np.clip(np.round(real / scale) + zero_point, limits.min, limits.max)
    return np.asarray(stored, dtype)


def clipped(values: NDArray[Any], stored: NDArray[Any], source: Details, target: Details) -> int:
    """Return the number of *values* beyond the range of a quantized tensor.

    Args:
        values: values of the tensor *source*.
        stored: the same values, as :func:`converted` returns them for the tensor *target*.
        source: details of the tensor with *values*.
        target: details of the tensor with *stored*.
    """
    if stored is values or stored.dtype.kind not in "iu":
        return 0
    wanted, found = real_values(values, source), real_values(stored, target)
    if wanted is None or found is None:
        return 0
    return int(np.count_nonzero(np.abs(wanted - found) > abs(target["quantization"][0])))
