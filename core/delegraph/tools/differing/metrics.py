"""Metrics of the difference between an array and its reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import has_nan
from delegraph.json_records import JsonRecord

Details = Mapping[str, Any]
"""An entry of ``Interpreter.get_tensor_details()``."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Differences of the elements of two arrays, test minus reference.

    An element that is NaN in both arrays, or the same infinity, differs by 0. An element that is
    NaN or infinite in one array only differs by infinity. No element is replaced or left out.

    Source:
        ``mean`` is the metric of ``inference_diff``: ``InferenceProfilerStage::Run``,
        tflite/tools/evaluation/stages/inference_profiler_stage.cc, which sums in float32; here it
        is float64.

    Attributes:
        mean: mean of the absolute differences.
        max: the greatest absolute difference.
        index: index of the first element with the greatest difference.
        found, expected: value of this element in the test and in the reference.
        p999: the absolute difference that 99.9 % of the elements do not exceed; it is the
            difference of some element.
        cosine: cosine similarity, from -1 to 1. It is 1 if both arrays are all zero, 0 if one is,
            and NaN if there are NaN or infinities.
        snr_db: energy of the reference divided by that of the differences, in decibels. It is
            infinite if all elements are equal, and NaN if there are NaN or infinities.
    """

    mean: float
    max: float
    index: tuple[int, ...]
    found: float
    expected: float
    p999: float
    cosine: float
    snr_db: float


@dataclass(frozen=True, slots=True)
class TensorDifference(JsonRecord):
    """Metrics of the difference between two arrays.

    Attributes:
        count: number of elements.
        unequal: number of elements that are not equal; NaN equals NaN here.
        raw: metrics of the stored values; None if they cannot be compared.
        real: metrics of the real numbers of quantised integers; None if neither array is quantised.
        unit: what ``max_units`` counts: ``"ulp"`` for floats (how many floats lie between),
            ``"step"`` for integers; empty for other types.
        max_units, mean_units: the greatest and the mean difference in that unit; None without one.
        nan: number of NaN in the test's array and in the reference's.
        infinite: number of infinities in the test's array and in the reference's.
        remark: why the stored values cannot be compared: other shapes, types or quantization; empty
            if they can.
    """

    count: int = 0
    unequal: int = 0
    raw: Metrics | None = None
    real: Metrics | None = None
    unit: str = ""
    max_units: float | None = None
    mean_units: float | None = None
    nan: tuple[int, int] = (0, 0)
    infinite: tuple[int, int] = (0, 0)
    remark: str = ""

    @property
    def compared(self) -> Metrics | None:
        """Metrics of the stored values, or of the real values if stored ones mean different things.

        It is None if nothing can be compared.
        """
        return self.real if self.raw is None else self.raw

    @property
    def signal(self) -> Metrics | None:
        """Metrics for SNR and cosine: of the real values, in which 0 is zero.

        A quantised tensor stores zero as its zero point, which would count as a part of the signal.
        """
        return self.raw if self.real is None else self.real


def tensor_difference(
    test: NDArray[Any],
    reference: NDArray[Any],
    test_details: Details,
    reference_details: Details,
) -> TensorDifference:
    """Return the metrics of the difference between *test* and *reference*.

    Args:
        test: values of a tensor, of any type.
        reference: the right values.
        test_details: details of the tested tensor, for its quantization.
        reference_details: details of the reference tensor.
    """
    test, reference = np.asarray(test), np.asarray(reference)
    nan, infinite = (_counted(test, reference, f) for f in (np.isnan, np.isinf))
    remark = _obstacle(test, reference, test_details, reference_details)
    if test.shape != reference.shape:
        return TensorDifference(nan=nan, infinite=infinite, remark=remark)
    raw = None if remark else absolute_differences(test, reference)
    a, b = real_values(test, test_details), real_values(reference, reference_details)
    is_quantized = _is_quantized(test, test_details) or _is_quantized(reference, reference_details)
    real = None
    if (is_quantized or raw is None) and a is not None and b is not None:
        real = absolute_differences(a, b)
    compared = real if raw is None else raw
    unit, units = ("", None) if remark else _units(test, reference)
    return TensorDifference(
        test.size,
        test.size if compared is None else int(np.count_nonzero(compared)),
        None if raw is None else _metrics(test, reference, raw),
        None if real is None or a is None or b is None else _metrics(a, b, real),
        unit,
        None if units is None else float(units.max(initial=0)),
        None if units is None else float(units.mean()) if units.size else 0.0,
        nan,
        infinite,
        remark,
    )


def _obstacle(
    test: NDArray[Any], reference: NDArray[Any], test_details: Details, reference_details: Details
) -> str:
    """Return the reason why stored values cannot be compared; empty if they can."""
    if test.shape != reference.shape:
        return f"shapes differ: {list(test.shape)}, reference {list(reference.shape)}"
    if test.dtype != reference.dtype:
        return f"types differ: {test.dtype.name}, reference {reference.dtype.name}"
    if not _same_quantization(test_details, reference_details):
        return "quantization differs"
    return ""


def absolute_differences(test: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``|test - reference|`` for two arrays of the same shape and type.

    Zero means equal, also for 64-bit integers. NaN equals NaN, and an infinity equals the same
    infinity; their difference from a number is infinite. Strings and bools differ by 0 or 1.

    >>> absolute_differences(np.array([1, -3]), np.array([1, 4])).tolist()
    [0.0, 7.0]
    >>> absolute_differences(np.array([np.nan, np.nan]), np.array([np.nan, 0])).tolist()
    [0.0, inf]
    """
    if test.dtype.kind in "iu":
        return _integer_distance(test, reference).astype(np.float64)
    if not has_nan(test.dtype):
        return np.asarray(test != reference, np.float64)
    a, b = _wide(test), _wide(reference)
    with np.errstate(all="ignore"):
        size = np.asarray(np.abs(a - b), np.float64)
    size[~(np.isfinite(a) & np.isfinite(b))] = np.inf
    size[(np.isnan(a) & np.isnan(b)) | (a == b)] = 0.0
    return size


def _integer_distance(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.uint64]:
    """Return ``|a - b|`` as uint64, exact for all 64-bit integers."""
    wide = np.uint64 if a.dtype.kind == "u" else np.int64
    low, high = (f(a, b).astype(wide).view(np.uint64) for f in (np.minimum, np.maximum))
    return np.asarray(high - low)  # unsigned numbers wrap to the right distance


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _metrics(test: NDArray[Any], reference: NDArray[Any], size: NDArray[np.float64]) -> Metrics:
    """Return the metrics of two arrays whose absolute differences are known."""
    if not size.size:
        return Metrics(0.0, 0.0, (), 0.0, 0.0, 0.0, 1.0, np.inf)
    where = int(size.argmax())
    is_text = test.dtype.kind in "OSU"
    a, b = (_wide(v.reshape(-1)) if not is_text else np.zeros(v.size) for v in (test, reference))
    cosine, snr = (np.nan, np.nan) if is_text else (_cosine(a, b), _snr_db(size, b))
    return Metrics(
        float(size.mean()),
        float(size.reshape(-1)[where]),
        tuple(int(i) for i in np.unravel_index(where, size.shape)),
        np.nan if is_text else float(np.abs(a[where]) if a.dtype.kind == "c" else a[where]),
        np.nan if is_text else float(np.abs(b[where]) if b.dtype.kind == "c" else b[where]),
        _quantile(size, 0.999),
        cosine,
        snr,
    )


def _quantile(size: NDArray[np.float64], share: float) -> float:
    """Return the element at the quantile *share*, by NumPy's method ``higher``."""
    place = math.ceil(share * (size.size - 1))
    return float(np.partition(size.reshape(-1), place)[place])


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("nan")
    (x, _), (y, _) = _scaled(a), _scaled(b)
    lengths = np.sqrt(np.vdot(x, x).real), np.sqrt(np.vdot(y, y).real)
    if not all(lengths):
        return float(lengths[0] == lengths[1])
    return float(np.vdot(y, x).real / lengths[0] / lengths[1])


def _snr_db(size: NDArray[np.float64], reference: NDArray[Any]) -> float:
    """Return ``10 log10(sum of reference squared / sum of differences squared)``."""
    if not (np.isfinite(size).all() and np.isfinite(reference).all()):
        return float("nan")
    (x, signal), (y, noise) = _scaled(reference), _scaled(size.reshape(-1))
    energies = np.vdot(x, x).real, np.vdot(y, y).real
    if not energies[1]:
        return float("inf")
    if not energies[0]:
        return float("-inf")
    decades = np.log10(energies[0]) - np.log10(energies[1])
    return float(10 * decades + 20 * (np.log10(signal) - np.log10(noise)))


def _scaled(values: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Return *values* divided by a factor, and the factor.

    The factor is 1.0, or the largest magnitude if squares would overflow or become zero.
    """
    top = float(np.abs(values).max())
    if top == 0 or 1e-100 < top < 1e100:
        return values, 1.0
    return values / top, top


def _units(a: NDArray[Any], b: NDArray[Any]) -> tuple[str, NDArray[np.float64] | None]:
    """Return the name of the unit (step or ulp), and the differences in that unit."""
    if a.dtype.kind in "iu":
        return "step", _integer_distance(a, b).astype(np.float64)
    if a.dtype.kind == "c":
        parts = [_units(f(a), f(b))[1] for f in (np.real, np.imag)]
        return "ulp", np.maximum(*parts)  # type: ignore[arg-type]  # parts of floats have units
    if not has_nan(a.dtype):
        return "", None
    ulps = _integer_distance(_ordinals(a), _ordinals(b)).astype(np.float64)
    x, y = _wide(a), _wide(b)
    ulps[~(np.isfinite(x) & np.isfinite(y))] = np.inf
    ulps[(np.isnan(x) & np.isnan(y)) | (x == y)] = 0.0
    return "ulp", ulps


def _ordinals(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the ordinal number of each float: neighbours differ by 1, both zeros are 0."""
    kind = np.dtype(f"i{values.dtype.itemsize}")
    bits = np.ascontiguousarray(values).view(kind).astype(np.int64)
    lowest = int(np.iinfo(kind).min)
    return np.where(bits < 0, lowest - bits, bits)


def real_values(values: NDArray[Any], details: Details) -> NDArray[np.float64] | None:
    """Return the real numbers of a tensor's values, in float64; None if the values are no numbers.

    Quantised integers become ``scale * (q - zero_point)``, by channel if there are several scales.
    Floats, and integers without a scale, stay unchanged.
    """
    if values.dtype.kind in "OSUbc":
        return None
    if not _is_quantized(values, details):
        return values.astype(np.float64)
    parameters = details["quantization_parameters"]
    scales = np.asarray(parameters["scales"], np.float64)
    zero_points = np.asarray(parameters["zero_points"], np.float64)
    shape = [1] * values.ndim
    if scales.size > 1:
        shape[int(parameters["quantized_dimension"])] = scales.size
    zero_points = zero_points if zero_points.size else np.zeros(1)
    zero_points = np.broadcast_to(zero_points, scales.shape)
    with np.errstate(all="ignore"):
        return np.asarray(
            (values.astype(np.float64) - zero_points.reshape(shape)) * scales.reshape(shape)
        ).reshape(values.shape)


def _is_quantized(values: NDArray[Any], details: Details) -> bool:
    parameters = details.get("quantization_parameters") or {}
    scales = np.asarray(parameters.get("scales", ()))
    if values.dtype.kind not in "iu" or not scales.size or parameters.get("block_size", 0):
        return False
    axis = int(parameters["quantized_dimension"])
    return scales.size == 1 or (axis < values.ndim and values.shape[axis] == scales.size)


def _same_quantization(a: Details, b: Details) -> bool:
    one, other = (d.get("quantization_parameters") or {} for d in (a, b))
    return all(
        np.array_equal(one.get(name, ()), other.get(name, ())) for name in ("scales", "zero_points")
    )


def _counted(
    test: NDArray[Any], reference: NDArray[Any], of: Callable[[NDArray[Any]], Any]
) -> tuple[int, int]:
    found = [np.count_nonzero(of(_wide(v))) if has_nan(v.dtype) else 0 for v in (test, reference)]
    return int(found[0]), int(found[1])


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, deviation, minimum and maximum of one metric over several runs.

    Attributes:
        avg: mean.
        std: standard deviation of the population, as ``inference_diff`` has it.
        min, max: the least and the greatest value.
    """

    avg: float
    std: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Compute the spread of at least one value."""
        array = np.asarray(values, np.float64)
        with np.errstate(all="ignore"):  # the deviation of infinities is NaN
            return cls(*(float(f(array)) for f in (np.mean, np.std, np.min, np.max)))


_NUMBERS = tuple(f.name for f in fields(Metrics) if f.name not in ("index", "found", "expected"))


def spreads(metrics: Sequence[Metrics]) -> dict[str, Spread]:
    """Return a mapping from each metric's name to its spread over several runs."""
    return {name: Spread.of([getattr(m, name) for m in metrics]) for name in _NUMBERS}
