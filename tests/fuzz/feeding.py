"""What a copy is fed: a few consecutive invokes, some of them after a resize."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.testing.sweep.input_roundings import nudged

DISTINCT = 2048
"""Elements that are drawn; longer arrays repeat them."""

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 1e-45, 1e-39, 3.4e38, -3.4e38, 1e9, -129.0)
INTEGERS = (-(1 << 31), -129, -128, -2, -1, 0, 1, 2, 3, 127, 128, 255, 256, 1 << 20, (1 << 31) - 1)
MAX_STRINGS = 1 << 24
"""Strings that an input is fed at most: each is a Python object, which no interpreter allocates."""

MAX_BYTES = 1 << 30
"""Bytes that an input is fed at most, of the two gigabytes that a copy may take."""

RESIZED = (0, 1, 2, 3, 5, 7, 16)


class Feeding:
    """Source of the inputs of each invoke of a copy; equal seeds give equal inputs.

    Args:
        seed: of everything random.
        steps: arrays that came with the model; half of all copies take them where they fit.
        nudge: floats change by some units in their last place, in another way for each number;
            by none for 0.

    Attributes:
        invokes: how many.
    """

    def __init__(
        self, seed: int, steps: Sequence[Sequence[NDArray[Any]]] = (), nudge: int = 0
    ) -> None:
        chance = Random(seed)
        self._seed = seed
        self._nudge = nudge
        self._own = list(steps) if chance.random() < 0.5 else []
        self._special = chance.random() < 0.15
        self._resizes = chance.random() < 0.25
        self.invokes = chance.choice([1, 1, 2, 3]) if not self._resizes else 2

    def new_shape(
        self, step: int, details: Sequence[dict[str, Any]]
    ) -> tuple[int, list[int]] | None:
        """Return an input's number and another shape for it; None for no resize before *step*."""
        if not (self._resizes and step and details):
            return None
        chance = Random(self._seed + step)
        number = chance.randrange(len(details))
        shape = [int(n) for n in details[number]["shape"]]
        if not shape:
            return None
        at = chance.randrange(len(shape))
        shape[at] = chance.choice([*RESIZED, shape[at] + 1])
        return number, shape

    def array(self, step: int, number: int, shape: Sequence[int], dtype: Any) -> NDArray[Any]:
        """Return the value of an input."""
        wanted = tuple(int(n) for n in shape)
        found = self._own_array(step, number, wanted, np.dtype(dtype))
        if found is None:
            rng = np.random.default_rng([self._seed, step, number])
            found = values(rng, wanted, np.dtype(dtype), self._special)
        if self._nudge and found.dtype == np.float32:
            rng = np.random.default_rng([self._seed, step, number, self._nudge])
            return nudged(found, rng, smoothly=self._nudge % 2 == 0)
        return found

    def _own_array(
        self, step: int, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> NDArray[Any] | None:
        if step >= len(self._own) or number >= len(self._own[step]):
            return None
        own = self._own[step][number]
        alike = own.dtype == dtype or {own.dtype.kind, dtype.kind} <= set("OSU")
        return own if own.shape == shape and alike else None


def values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], special: bool
) -> NDArray[Any]:
    """Return random values of a shape and dtype; *special* ones are NaN, infinite or extreme.

    Raises:
        ArgumentError: there would be too many strings or bytes to feed.
    """
    count = math.prod(shape)
    if count * dtype.itemsize > MAX_BYTES:
        raise ArgumentError(f"{count:,} values are not fed, at most {MAX_BYTES:,} bytes")
    drawn = min(count, DISTINCT)
    if dtype.kind in "OSU":
        if count > MAX_STRINGS:
            raise ArgumentError(f"{count:,} strings are not fed, at most {MAX_STRINGS:,}")
        words = np.array([b"", b"a", b"two words", b"\xff\x00", b"12"], object)
        few = words[rng.integers(len(words), size=drawn)]
    elif dtype.kind == "b":
        few = rng.integers(2, size=drawn).astype(bool)
    elif dtype.kind in "iu":
        few = _integers(rng, drawn, dtype, special)
    else:
        few = rng.normal(0, 2, drawn)
        if special and drawn:
            few[rng.integers(drawn, size=1 + drawn // 4)] = rng.choice(SPECIAL)
        with np.errstate(all="ignore"):
            few = few.astype(dtype)
    return np.resize(few, count).reshape(shape) if drawn < count else few.reshape(shape)


def _integers(
    rng: np.random.Generator, count: int, dtype: np.dtype[Any], special: bool
) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    if special:
        return np.clip(rng.choice(INTEGERS, count), limits.min, limits.max).astype(dtype)
    if dtype.itemsize == 1 or rng.random() < 0.1:
        return rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
    return rng.integers(max(limits.min, -1), 5, count).astype(dtype)
