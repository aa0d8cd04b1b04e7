"""Cases of the operators of one number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, INTEGERS, SIGNED
from flex_cases import Case, one
from flex_cases.arithmetic import SPECIAL, TOLERANCE

# Where an operator of floats is defined, lowest and highest.
_DOMAINS = {
    "Abs": (-9, 9),
    "Acos": (-1, 1),
    "Acosh": (1, 9),
    "Asin": (-1, 1),
    "Asinh": (-9, 9),
    "Atan": (-9, 9),
    "Atanh": (-0.9, 0.9),
    "Ceil": (-9, 9),
    "Cos": (-9, 9),
    "Cosh": (-3, 3),
    "Exp": (-3, 3),
    "Expm1": (-1, 1),
    "Floor": (-9, 9),
    "Inv": (0.1, 3),
    "Log": (0.1, 9),
    "Log1p": (-0.9, 2),
    "Neg": (-9, 9),
    "Reciprocal": (-3, -0.1),
    "Rint": (-9, 9),
    "Round": (-9, 9),
    "Rsqrt": (0.1, 9),
    "Sigmoid": (-9, 9),
    "Sign": (-9, 9),
    "Sin": (-9, 9),
    "Sinh": (-3, 3),
    "Sqrt": (0, 9),
    "Square": (-9, 9),
    "Tan": (-1, 1),
    "Tanh": (-3, 3),
}
_EXACT = ("Abs", "Ceil", "Floor", "Neg", "Rint", "Round", "Sign")
_REAL_ONLY = ("Abs", "Ceil", "Floor", "Rint", "Round")
_PARTS = {DataType.COMPLEX64: DataType.FLOAT32, DataType.COMPLEX128: DataType.FLOAT64}


def cases() -> Iterator[Case]:
    yield from _floats()
    yield from _complex()
    yield from _integers()
    yield from _parts()
    yield from _clips()


def _floats() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for op, (low, high) in _DOMAINS.items():
        for type in sorted(FLOATS):
            if op == "Rint" and type.dtype.itemsize == 2:  # TensorFlow has no kernel
                continue
            tolerance = 0 if op in _EXACT else TOLERANCE[type]
            x = rng.uniform(low, high, (2, 9)).astype(type.dtype)
            yield one(op, x, T=type, tolerance=tolerance)
            if type is DataType.FLOAT32:
                yield one(op, x[:0], T=type, name=f"{op}-empty")
                yield one(op, x[0, 0], T=type, tolerance=tolerance, name=f"{op}-scalar")
                halves = np.array([*SPECIAL, 0.5, 1.5, 2.5, -0.5, -2.5], np.float32)
                yield one(op, halves, T=type, tolerance=2e-6, name=f"{op}-special")
    for type in sorted(FLOATS):
        for op in ("IsNan", "IsInf", "IsFinite"):
            x = np.array([SPECIAL], type.dtype)
            yield one(op, x, T=type, out=TensorType.BOOL)


def _complex() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    for type in sorted(COMPLEX):
        x = (rng.normal(0, 0.7, (2, 5)) + 1j * rng.normal(0, 0.7, (2, 5))).astype(type.dtype)
        for op in sorted(_DOMAINS.keys() - set(_REAL_ONLY)):
            yield one(op, x, T=type, tolerance=TOLERANCE[type])
        zeros = np.array([0, 1j, -3 + 4j], type.dtype)
        yield one("Sign", zeros, T=type, tolerance=TOLERANCE[type], name="Sign-zero")


def _integers() -> Iterator[Case]:
    for type in sorted(INTEGERS):
        low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
        x = np.array([[low, high, 3, 0, 1, *([-1, -8] if low else [2, 8])]], type.dtype)
        for op in ("Square", "Invert", *(["Abs", "Neg", "Sign"] if type in SIGNED else [])):
            yield one(op, x, T=type)
        yield one("PopulationCount", x, T=type, out=TensorType.UINT8)
        yield one("PopulationCount", x[0, 1], T=type, out=TensorType.UINT8)


def _parts() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for type, part in _PARTS.items():
        real, imaginary = (rng.normal(0, 2, shape).astype(part.dtype) for shape in ((2, 3), (3,)))
        x = real + imaginary.astype(type.dtype) * 1j
        x[0] = [0, -2, 3j]
        out = TensorType[part.name]
        for op in ("Real", "Imag", "Angle", "ComplexAbs"):
            yield one(op, x, T=type, Tout=part, out=out, tolerance=TOLERANCE[part])
        yield one("Conj", x, T=type)
        yield one("Complex", real, imaginary, T=part, Tout=type, out=TensorType[type.name])


def _clips() -> Iterator[Case]:
    for type in (DataType.FLOAT32, DataType.FLOAT16, DataType.INT32, DataType.UINT8):
        x = np.array([[1, 5, 9], [3, 4, 7]], type.dtype)
        low, high = type.dtype.type(2), type.dtype.type(6)
        yield one("ClipByValue", x, np.array(low), np.array(high), T=type)
        yield one("ClipByValue", x, np.array(high), np.array(low), T=type, name="ClipByValue-wrong")
        yield one("ClipByValue", x, np.full_like(x, low), x, T=type, name="ClipByValue-arrays")
    x = np.array(SPECIAL, np.float32)
    for bounds in ((-1, 1), (np.nan, 1), (-1, np.nan), (-np.inf, np.inf)):
        yield one("ClipByValue", x, *np.array(bounds, np.float32), T=DataType.FLOAT32)
