"""Generates random shapes, values and quantization; equal seeds give equal results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.schema.enums import ActivationFunctionType, TensorType
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import Fed

T = TypeVar("T")

QUANTIZED = ("INT8", "UINT8", "INT16")
INTEGERS = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64")
PLAIN = ("FLOAT32", "FLOAT16", "BFLOAT16", *INTEGERS, "BOOL", "INT4", "COMPLEX64", "STRING")
"""Types that kernels treat differently; every operator is tried with each."""

ACTIVATIONS = tuple(a for a in ActivationFunctionType if a.name != "SIGN_BIT")
WORDS = (b"", b"a", b"tensor", b"flow\0", "Größe".encode(), b"x" * 40)
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, -0.0, 0, 1e38, -1e38, 1e-40, 0.5, -0.5, 2.5, 1, -1], np.float32
)


class RandomOperands:
    """Draws shapes, values and quantization for cases.

    Args:
        op: name of the operator; each operator gets other random numbers.
        seed: seed of the random generator.
        count: number of random cases to make.
    """

    def __init__(self, op: str, seed: int, count: int) -> None:
        self.rng = np.random.default_rng((seed, crc32(op.encode())))
        self.count = count

    def pick(self, items: Sequence[T]) -> T:
        """Return a random element of *items*."""
        return items[int(self.rng.integers(len(items)))]

    def chance(self, probability: float) -> bool:
        """Whether a random event of the given probability happens."""
        return bool(self.rng.random() < probability)

    def number(self, low: int, high: int) -> int:
        """Return a random integer from *low* to *high*, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def shape(
        self, low: int = 0, high: int = 5, *, largest: int = 7, empty: float = 0.03
    ) -> tuple[int, ...]:
        """Return a random shape of rank *low* to *high* with axes of at most *largest* elements.

        *empty* is the chance that one axis has length 0.
        """
        rank = self.number(low, high)
        shape = [self.number(1, largest) for _ in range(rank)]
        if rank and self.chance(empty):
            shape[self.number(0, rank - 1)] = 0
        return tuple(shape)

    def broadcast_shapes(
        self, n: int = 2, high: int = 5, *, empty: float = 0.03
    ) -> list[tuple[int, ...]]:
        """Return *n* random shapes that broadcast together, or rarely shapes that do not.

        *high* is the highest rank, and *empty* the chance of an axis of length 0.
        """
        full = self.shape(0, high, empty=empty)
        shapes = []
        for _ in range(n):
            kept = full if self.chance(0.5) else full[self.number(0, len(full)) :]
            shapes.append(tuple(1 if self.chance(0.2) else size for size in kept))
        if self.chance(0.03):
            shapes[0] = (*shapes[0][:-1], 11)
        return shapes

    def quantization(self, type: str, *, symmetric: bool = False) -> dict[str, Any]:
        """Return random ``scale`` and ``zero_point``; empty for types without quantization.

        With *symmetric*, the zero point stands in the middle of the type's range.
        """
        if type not in QUANTIZED:
            return {}
        zero = 128 if type == "UINT8" else 0
        if type != "INT16" and not symmetric:
            low = 0 if type == "UINT8" else -128
            zero = self.pick([zero, low, low + 255, self.number(low, low + 255)])
        exponent = float(self.rng.uniform(-6, 1)) - (6 if type == "INT16" else 0)
        scale = float(np.float32(self.pick([2.0**exponent, 2.0 ** round(exponent)])))
        return {"scale": scale, "zero_point": zero}

    def values(
        self, type: str, shape: Sequence[int], *, spread: float = 3.0, special: float = 0.0
    ) -> NDArray[Any]:
        """Return a random array for a tensor type.

        Args:
            type: name of the type, such as ``"INT8"``; integers of up to 16 bits use their whole
                range.
            shape: shape of the array.
            spread: standard deviation of floats and of wider integers.
            special: chance that a float is NaN, infinite, huge, tiny or exactly between integers.
        """
        dtype, shape = NUMPY_DTYPES[TensorType[type]], tuple(shape)
        if type == "STRING":
            array = np.empty(shape, object)
            array.reshape(-1)[:] = [self.pick(WORDS) for _ in range(array.size)]
            return array
        if type == "BOOL":
            return self.rng.random(shape) < 0.5
        if type in ("INT4", "UINT4", "INT2"):
            low, high = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1)}[type]
            return self.rng.integers(low, high, shape, dtype, endpoint=True)
        if type.startswith("COMPLEX"):
            parts = self.rng.normal(0, spread, (2, *shape))
            return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
        if dtype.kind in "iu" and dtype.itemsize <= 2:
            info = np.iinfo(dtype)
            return self.rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        floats = self.rng.normal(0, spread, shape)
        if dtype.kind in "iu":
            whole = np.round(floats)
            return np.asarray(np.abs(whole) if dtype.kind == "u" else whole).astype(dtype)
        array = np.asarray(floats).astype(np.float32)
        if special:
            odd = self.rng.random(shape) < special
            array = np.where(odd, self.rng.choice(SPECIAL, shape), array)
        with np.errstate(over="ignore"):
            return np.asarray(array).astype(dtype)

    def fed(self, type: str, shape: Sequence[int], **drawn: Any) -> Fed:
        """Return a random graph input; *drawn* are other arguments of :meth:`values`."""
        quantization = drawn.pop("quantization", None)
        quantization = self.quantization(type) if quantization is None else quantization
        if type == "STRING" and not len(shape):
            shape = (1,)  # the official set_tensor stores the address of a single string
        return Fed(self.values(type, shape, **drawn), tensor(tuple(shape), type, **quantization))

    def constant(self, type: str, shape: Sequence[int], **drawn: Any) -> TensorDef:
        """Return a random constant of *type* and *shape*, quantized if the type allows it."""
        quantization = drawn.pop("quantization", None)
        quantization = self.quantization(type) if quantization is None else quantization
        return constant(self.values(type, shape, **drawn), type, **quantization)

    def operand(self, type: str, shape: Sequence[int], **drawn: Any) -> Fed | TensorDef:
        """Return a random graph input of *type* and *shape*, or sometimes a constant."""
        return (self.constant if self.chance(0.15) else self.fed)(type, shape, **drawn)

    def output(self, type: str, shape: Sequence[int] = ()) -> TensorDef:
        """Return the definition of an output, quantized if its type allows it."""
        return tensor(tuple(shape), type, **self.quantization(type))
