"""TensorFlow's stream of random bits (Philox), and distributions computed from the bits.

Source:
    GuardedPhiloxRandom, core/util/guarded_philox_random.h; random_distributions.h and
    random_distributions_utils.h, core/lib/random; FillPhiloxRandom, core/kernels/random_op_cpu.h.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import Words, counters, philox4x32

_MASK = (1 << 64) - 1
_WORD = (1 << 32) - 1
_FEW = 10
"""Number of groups up to which Python's integers are faster than NumPy's arrays."""

_SCRAMBLER = 0x02461E293EC8F720  # key with which seeds are mixed
SMALLEST_UNIFORM = 1e-7
"""Smallest uniform number that is used, so that the logarithm is finite."""
_RESERVED = 256  # number of words reserved for an output that may use a varying number
_TRUNCATED_AT = 2.0  # standard deviations


@dataclass(frozen=True, slots=True)
class Philox:
    """A position in a random stream, which consists of groups of four 32-bit words.

    Attributes:
        key: 64-bit key.
        counter: number of the next group, with 128 bits.
    """

    key: int
    counter: int

    @classmethod
    def of_seeds(cls, seed: int, seed2: int) -> Philox:
        """Return the stream for a stateful operator's attributes *seed* and *seed2*."""
        return cls(seed & _MASK, (seed2 & _MASK) << 64)

    @classmethod
    def of_stateless_seed(cls, seed: NDArray[Any]) -> Philox:
        """Return the stream for the seed of a stateless operator, ``[2]``, which is mixed first.

        Source:
            GenerateKey, core/kernels/stateless_random_ops.cc.
        """
        if seed.shape != (2,):
            raise ValueError(f"seed has shape {list(seed.shape)}, expected [2]")
        first, second = (value & _MASK for value in seed.tolist())
        mixed = _group(_SCRAMBLER, second << 64 | first)
        return cls(mixed[1] << 32 | mixed[0], (mixed[3] << 32 | mixed[2]) << 64)

    def skipped(self, groups: int) -> Philox:
        """Return the position in the stream that is *groups* further."""
        return Philox(self.key, self.counter + groups)

    def words(self, groups: int) -> Words:
        """Return the next *groups* groups of four random words: ``[groups, 4], uint32``."""
        if groups <= _FEW:
            places = range(self.counter, self.counter + groups)
            return np.array([_group(self.key, at) for at in places], np.uint32).reshape(-1, 4)
        low, high = self.counter & _MASK, self.counter >> 64 & _MASK
        first = min(groups, _MASK + 1 - low)
        words = philox4x32(self.key, counters(low, first), high)
        if first == groups:
            return words
        rest = philox4x32(self.key, counters(0, groups - first), high + 1 & _MASK)
        return np.concatenate([words, rest])

    def blocks(self, starts: NDArray[Any], groups: int) -> Words:
        """Return *groups* groups of words per start: ``[starts, 4 * groups], uint32``."""
        starts = starts.astype(np.uint64)
        places = (starts[:, np.newaxis] + np.arange(groups, dtype=np.uint64)).reshape(-1)
        low, high = self.counter & _MASK, self.counter >> 64 & _MASK
        low_words = places + np.uint64(low)
        words = philox4x32(self.key, low_words, high)
        wrapped = low_words < places
        if wrapped.any():
            words[wrapped] = philox4x32(self.key, low_words[wrapped], high + 1 & _MASK)
        return words.reshape(len(starts), 4 * groups)


def _group(key: int, counter: int) -> tuple[int, int, int, int]:
    """Return the four words of the group with number *counter* in the stream of *key*.

    ``philox4x32`` computes many groups at once.
    """
    c0, c1, c2, c3 = (counter >> shift & _WORD for shift in (0, 32, 64, 96))
    k0, k1 = key & _WORD, key >> 32
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1 = product1 >> 32 ^ c1 ^ k0, product1 & _WORD
        c2, c3 = product0 >> 32 ^ c3 ^ k1, product0 & _WORD
        k0, k1 = k0 + 0x9E3779B9 & _WORD, k1 + 0xBB67AE85 & _WORD
    return c0, c1, c2, c3


class Stream:
    """Random stream of a stateful operator; each call continues where the last call ended."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._next = Philox.of_seeds(seed, seed2)
        self._lock = threading.Lock()

    def reserve(self, groups: int) -> Philox:
        """Return the current position, and advance the stream by *groups*."""
        with self._lock:
            place = self._next
            self._next = place.skipped(groups)
        return place

    def reserve_outputs(self, count: int) -> Philox:
        """Return the current position; advance the stream by the reserve for *count* outputs.

        TensorFlow reserves a fixed number of groups for each output.
        """
        return self.reserve(count * _RESERVED)


def flat_words(random: Philox, count: int) -> Words:
    """Return the next *count* words of *random*: ``[count], uint32``."""
    return random.words(-(-count // 4)).reshape(-1)[:count]


def flat_long_words(random: Philox, count: int) -> NDArray[np.uint64]:
    """Return *count* 64-bit words, each from two words of *random*, low half first: ``[count]``."""
    pairs = flat_words(random, 2 * count).reshape(-1, 2).astype(np.uint64)
    longs: NDArray[np.uint64] = pairs[:, 1] << np.uint64(32) | pairs[:, 0]
    return longs


def uniform(random: Philox, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return *count* floats of *dtype* in [0, 1), with the mantissa's number of random bits."""
    if dtype == np.float64:
        return doubles(flat_words(random, 2 * count))
    words = flat_words(random, count)
    if dtype == np.float32:
        return floats(words)
    bits = 10 if dtype == np.float16 else 7
    fraction = (words & np.uint32((1 << bits) - 1)).astype(np.float32)
    return (fraction / np.float32(1 << bits)).astype(dtype)


def floats(words: Words) -> NDArray[np.float32]:
    """Return floats in [0, 1) made from 23 bits of each of *words*."""
    between_1_and_2 = (words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)
    return between_1_and_2.view(np.float32) - np.float32(1)


def doubles(words: Words) -> NDArray[np.float64]:
    """Return doubles in [0, 1) made from 52 bits of each pair of words: ``[words / 2]``."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    mantissa = (pairs[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | pairs[:, 1]
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0


def normal(random: Philox, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return *count* standard normal floats of *dtype*, from the words of *random*."""
    pairs = -(-count // 2)
    if dtype == np.float64:
        values = _box_muller(doubles(flat_words(random, 4 * pairs)))
    else:
        values = _box_muller(floats(flat_words(random, 2 * pairs)))
    return values[:count].astype(dtype, copy=False)


def _box_muller(uniforms: NDArray[Any]) -> NDArray[Any]:
    """Return two normal numbers for each pair of *uniforms*, ``[N]``, in their precision."""
    type = uniforms.dtype.type
    logarithms = _logarithms(np.maximum(uniforms[0::2], type(SMALLEST_UNIFORM)))
    angles = (2 * np.pi * uniforms[1::2].astype(np.float64)).astype(type)
    points = np.zeros(len(angles), np.complex64 if type is np.float32 else np.complex128)
    points.imag = angles
    points = np.exp(points)  # complex numbers use the C library's sine and cosine, unlike np.sin
    radius = np.sqrt(type(-2) * logarithms)
    values = np.empty(len(uniforms), type)
    values[0::2] = points.imag * radius
    values[1::2] = points.real * radius
    return values


def _logarithms(x: NDArray[Any]) -> NDArray[Any]:
    """Return logarithms as the C library computes them, in the precision of *x*.

    For some numbers, NumPy's logarithms differ from these in the last bit.
    """
    log = math.log if x.dtype == np.float64 else _logf()
    return np.fromiter(map(log, x.tolist()), x.dtype, len(x))


@cache
def _logf() -> Callable[[float], float]:
    """Return the C library's float logarithm, or a rounded double logarithm if it is missing."""
    try:
        library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
        logf = library.logf
    except (AttributeError, OSError):
        return math.log
    logf.argtypes, logf.restype = [ctypes.c_float], ctypes.c_float
    found: Callable[[float], float] = logf
    return found


def truncated_normal(random: Philox, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return *count* standard normal floats of *dtype* within [-2, 2], drawn from *random*.

    Numbers outside of the range are drawn again.

    Every four floats, or two doubles, use a separate part of the stream.
    """
    is_double = dtype == np.float64
    size = 2 if is_double else 4
    blocks, step = -(-count // size), size * _RESERVED // 4
    results = np.empty((blocks, size), np.float64 if is_double else np.float32)
    rows, tries = np.arange(blocks), 4 if is_double else 3
    while len(rows):
        words = random.blocks(rows * step, tries).reshape(-1)
        values = _box_muller(doubles(words) if is_double else floats(words))
        values = values.reshape(len(rows), -1)
        inside = np.abs(values) < _TRUNCATED_AT
        enough = np.count_nonzero(inside, axis=1) >= size
        order = np.argsort(~inside[enough], axis=1, kind="stable")[:, :size]
        results[rows[enough]] = np.take_along_axis(values[enough], order, axis=1)
        rows, tries = rows[~enough], 2 * tries
    return results.reshape(-1)[:count].astype(dtype, copy=False)
