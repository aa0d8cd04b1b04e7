"""Random bits as a function of a key and a counter: Philox and Threefry.

Source:
    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
"""Array of random bits, 32 in each element."""

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_PHILOX_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA


def halves(value: int) -> tuple[int, int]:
    """Return the low and high 32 bits of *value*, a 64-bit number that may be given as negative.

    >>> halves(-1 << 32)
    (0, 4294967295)
    """
    return value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF


def counters(first: int, count: int) -> NDArray[np.uint64]:
    """Return *count* consecutive numbers from *first*, modulo 2**64."""
    return np.uint64(first) + np.arange(count, dtype=np.uint64)


def philox4x32(key: int, counter: NDArray[np.uint64], high: int) -> Words:
    """Return four words for each counter, by ten rounds of Philox.

    Args:
        key: 64-bit key.
        counter: low 64 bits of the counters, ``[n]``.
        high: high 64 bits of the counters.

    Returns:
        ``[n, 4], uint32``.
    """
    c0, c1 = counter & _LOW, counter >> _32
    c2, c3 = (np.full(len(counter), half, np.uint64) for half in halves(high))
    k0, k1 = halves(key)
    for _ in range(10):
        product0, product1 = _PHILOX_FACTORS[0] * c0, _PHILOX_FACTORS[1] * c2
        c0 = product1 >> _32 ^ c1 ^ np.uint64(k0)
        c2 = product0 >> _32 ^ c3 ^ np.uint64(k1)
        c1, c3 = product1 & _LOW, product0 & _LOW
        k0 = k0 + _PHILOX_KEY_STEPS[0] & 0xFFFFFFFF
        k1 = k1 + _PHILOX_KEY_STEPS[1] & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def threefry2x32(key: int, counter: NDArray[np.uint64]) -> Words:
    """Return two words for each counter, by twenty rounds of Threefry.

    Args:
        key: 64-bit key.
        counter: 64-bit counters, ``[n]``.

    Returns:
        ``[n, 2], uint32``.
    """
    k0, k1 = halves(key)
    keys = (k0, k1, k0 ^ k1 ^ _THREEFRY_PARITY)
    x0 = (counter & _LOW).astype(np.uint32) + np.uint32(k0)
    x1 = (counter >> _32).astype(np.uint32) + np.uint32(k1)
    for group in range(5):
        for rotation in _THREEFRY_ROTATIONS[group % 2]:
            x0 += x1
            x1 = (x1 << np.uint32(rotation) | x1 >> np.uint32(32 - rotation)) ^ x0
        x0 += np.uint32(keys[(group + 1) % 3])
        x1 += np.uint32(keys[(group + 2) % 3] + group + 1 & 0xFFFFFFFF)
    return np.stack([x0, x1], axis=1)
