"""Seeded damage to model files, aimed at their structure rather than at their weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from delegraph.schema.reader import read_model

Bytes = NDArray[np.uint8]


def structure(content: bytes) -> NDArray[np.intp]:
    """Return the positions of the bytes that are not a constant's, ``[N]``.

    Every byte of a constant is as good as any other; what can break a reader lies between them.
    """
    data = np.frombuffer(content, np.uint8)
    is_structure = np.ones(len(data), bool)
    start = data.__array_interface__["data"][0]
    for buffer in read_model(data).buffers or ():
        if buffer.data is not None and len(buffer.data):
            offset = buffer.data.__array_interface__["data"][0] - start
            is_structure[offset : offset + len(buffer.data)] = False
    return np.flatnonzero(is_structure)


def mutated(content: bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> bytes:
    """Return a damaged copy of *content*; *positions* are those of :func:`structure`."""
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    return damage(np.frombuffer(content, np.uint8).copy(), positions, rng).tobytes()


def flip_bits(data: Bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> Bytes:
    """Flip one to eight bits."""
    chosen = rng.choice(positions, rng.integers(1, 9))
    data[chosen] ^= (1 << rng.integers(0, 8, len(chosen))).astype(np.uint8)
    return data


def truncate(data: Bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> Bytes:
    """Cut off the end of the file."""
    return data[: max(1, rng.choice(positions))]


def store_huge_number(data: Bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> Bytes:
    """Store a number near a power of two in four bytes, like a count or an offset."""
    number = (1 << int(rng.integers(4, 32))) + int(rng.integers(-2, 3))
    return _store(data, rng.choice(positions), number)


def store_loop(data: Bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> Bytes:
    """Store an offset that points to itself, backwards, or to another table."""
    at = int(rng.choice(positions))
    return _store(data, at, int(rng.choice([0, 4, -at, -4, int(rng.choice(positions)) - at])))


def copy_span(data: Bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> Bytes:
    """Copy up to 64 bytes from one place over another."""
    source, target = rng.choice(positions, 2)
    length = min(int(rng.integers(1, 65)), len(data) - max(source, target))
    data[target : target + length] = data[source : source + length].copy()
    return data


def randomise_bytes(data: Bytes, positions: NDArray[np.intp], rng: np.random.Generator) -> Bytes:
    """Replace a few single bytes."""
    chosen = rng.choice(positions, rng.integers(1, 5))
    data[chosen] = rng.integers(0, 256, len(chosen)).astype(np.uint8)
    return data


def _store(data: Bytes, at: int, number: int) -> Bytes:
    raw = np.frombuffer((number & 0xFFFFFFFF).to_bytes(4, "little"), np.uint8)
    at -= at % 4  # where the builder puts them
    data[at : at + 4] = raw[: len(data) - at]
    return data


DAMAGES: list[Callable[[Bytes, NDArray[np.intp], np.random.Generator], Bytes]] = [
    flip_bits,
    truncate,
    store_huge_number,
    store_loop,
    copy_span,
    randomise_bytes,
]
