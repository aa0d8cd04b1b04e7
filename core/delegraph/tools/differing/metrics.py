"""Metrics of the difference between an array and its reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import has_nan
from delegraph.json_records import JsonRecord
from delegraph.tools.differing.array_metrics import array_metrics, metrics_of_equal, wide
from delegraph.tools.differing.figures import ArrayMetrics, Metrics
from delegraph.tools.differing.main_figures import main_figures

Details = Mapping[str, Any]
"""An entry of ``Interpreter.get_tensor_details()``."""

Figures = Literal["all", "main"]
"""Metrics to compute: all; or ``main``: for float32 tensors, those of ``main_figures`` only."""


@dataclass(frozen=True, slots=True)
class TensorDifference(JsonRecord):
    """Metrics of the difference between two arrays.

    Attributes:
        count: number of elements.
        unequal: number of elements that are not equal; NaN equals NaN here.
        raw: metrics of the stored values; None if they cannot be compared.
        real: metrics of the real numbers of quantised integers; None if neither array is quantised.
        unit: unit of ``max_units``: ``"ulp"`` for floats (number of floats between both values),
            ``"step"`` for integers; empty for other types.
        max_units, mean_units: the greatest and the mean difference in that unit; None if there is
            no unit.
        nan: number of NaN in the test's array and in the reference's.
        infinite: number of infinities in the test's array and in the reference's.
        remark: text that says why stored values cannot be compared: shapes, types or quantization
            differ; empty if they can.
        histogram: number of differences of ``compared`` by exponent, as in ``ArrayMetrics``.
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
    histogram: Mapping[int, int] = field(default_factory=dict, metadata={"json_key": None})

    @property
    def compared(self) -> Metrics | None:
        """Metrics of the stored values, or of the real values if types or quantization differ.

        It is None if nothing can be compared.
        """
        return self.real if self.raw is None else self.raw

    @property
    def are_equal(self) -> bool:
        """Whether all stored values can be compared and are equal."""
        return self.raw is not None and self.unequal == 0

    @property
    def signal(self) -> Metrics | None:
        """Metrics for SNR and cosine: those of the real values, whose zero is 0.

        The result is None if nothing was measured.

        A quantised tensor stores zero as its zero point, which would count as a part of the signal.
        """
        return self.raw if self.real is None else self.real


def tensor_difference(
    test: NDArray[Any],
    reference: NDArray[Any],
    test_details: Details,
    reference_details: Details,
    figures: Figures = "all",
) -> TensorDifference:
    """Return the metrics of the difference between *test* and *reference*.

    Args:
        test: values of a tensor, of any type.
        reference: the right values.
        test_details: details of the tested tensor, for its quantization.
        reference_details: details of the reference tensor.
        figures: the metrics to compute; others are NaN, None or empty.
    """
    test, reference = np.asarray(test), np.asarray(reference)
    remark = _obstacle(test, reference, test_details, reference_details)
    if test.shape != reference.shape:
        nan, infinite = (_counted(test, reference, f) for f in (np.isnan, np.isinf))
        return TensorDifference(nan=nan, infinite=infinite, remark=remark)
    raw = None if remark or figures == "all" else main_figures(test, reference)
    if raw is None and not remark:
        raw = array_metrics(test, reference, counts_units=True)
    real = None
    is_quantized = _is_quantized(test, test_details) or _is_quantized(reference, reference_details)
    if is_quantized and raw is not None and test.size and not raw.unequal:
        real = _real_of_same(test, test_details)
    elif is_quantized and raw is not None and raw.sums is not None:
        real = _real_of_bytes(raw, test_details)
    if real is None and (is_quantized or raw is None):
        a, b = real_values(test, test_details), real_values(reference, reference_details)
        real = None if a is None or b is None else array_metrics(a, b)
    compared = real if raw is None else raw
    is_finite = compared is not None and compared.is_finite
    nan, infinite = (
        (0, 0) if is_finite else _counted(test, reference, f) for f in (np.isnan, np.isinf)
    )
    return TensorDifference(
        test.size,
        test.size if compared is None else compared.unequal,
        None if raw is None else raw.metrics,
        None if real is None else real.metrics,
        "" if raw is None else raw.unit,
        None if raw is None else raw.max_units,
        None if raw is None else raw.mean_units,
        nan,
        infinite,
        remark,
        {} if compared is None else compared.histogram,
    )


def _obstacle(
    test: NDArray[Any], reference: NDArray[Any], test_details: Details, reference_details: Details
) -> str:
    """Return why *test* and *reference* cannot be compared as stored values; empty if they can."""
    if test.shape != reference.shape:
        return f"shapes differ: {list(test.shape)}, reference {list(reference.shape)}"
    if test.dtype != reference.dtype:
        return f"types differ: {test.dtype.name}, reference {reference.dtype.name}"
    if not _same_quantization(test_details, reference_details):
        return "quantization differs"
    return ""


def real_values(values: NDArray[Any], details: Details) -> NDArray[np.float64] | None:
    """Return *values* of the tensor *details* as real numbers, in float64; None if not numeric.

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


def _real_of_same(values: NDArray[Any], details: Details) -> ArrayMetrics | None:
    """Metrics of the real values of equally quantised tensors; None if some are not finite.

    Args:
        values: the stored values.
        details: details of the tensor.
    """
    axis = int(details["quantization_parameters"]["quantized_dimension"])
    firsts = tuple(slice(None) if i == axis else slice(1) for i in range(values.ndim))
    real = real_values(values[firsts], details)  # one of each channel
    if real is None or not np.isfinite(real).all():
        return None
    return ArrayMetrics(metrics_of_equal(float(real.flat[0]), values.ndim), 0, True)


def _real_of_bytes(raw: ArrayMetrics, details: Details) -> ArrayMetrics | None:
    """Metrics of the real values of 8-bit integers with one scale; None if there are several."""
    parameters = details["quantization_parameters"]
    scales, zero_points = (np.ravel(parameters[name]) for name in ("scales", "zero_points"))
    if scales.size != 1 or zero_points.size > 1 or not np.isfinite(scales[0]):
        return None
    zero_point = float(zero_points[0]) if zero_points.size else 0.0
    return raw.dequantised(float(scales[0]), zero_point)


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
    found = [np.count_nonzero(of(wide(v))) if has_nan(v.dtype) else 0 for v in (test, reference)]
    return int(found[0]), int(found[1])


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, deviation, minimum and maximum of one metric over several runs.

    Attributes:
        avg: mean.
        std: standard deviation of the population, as ``inference_diff`` has it.
        min, max: the smallest and the greatest value.
    """

    avg: float
    std: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Compute the spread of at least one value."""
        if len(values) == 1:  # a tenth of NumPy's time; the deviation of an infinity is NaN
            return cls(values[0], values[0] - values[0], values[0], values[0])
        array = np.asarray(values, np.float64)
        with np.errstate(all="ignore"):  # the deviation of infinities is NaN
            return cls(*(float(f(array)) for f in (np.mean, np.std, np.min, np.max)))


_NUMBERS = tuple(f.name for f in fields(Metrics) if f.name not in ("index", "found", "expected"))


def spreads(metrics: Sequence[Metrics]) -> dict[str, Spread]:
    """Return a mapping from each metric's name to its spread over several runs."""
    return {name: Spread.of([getattr(m, name) for m in metrics]) for name in _NUMBERS}
