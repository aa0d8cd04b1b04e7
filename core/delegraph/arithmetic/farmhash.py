"""FarmHash's 64-bit fingerprint, computed for many keys at once.

Source:
    Fingerprint64 (farmhashna::Hash64), github.com/google/farmhash, src/farmhash.cc.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

U64: TypeAlias = NDArray[np.uint64]
Keys: TypeAlias = NDArray[np.uint8]
Pair: TypeAlias = tuple[U64, U64]

_K0, _K1, _K2 = (
    np.array(k, np.uint64) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F)
)


def fingerprint64(keys: Keys) -> U64:
    """Return a 64-bit hash (Farmhash's fingerprint) of each key: ``[N], uint64``.

    Args:
        keys: ``[N, length], uint8``.
    """
    length = keys.shape[1]
    if length <= 16:
        return _up_to_16(keys)
    if length <= 32:
        return _up_to_32(keys)
    return _up_to_64(keys) if length <= 64 else _longer(keys)


def _up_to_16(keys: Keys) -> U64:
    length = keys.shape[1]
    mul = _K2 + _u64(2 * length)
    if length >= 8:
        a, b = _word(keys, 0) + _K2, _word(keys, length - 8)
        return _mix(_rotate(b, 37) * mul + a, (_rotate(a, 25) + b) * mul, mul)
    if length >= 4:
        first = _u64(length) + (_half(keys, 0) << _u64(3))
        return _mix(first, _half(keys, length - 4), mul)
    if not length:
        return np.full(len(keys), _K2)
    a, b, c = (keys[:, i].astype(np.uint64) for i in (0, length >> 1, length - 1))
    y, z = a + (b << _u64(8)), _u64(length) + (c << _u64(2))
    return _shift_mix(y * _K2 ^ z * _K0) * _K2


def _up_to_32(keys: Keys) -> U64:
    length = keys.shape[1]
    mul = _K2 + _u64(2 * length)
    a, b = _word(keys, 0) * _K1, _word(keys, 8)
    c, d = _word(keys, length - 8) * mul, _word(keys, length - 16) * _K2
    return _mix(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, mul)


def _up_to_64(keys: Keys) -> U64:
    length = keys.shape[1]
    mul = _K2 + _u64(2 * length)
    a, b = _word(keys, 0) * _K2, _word(keys, 8)
    c, d = _word(keys, length - 8) * mul, _word(keys, length - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix(y, a + _rotate(b + _K2, 18) + c, mul)
    e, f = _word(keys, 16) * mul, _word(keys, 24)
    g, h = (y + _word(keys, length - 32)) * mul, (z + _word(keys, length - 24)) * mul
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, mul)


def _longer(keys: Keys) -> U64:
    length = keys.shape[1]
    zero: U64 = np.zeros(len(keys), np.uint64)
    y: U64 = zero + _u64(81) * _K1 + _u64(113)
    z: U64 = _shift_mix(y * _K2 + _u64(113)) * _K2
    x: U64 = _u64(81) * _K2 + _word(keys, 0)
    v, w = (zero, zero), (zero, zero)
    for at in range(0, (length - 1) // 64 * 64, 64):
        x = _rotate(x + y + v[0] + _word(keys, at + 8), 37) * _K1 ^ w[1]
        y = _rotate(y + v[1] + _word(keys, at + 48), 42) * _K1 + v[0] + _word(keys, at + 40)
        z = _rotate(z + w[0], 33) * _K1
        v = _weak(keys, at, v[1] * _K1, x + w[0])
        w = _weak(keys, at + 32, z + w[1], y + _word(keys, at + 16))
        x, z = z, x
    return _last(keys, x, y, z, v, w)


def _last(keys: Keys, x: U64, y: U64, z: U64, v: Pair, w: Pair) -> U64:
    """Return the fingerprints of *keys*, by mixing their last 64 bytes into the state of the hash.

    The state after the bytes hashed so far is *x*, *y*, *z*, *v* and *w*, with one or two words for
    each key. The last 64 bytes may include some of the hashed bytes.
    """
    length = keys.shape[1]
    mul = _K1 + ((z & _u64(0xFF)) << _u64(1))
    at = length - 64
    w0 = w[0] + _u64((length - 1) & 63)
    v0 = v[0] + w0
    w0 = w0 + v0
    v9: U64 = v0 * _u64(9)
    x = _rotate(x + y + v0 + _word(keys, at + 8), 37) * mul ^ w[1] * _u64(9)
    y = _rotate(y + v[1] + _word(keys, at + 48), 42) * mul + v9 + _word(keys, at + 40)
    z = _rotate(z + w0, 33) * mul
    v = _weak(keys, at, v[1] * mul, x + w0)
    w = _weak(keys, at + 32, z + w[1], y + _word(keys, at + 16))
    first = _mix(v[0], w[0], mul) + _shift_mix(y) * _K0 + x
    return _mix(first, _mix(v[1], w[1], mul) + z, mul)


def _weak(keys: Keys, at: int, a: U64, b: U64) -> Pair:
    """Return two words of each of *keys* that mix 32 bytes, from byte *at* on, with *a* and *b*."""
    w, x, y, z = (_word(keys, at + 8 * k) for k in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    total = a + x + y
    return total + z, b + _rotate(total, 44) + a


def _mix(u: U64, v: U64, mul: U64) -> U64:
    a = (u ^ v) * mul
    a ^= a >> _u64(47)
    b = (v ^ a) * mul
    b ^= b >> _u64(47)
    return b * mul


def _shift_mix(x: U64) -> U64:
    return x ^ (x >> _u64(47))


def _rotate(x: U64, right: int) -> U64:
    return (x >> _u64(right)) | (x << _u64(64 - right))


def _word(keys: Keys, at: int) -> U64:
    """Return 8 bytes of each key, from byte *at* on, as a little-endian number: ``[N]``."""
    return np.ascontiguousarray(keys[:, at : at + 8]).view("<u8")[:, 0].astype(np.uint64)


def _half(keys: Keys, at: int) -> U64:
    """Return 4 bytes of each key, from byte *at* on, as a little-endian number: ``[N], uint64``."""
    return np.ascontiguousarray(keys[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint64)


def _u64(value: int) -> U64:
    return np.array(value, np.uint64)
