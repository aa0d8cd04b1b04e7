"""Fourier transforms of real numbers, with the roundings of KISS FFT.

A complex array has its real and imaginary parts along the first axis: ``[2, ..., n]``. Fixed-point
numbers have 15 or 31 fraction bits, and each stage divides by its radix, so that sums fit.

Source:
    kiss_fft.c, _kiss_fft_guts.h and tools/kiss_fftr.c of KISS FFT, as tflite-micro builds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class _Fixed:
    """Arithmetic with fixed-point numbers of 16 or 32 bits, whose sums wrap as in C.

    Args:
        bits: 16 or 32.
    """

    def __init__(self, bits: int) -> None:
        self.dtype: np.dtype[Any] = np.dtype(f"int{bits}")
        self._wide = np.dtype(f"int{2 * bits}")
        self._fraction = bits - 1
        self._half = 1 << (bits - 2)
        self._largest = (1 << (bits - 1)) - 1

    def root(self, phases: NDArray[np.float64]) -> Array:
        """Return e^(i phase) for each of *phases* as real and imaginary parts: ``[2, n]``."""
        parts = np.stack([np.cos(phases), np.sin(phases)])
        return np.floor(0.5 + self._largest * parts).astype(self.dtype)

    def product(self, a: Array, b: Array) -> Array:
        """Return the rounded product of *a* and *b*, real fixed-point numbers."""
        return self._rounded(a.astype(self._wide) * b)

    def complex_product(self, a: Array, b: Array) -> Array:
        """Return the product of *a* and *b*, complex fixed-point numbers, rounded once."""
        (ar, ai), (br, bi) = a.astype(self._wide), b.astype(self._wide)
        return np.stack([self._rounded(ar * br - ai * bi), self._rounded(ar * bi + ai * br)])

    def divided(self, x: Array, divisor: int) -> Array:
        """Return *x* / *divisor*, as the product with a rounded inverse."""
        return self._rounded(x.astype(self._wide) * (self._largest // divisor))

    def half(self, x: Array) -> Array:
        """Return half of *x*, rounded down."""
        return x >> 1

    def halves(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return half of *a* + *b* and of *a* - *b*, as C computes them with 32-bit numbers."""
        a, b = a.astype(np.int32), b.astype(np.int32)
        return ((a + b) >> 1).astype(self.dtype), ((a - b) >> 1).astype(self.dtype)

    def _rounded(self, wide: Array) -> Array:
        return ((wide + self._half) >> self._fraction).astype(self.dtype)


class _Float:
    """Complex arithmetic in float32; ``divided``, which fixed point needs, returns its argument."""

    dtype: np.dtype[Any] = np.dtype(np.float32)

    def root(self, phases: NDArray[np.float64]) -> Array:
        return np.stack([np.cos(phases), np.sin(phases)]).astype(np.float32)

    def product(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)

    def complex_product(self, a: Array, b: Array) -> Array:
        (ar, ai), (br, bi) = a, b
        return np.stack([ar * br - ai * bi, ar * bi + ai * br])

    def divided(self, x: Array, divisor: int) -> Array:
        return x

    def half(self, x: Array) -> Array:
        return x * np.float64(0.5)  # the later subtraction rounds once

    def halves(self, a: Array, b: Array) -> tuple[Array, Array]:
        return (a + b) * np.float32(0.5), (a - b) * np.float32(0.5)


class RealTransform:
    """Fourier transforms of real numbers of one length, forward or inverse.

    Args:
        length: number of real numbers, for which :func:`is_length` is true.
        dtype: int16, int32 or float32.
        is_inverse: whether to compute the inverse, which in floats is *length* times too large.

    >>> forward = RealTransform(4, np.dtype(np.float32))
    >>> forward(np.float32([1, 2, 3, 4])).tolist()
    [10.0, 0.0, -2.0, 2.0, -2.0, 0.0]
    """

    def __init__(self, length: int, dtype: np.dtype[Any], *, is_inverse: bool = False) -> None:
        n = length // 2
        sign = 1 if is_inverse else -1
        self._math: Any = _Float() if dtype.kind == "f" else _Fixed(8 * dtype.itemsize)
        self._n, self._is_inverse = n, is_inverse
        self._factors = list(_factors(n))
        self._roots = self._math.root(sign * (2 * np.pi * np.arange(n)) / n)
        halves = np.arange(1, n // 2 + 1) / n + 0.5
        self._real_roots = self._math.root(sign * (np.pi * halves))

    def __call__(self, x: Array) -> Array:
        """Return the transform of the last axis.

        Args:
            x: ``[..., length]``, or for the inverse ``[..., length + 2]`` with alternating real and
                imaginary parts.

        Returns:
            The other of these shapes.
        """
        return self._backward(x) if self._is_inverse else self._forward(x)

    def _forward(self, x: Array) -> Array:
        math_, n = self._math, self._n
        z = self._complex_transform(_parts(x))  # even elements are real, odd ones imaginary parts
        y = np.zeros((2, *x.shape[:-1], n + 1), math_.dtype)
        (first_r, first_i) = math_.divided(z[..., 0], 2)
        y[0, ..., 0], y[0, ..., n] = first_r + first_i, first_r - first_i
        k = np.arange(1, n // 2 + 1)
        a, b = math_.divided(z[..., k], 2), math_.divided(_conjugate(z[..., n - k]), 2)
        even, odd = a + b, math_.complex_product(a - b, self._broadcast(self._real_roots, x))
        y[0][..., k], y[0][..., n - k] = math_.halves(even[0], odd[0])
        y[1][..., k], y[1][..., n - k] = math_.halves(odd[1], even[1])
        return _interleaved(y)

    def _backward(self, x: Array) -> Array:
        math_, n = self._math, self._n
        f = _parts(x)
        z = np.empty((2, *x.shape[:-1], n), math_.dtype)
        ends = np.stack([f[0, ..., 0] + f[0, ..., n], f[0, ..., 0] - f[0, ..., n]])
        z[..., 0] = math_.divided(ends, 2)
        k = np.arange(1, n // 2 + 1)
        a, b = math_.divided(f[..., k], 2), math_.divided(_conjugate(f[..., n - k]), 2)
        even, odd = a + b, math_.complex_product(a - b, self._broadcast(self._real_roots, x))
        z[..., k] = even + odd
        z[..., n - k] = _conjugate(even - odd)
        return _interleaved(self._complex_transform(z))

    def _broadcast(self, roots: Array, x: Array) -> Array:
        """Return *roots*, ``[2, m]``, as ``[2, 1, ..., m]``, to broadcast with arrays like *x*."""
        return roots.reshape(2, *[1] * (x.ndim - 1), -1)

    # -- the transform of complex numbers --------------------------------------------------------

    def _complex_transform(self, z: Array, level: int = 0, stride: int = 1) -> Array:
        """Return the transform of *z*, ``[2, ..., n]``, joined from the transforms of its parts.

        *level* is the depth of the recursion, and *stride* the product of the radices so far.
        """
        p, m = self._factors[level]
        parts = np.swapaxes(z.reshape(*z.shape[:-1], m, p), -1, -2)  # [2, ..., p, m]
        if m > 1:
            parts = self._complex_transform(parts, level + 1, stride * p)
        parts = self._math.divided(parts, p)
        joined = _BUTTERFLIES[p](self, parts, stride)
        return np.stack(joined, axis=-2).reshape(z.shape)

    def _turned(self, parts: Array, q: int, stride: int) -> Array:
        """Return part *q* of *parts* with each number multiplied by its root of unity.

        Args:
            parts: ``[2, ..., p, m]``: real and imaginary parts of *p* parts.
            q: number of the part.
            stride: product of the radices of the outer levels.
        """
        x = parts[..., q, :]
        roots = self._roots[:, np.arange(x.shape[-1]) * stride * q]
        return np.asarray(self._math.complex_product(x, self._broadcast(roots, x[0])))

    def _radix_2(self, parts: Array, stride: int) -> list[Array]:
        first, turned = parts[..., 0, :], self._turned(parts, 1, stride)
        return [first + turned, first - turned]

    def _radix_3(self, parts: Array, stride: int) -> list[Array]:
        math_, first = self._math, parts[..., 0, :]
        one, two = (self._turned(parts, q, stride) for q in (1, 2))
        total = one + two
        turned = math_.product(one - two, self._roots[1, stride * first.shape[-1]])
        middle = (first - math_.half(total)).astype(math_.dtype)
        return [first + total, middle + _by_i(turned), middle - _by_i(turned)]

    def _radix_4(self, parts: Array, stride: int) -> list[Array]:
        first = parts[..., 0, :]
        one, two, three = (self._turned(parts, q, stride) for q in (1, 2, 3))
        total, difference = first + two, first - two
        outer, turned = one + three, _by_i(one - three)
        if not self._is_inverse:
            turned = -turned
        return [total + outer, difference + turned, total - outer, difference - turned]

    def _radix_5(self, parts: Array, stride: int) -> list[Array]:
        math_, first = self._math, parts[..., 0, :]
        one, two, three, four = (self._turned(parts, q, stride) for q in (1, 2, 3, 4))
        m = first.shape[-1]
        a, b = self._roots[:, stride * m], self._roots[:, 2 * stride * m]
        outer, inner = one + four, two + three
        outer_d, inner_d = one - four, two - three
        near = first + math_.product(outer, a[0]) + math_.product(inner, b[0])
        far = first + math_.product(outer, b[0]) + math_.product(inner, a[0])
        near_t = -_by_i(math_.product(outer_d, a[1]) + math_.product(inner_d, b[1]))
        far_t = _by_i(math_.product(outer_d, b[1]) - math_.product(inner_d, a[1]))
        total = first + (outer + inner)
        return [total, near - near_t, far + far_t, far - far_t, near + near_t]


_BUTTERFLIES: dict[int, Any] = {
    2: RealTransform._radix_2,
    3: RealTransform._radix_3,
    4: RealTransform._radix_4,
    5: RealTransform._radix_5,
}


def _factors(n: int) -> Iterator[tuple[int, int]]:
    """Yield each radix and the remaining factor of *n*: fours first, then 2, 3 and 5.

    >>> list(_factors(24))
    [(4, 6), (2, 3), (3, 1)]
    """
    for p in (4, 2, 3, 5):
        while n % p == 0:
            n //= p
            yield p, n


def is_length(length: int) -> bool:
    """Whether transforms of *length* exist: if it is twice a product of 2, 3 and 5.

    KISS FFT supports other lengths with more memory, but TFLM crashes on them.

    >>> [length for length in range(20) if is_length(length)]
    [4, 6, 8, 10, 12, 16, 18]
    """
    rest = [left for _, left in _factors(length // 2)] if length > 2 else []
    return length % 2 == 0 and rest[-1:] == [1]


def _parts(x: Array) -> Array:
    """Return *x*, ``[..., 2 n]``, real and imaginary parts alternating, as ``[2, ..., n]``."""
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2), -1, 0)


def _interleaved(z: Array) -> Array:
    """Return *z*, ``[2, ..., n]``, as ``[..., 2 n]``, real and imaginary parts alternating."""
    return np.moveaxis(z, 0, -1).reshape(*z.shape[1:-1], 2 * z.shape[-1])


def _conjugate(z: Array) -> Array:
    return np.stack([z[0], -z[1]])


def _by_i(z: Array) -> Array:
    """Return *z* multiplied by the imaginary unit i."""
    return np.stack([-z[1], z[0]])
