"""Hashes of strings and of other data."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import fingerprint64
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.operators.strings import each
from delegraph_flex.numpy_executor.registry import operator, step_of

_MASK = (1 << 64) - 1


def _buckets(node: FlexNode) -> int:
    count = node.int("num_buckets")
    if count < 1:
        raise Unsupported(f"num_buckets is {count}, expected 1 or more")
    return count


@operator("StringToHashBucketFast")
def fast_bucket(node: FlexNode) -> Step:
    """Return a function that assigns each string to a bucket by FarmHash."""
    count = _buckets(node)

    def one(value: bytes) -> int:
        keys = np.frombuffer(value, np.uint8).reshape(1, -1)
        return int(fingerprint64(keys)[0]) % count

    return each(one, np.int64)


@step_of("Fingerprint")
def fingerprint(data: NDArray[Any], method: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the 8-byte FarmHash of each item along the first axis.

    Strings are hashed first. Source: core/kernels/fingerprint_op.cc.
    """
    if method.item() != b"farmhash64":
        raise ValueError(f"method is {method.item()!r}, expected b'farmhash64'")
    if not data.ndim:
        raise ValueError("data is a scalar, expected items along a first axis")
    hashes = _hashes(data) if data.dtype.hasobject else data
    if not data.dtype.hasobject or data.ndim > 1:
        size = hashes.nbytes // len(data) if len(data) else 0
        hashes = fingerprint64(np.frombuffer(hashes.tobytes(), np.uint8).reshape(len(data), size))
    return np.frombuffer(hashes.astype("<u8").tobytes(), np.uint8).reshape(len(data), 8)


def _hashes(strings: NDArray[Any]) -> NDArray[np.uint64]:
    hashes = [int(fingerprint64(np.frombuffer(s, np.uint8)[np.newaxis])[0]) for s in strings.flat]
    return np.array(hashes, "<u8").reshape(strings.shape)


@operator("StringToHashBucketStrong")
def strong_bucket(node: FlexNode) -> Step:
    """Return a function that assigns each string to a bucket by SipHash with a key."""
    count, key = _buckets(node), node.ints("key")
    if len(key) != 2:
        raise Unsupported(f"key has {len(key)} numbers, expected 2")
    return each(lambda value: siphash(value, key[0] & _MASK, key[1] & _MASK) % count, np.int64)


@operator("StringToHashBucket")
def bucket(node: FlexNode) -> Step:
    """Return a function that assigns each string to a bucket by TensorFlow's own hash."""
    count = _buckets(node)

    def run(x: NDArray[Any]) -> NDArray[Any]:
        return each(lambda value: hash64(value, 0xDECAFCAFFE) % count, np.int64)(x)

    return run


def siphash(data: bytes, k0: int, k1: int) -> int:
    """Return SipHash-2-4 of *data*, 64 bits; *k0* and *k1* are the halves of the key."""
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    tail = data[len(data) & ~7 :]
    last = int.from_bytes(tail, "little") | (len(data) & 0xFF) << 56
    words = [*struct.unpack_from(f"<{len(data) // 8}Q", data), last]
    for word in words:
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[int], count: int) -> None:
    for _ in range(count):
        for a, b, turn in ((0, 1, 13), (2, 3, 16)):
            v[a] = (v[a] + v[b]) & _MASK
            v[b] = _turned(v[b], turn) ^ v[a]
        v[0] = _turned(v[0], 32)
        for a, b, turn in ((2, 1, 17), (0, 3, 21)):
            v[a] = (v[a] + v[b]) & _MASK
            v[b] = _turned(v[b], turn) ^ v[a]
        v[2] = _turned(v[2], 32)


def _turned(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & _MASK


def hash64(data: bytes, seed: int) -> int:
    """Return TensorFlow's hash of *data*, 64 bits, starting from *seed*.

    Source: Hash64, tsl/platform/hash.cc.
    """
    m = 0xC6A4A7935BD1E995
    h = seed ^ (len(data) * m & _MASK)
    for (word,) in struct.iter_unpack("<Q", data[: len(data) & ~7]):
        k = word * m & _MASK
        k = (k ^ k >> 47) * m & _MASK
        h = (h ^ k) * m & _MASK
    tail = data[len(data) & ~7 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & _MASK
    h = (h ^ h >> 47) * m & _MASK
    return h ^ h >> 47
