"""Metrics of two arrays of numbers, computed in pieces that fit the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import has_nan
from delegraph.tools.differing.byte_metrics import byte_metrics
from delegraph.tools.differing.figures import QUANTILE, ArrayMetrics, Metrics, cosine_and_snr

_Pair = tuple[NDArray[Any], NDArray[Any]]

PIECE = 1 << 13
"""Number of elements that are compared at a time.

Their copies as float64 fit into a cache. OpenBLAS multiplies so few elements in one thread; with
several threads, it takes hundreds of times as long while other processes use the cores.
"""

AT_ONCE = 8 * PIECE
"""Number of elements that a function without BLAS takes in one call; they fit into a cache."""

_FRACTION_BITS, _EXPONENTS, _EXPONENT_OF_ONE = 52, 2048, 1023
"""Layout of a float64: bits of its fraction, number of exponents, and the exponent of 1.0."""

_SAMPLE = 1 << 12
"""Number of sampled differences that give a lower bound for the largest differences."""


def array_metrics(
    test: NDArray[Any], reference: NDArray[Any], *, counts_units: bool = False
) -> ArrayMetrics:
    """Return the metrics of two arrays of the same shape and type.

    Args:
        test: the tested values, of any type.
        reference: the right values.
        counts_units: whether differences are counted in ULP or steps, too.
    """
    unit = _unit(test.dtype) if counts_units else ""
    if _are_finite_and_same(test, reference):
        units = (0.0, 0.0) if unit else ()
        return ArrayMetrics(
            metrics_of_equal(_number(test.flat[0]), test.ndim), 0, True, unit, *units
        )
    if test.size and test.dtype.kind in "iu" and test.dtype.itemsize == 1:
        return byte_metrics(test, reference, unit)
    sums = _Sums(test, reference, unit)
    for start in range(0, test.size, PIECE):
        sums.add(start)
    return sums.result(test.shape)


def metrics_of_equal(first: float, rank: int) -> Metrics:
    """Return the metrics of two equal arrays of *rank* dimensions, with first element *first*."""
    return Metrics(0.0, 0.0, (0,) * rank, first, first, 0.0, 1.0, np.inf)


def _are_finite_and_same(test: NDArray[Any], reference: NDArray[Any]) -> bool:
    """Whether two arrays have the same bits, and all their elements are finite numbers.

    Args:
        test: array of the tested set-up.
        reference: array of the reference.
    """
    if not (test.size and have_same_bits(test, reference)):
        return False
    kind = np.complex128 if test.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return not has_nan(test.dtype) or bool(np.isfinite(np.add.reduce(test, None, kind)))


def have_same_bits(test: NDArray[Any], reference: NDArray[Any]) -> bool:
    """Whether two dense arrays of the same shape and type have the same bits.

    Args:
        test: array of the tested set-up.
        reference: array of the reference.
    """
    is_dense = test.flags.c_contiguous and reference.flags.c_contiguous
    if not is_dense or test.dtype.kind in "OSU":
        return False
    a, b = (array.reshape(-1).view(np.uint8) for array in (test, reference))
    whole = len(a) - len(a) % 8
    if not (a[whole:] == b[whole:]).all():
        return False
    words = (array[:whole].view(np.uint64) for array in (a, b))
    pieces = zip(*(pieces_of(array) for array in words), strict=True)
    return all((one == other).all() for one, other in pieces)


def pieces_of(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield *array*, of one dimension, in pieces of :data:`AT_ONCE` elements."""
    return (array[start : start + AT_ONCE] for start in range(0, len(array), AT_ONCE))


class _Sums:
    """Sums, over the pieces of two arrays seen so far, from which metrics are computed."""

    def __init__(self, test: NDArray[Any], reference: NDArray[Any], unit: str) -> None:
        self._a, self._b = test.reshape(-1), reference.reshape(-1)
        self._sizes = np.zeros(test.size)
        self._is_text = test.dtype.kind in "OSU"
        self._unit = unit
        self._is_finite = True
        self._unequal, self._where = 0, 0
        self._total, self._most = 0.0, 0.0
        self._units, self._most_units = 0.0, 0.0
        self._exponents = np.zeros(_EXPONENTS, np.int64)
        self._energies = np.zeros(4)  # of test, reference and differences; and the dot product

    def add(self, start: int) -> None:
        """Add the piece that begins at the element *start*."""
        piece = slice(start, start + PIECE)
        a, b, size = self._a[piece], self._b[piece], self._sizes[piece]
        x, y = (size, size) if self._is_text else (wide(a), wide(b))
        energy = np.vdot(y, y).real
        if math.isfinite(energy) and (a == b).all():
            self._energies += np.array((energy, energy, 0.0, energy))
            return
        total, are_finite = _store_differences((a, b), (x, y), size)
        self._is_finite &= are_finite
        with np.errstate(all="ignore"):
            pairs = ((x, x), (size, size), (y, x))
            test, noise, dot = (np.vdot(one, other).real for one, other in pairs)
            self._energies += np.array((test, energy, noise, dot))
        self._add_differences(start, size, total)
        if self._unit == "ulp":
            ulps = _ulps((a, b), (x, y), are_finite=are_finite)
            self._units += float(ulps.sum())
            self._most_units = max(self._most_units, float(ulps.max()))

    def _add_differences(self, start: int, size: NDArray[np.float64], total: float) -> None:
        self._total += total
        exponents = np.bincount(size.view(np.int64) >> _FRACTION_BITS, minlength=_EXPONENTS)
        exponents[0] = 0  # differences that are zero or nearly zero
        self._exponents += exponents
        self._unequal += int(np.count_nonzero(size))
        where = int(size.argmax())
        if size[where] > self._most:
            self._most, self._where = float(size[where]), start + where

    def result(self, shape: tuple[int, ...]) -> ArrayMetrics:
        """Return the metrics of arrays of the given shape, whose elements were all added."""
        count = self._sizes.size
        units: tuple[float | None, float | None] = (None, None)
        mean = self._total / count if count else 0.0
        if self._unit == "step":
            units = self._most, mean
        elif self._unit:
            units = self._most_units, self._units / count if count else 0.0
        metrics = self._metrics(shape, mean)
        histogram = {
            int(e) - _EXPONENT_OF_ONE: int(self._exponents[e]) for e in self._exponents.nonzero()[0]
        }
        found = (metrics, self._unequal, self._is_finite, self._unit, *units, histogram)
        return ArrayMetrics(*found)

    def _metrics(self, shape: tuple[int, ...], mean: float) -> Metrics:
        if not self._sizes.size:
            return Metrics(0.0, 0.0, (), 0.0, 0.0, 0.0, 1.0, np.inf)
        index = tuple(int(i) for i in np.unravel_index(self._where, shape))
        found = expected = math.nan
        cosine = snr = math.nan
        if not self._is_text:
            found, expected = (_number(v[self._where]) for v in (self._a, self._b))
            cosine, snr = self._cosine_and_snr()
        p999 = _quantile(self._sizes, QUANTILE) if self._most else 0.0
        return Metrics(mean, self._most, index, found, expected, p999, cosine, snr)

    def _cosine_and_snr(self) -> tuple[float, float]:
        test, reference, noise, dot = self._energies.tolist()
        arrays = (self._a, self._b, self._sizes)
        energies = (test, reference, noise)
        # Squares may be too large or too small, and infinities have no cosine.
        if not (self._is_finite and all(map(_is_exact, energies, arrays))):
            a, b = wide(self._a), wide(self._b)
            return _cosine(a, b), _snr_db(self._sizes, b)
        return cosine_and_snr(test, reference, noise, dot)


def _is_exact(energy: float, values: NDArray[Any]) -> bool:
    """Whether *energy*, a float sum of the squares of *values*, has no large rounding error."""
    return 1e-200 < energy < 1e200 or (energy == 0 and not values.any())


def _number(value: Any) -> float:
    return float(abs(value)) if np.iscomplexobj(value) else float(value)


def _store_differences(
    pair: _Pair, wide_pair: _Pair, size: NDArray[np.float64]
) -> tuple[float, bool]:
    """Store ``|a - b|`` in *size*; return the sum of *size*, and whether all values are finite.

    The differences are those that :func:`absolute_differences` returns.

    Args:
        pair: the two arrays.
        wide_pair: both arrays, converted by :func:`wide`.
        size: array that receives the differences.
    """
    if has_nan(pair[0].dtype):
        with np.errstate(all="ignore"):
            np.abs(np.subtract(*wide_pair), size)
            total = float(size.sum())
        if math.isfinite(total):
            return total, True
    size[...] = absolute_differences(*pair)
    return float(size.sum()), not has_nan(pair[0].dtype)


def absolute_differences(test: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``|test - reference|`` for two arrays of the same shape and type.

    Zero means equal, also for 64-bit integers. NaN equals NaN, and an infinity equals the same
    infinity; their difference from a number is infinite. Strings and bools differ by 0 or 1.

    >>> absolute_differences(np.array([1, -3]), np.array([1, 4])).tolist()
    [0.0, 7.0]
    >>> absolute_differences(np.array([np.nan, np.nan]), np.array([np.nan, 0])).tolist()
    [0.0, inf]

    Args:
        test: array of the tested set-up.
        reference: array of the reference.
    """
    if test.dtype.kind in "iu":
        return _integer_distance(test, reference)
    if not has_nan(test.dtype):
        return np.asarray(test != reference, np.float64)
    a, b = wide(test), wide(reference)
    with np.errstate(all="ignore"):
        size = np.asarray(np.abs(a - b), np.float64)
    size[~(np.isfinite(a) & np.isfinite(b))] = np.inf
    size[(np.isnan(a) & np.isnan(b)) | (a == b)] = 0.0
    return size


def _integer_distance(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``|a - b|`` of integers, rounded only if float64 cannot hold the distance."""
    if a.dtype.itemsize < 8:
        return np.asarray(np.abs(np.subtract(a, b, dtype=np.float64)))
    wide = np.uint64 if a.dtype.kind == "u" else np.int64
    low, high = (f(a, b).astype(wide).view(np.uint64) for f in (np.minimum, np.maximum))
    return np.asarray(high - low, np.float64)  # unsigned numbers wrap to the right distance


def wide(values: NDArray[Any]) -> NDArray[Any]:
    """Return *values* as float64, or as complex128 if they are complex."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _quantile(size: NDArray[np.float64], share: float) -> float:
    """Return the element of *size* at the quantile *share* (NumPy's method ``higher``).

    Only elements above a bound, found from a sample, are sorted.
    """
    larger = size.size - math.ceil(share * (size.size - 1))  # elements that are at least as large
    sample = np.sort(size[:: size.size // _SAMPLE | 1])  # an odd step meets all channels
    bound = float(sample[int((1 - 3 * (1 - share)) * (sample.size - 1))])
    largest = size[size > bound]
    if largest.size < larger:
        if largest.size + np.count_nonzero(size == bound) >= larger:
            return bound
        largest = size
    place = largest.size - larger
    return float(np.partition(largest, place)[place])


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("nan")
    (x, _), (y, _) = _scaled(a), _scaled(b)
    lengths = np.sqrt(np.vdot(x, x).real), np.sqrt(np.vdot(y, y).real)
    if not all(lengths):
        return float(lengths[0] == lengths[1])
    return float(np.vdot(y, x).real / lengths[0] / lengths[1])


def _snr_db(size: NDArray[np.float64], reference: NDArray[Any]) -> float:
    """Return the signal-to-noise ratio in dB: ``10 log10(sum of reference^2 / sum of size^2)``.

    *size* holds the absolute differences.
    """
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
    """Return *values* divided by a factor that keeps their squares in range, and the factor.

    The factor is 1.0, or the largest magnitude if squares would overflow or become zero.
    """
    top = float(np.abs(values).max())
    if top == 0 or 1e-100 < top < 1e100:
        return values, 1.0
    return values / top, top


def _unit(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "iu":
        return "step"
    return "ulp" if has_nan(dtype) else ""


def _ulps(pair: _Pair, wide_pair: _Pair, *, are_finite: bool) -> NDArray[np.float64]:
    """Return the number of floats between corresponding elements of two arrays.

    Args:
        pair: two arrays of floats, or of complex numbers.
        wide_pair: both arrays, converted by :func:`wide`.
        are_finite: whether all elements are known to be finite.
    """
    (a, b), (x, y) = pair, wide_pair
    if a.dtype.kind == "c":
        parts = [
            _ulps((f(a), f(b)), (f(x), f(y)), are_finite=are_finite) for f in (np.real, np.imag)
        ]
        return np.asarray(np.maximum(*parts))
    ulps = _integer_distance(_ordinals(a), _ordinals(b))
    if are_finite:
        return ulps
    is_number = np.isfinite(x) & np.isfinite(y)
    if not is_number.all():
        ulps[~is_number] = np.inf
        ulps[(np.isnan(x) & np.isnan(y)) | (x == y)] = 0.0
    return ulps


def _ordinals(values: NDArray[Any]) -> NDArray[Any]:
    """Return the ordinal numbers of floats: neighbours differ by 1, both zeros are 0."""
    kind = np.dtype(f"i{values.dtype.itemsize}")
    bits = np.ascontiguousarray(values).view(kind)
    last = 8 * kind.itemsize - 1
    sign = bits >> last  # 0 or -1
    return np.asarray((bits ^ (sign & ((1 << last) - 1))) - sign)
