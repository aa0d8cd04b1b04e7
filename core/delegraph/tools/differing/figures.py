"""Metrics of the difference of two arrays, also of the real numbers of quantized integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

QUANTILE = 0.999
"""Share of the elements whose differences are at most ``Metrics.p999``."""


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
class ArrayMetrics:
    """Metrics of two arrays, and other facts that need one pass over their elements.

    Attributes:
        metrics: the metrics.
        unequal: number of elements that are not equal; NaN equals NaN here.
        is_finite: whether neither array has NaN or infinities.
        unit: ``"ulp"`` for floats, ``"step"`` for integers; empty for other types, and if units are
            not counted.
        max_units, mean_units: the greatest and the mean difference in that unit; None if there is
            no unit.
        histogram: number of differences from ``2 ** exponent`` up to twice that, by exponent;
            infinite differences have the exponent 1024.
        sums: exact sums of 8-bit integers, for :meth:`dequantised`; None for other types.
    """

    metrics: Metrics
    unequal: int
    is_finite: bool
    unit: str = ""
    max_units: float | None = None
    mean_units: float | None = None
    histogram: Mapping[int, int] = field(default_factory=dict)
    sums: ByteSums | None = None

    def dequantised(self, scale: float, zero_point: float) -> ArrayMetrics:
        """Return the metrics of the real numbers ``scale * (q - zero_point)``.

        ``sums`` must not be None.
        """
        assert self.sums is not None
        raw = self.metrics
        size = abs(scale)
        metrics = Metrics(
            size * raw.mean,
            size * raw.max,
            raw.index,
            scale * (raw.found - zero_point),
            scale * (raw.expected - zero_point),
            size * raw.p999,
            *cosine_and_snr(*self.sums.energies(zero_point)),
        )
        return ArrayMetrics(metrics, self.unequal, True)


@dataclass(frozen=True, slots=True)
class ByteSums:
    """Sums over the elements of two arrays of 8-bit integers, which float64 holds exactly.

    Attributes:
        count: number of elements.
        test, reference: sums of the elements.
        squares: sums of the squares of test, reference and differences, and the dot product.
    """

    count: int
    test: float
    reference: float
    squares: tuple[float, float, float, float]

    def energies(self, zero_point: float) -> tuple[float, float, float, float]:
        """Return the energies of the two arrays' elements, each minus *zero_point*.

        They are the sums of squares of test, reference and differences, and the dot product of test
        and reference.
        """
        a, b, noise, dot = self.squares
        both = self.count * zero_point**2
        return (
            a - 2 * zero_point * self.test + both,
            b - 2 * zero_point * self.reference + both,
            noise,
            dot - zero_point * (self.test + self.reference) + both,
        )


def cosine_and_snr(test: float, reference: float, noise: float, dot: float) -> tuple[float, float]:
    """Return cosine and SNR from the energies of test, reference and noise, and the dot product."""
    cosine = float(test == reference)
    if test and reference:
        cosine = dot / math.sqrt(test) / math.sqrt(reference)
    if not noise:
        return cosine, math.inf
    return cosine, 10 * math.log10(reference / noise) if reference else -math.inf
