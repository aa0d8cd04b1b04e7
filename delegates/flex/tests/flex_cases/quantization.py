"""Cases of quantization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TYPES = (
    DataType.QINT8,
    DataType.QUINT8,
    DataType.QINT16,
    DataType.QUINT16,
    DataType.QINT32,
)
MODES = (b"MIN_COMBINED", b"MIN_FIRST", b"SCALED")
RANGES = ((-1.0, 2.0), (0.5, 3.0), (-3.0, -0.5), (-6.0, 6.0), (1.0, 1.0))


def cases() -> Iterator[Case]:
    yield from _fakes()
    yield from _quantized()
    yield from _dequantized()


def _fakes() -> Iterator[Case]:
    x = np.random.default_rng(1).normal(0, 3, (4, 3, 5)).astype(np.float32)
    x[0, 0] = 0, 1e9, -1e9, 0.5, -0.5
    ranges = ((-6.0, 6.0), (-0.3, 1.7), (0.0, 2.5), (-2.5, 0.0), (0.4, 3.1), (-5.0, -1.0))
    for low, high in ranges:
        limits = np.float32(low), np.float32(high)
        for bits in (8, 2, 16, 5):
            for narrow in (False, True):
                steps: dict[str, Any] = {"num_bits": bits, "narrow_range": narrow}
                yield one("FakeQuantWithMinMaxArgs", x, min=low, max=high, **steps)
                yield one("FakeQuantWithMinMaxVars", x, *limits, **steps)
    lows, highs = np.array(ranges[:5], np.float32).T
    for narrow in (False, True):
        steps = {"num_bits": 8, "narrow_range": narrow}
        for part in (x, x[0], x[0, 0], np.tile(x, (2, 1, 1, 1))):
            yield one("FakeQuantWithMinMaxVarsPerChannel", part, lows, highs, **steps)
    zero = np.float32(0)
    yield one("FakeQuantWithMinMaxVars", x, zero, zero)
    yield one("FakeQuantWithMinMaxArgs", x[:0])


def _quantized() -> Iterator[Case]:
    x = np.random.default_rng(2).normal(0, 2, 40).astype(np.float32)
    x[:6] = 0, 0.5, -0.5, 1e9, -1e9, 2
    for type in TYPES:
        out = (TensorType[type.dtype.name.upper()], TensorType.FLOAT32, TensorType.FLOAT32)
        for mode in MODES:
            for low, high in RANGES:
                limits = np.float32(low), np.float32(high)
                for rounding in (b"HALF_AWAY_FROM_ZERO", b"HALF_TO_EVEN"):
                    if rounding == b"HALF_AWAY_FROM_ZERO" or mode == b"SCALED":
                        yield one(
                            "QuantizeV2",
                            x,
                            *limits,
                            T=type,
                            mode=mode,
                            round_mode=rounding,
                            narrow_range=mode == b"SCALED" and low == -1.0,
                            axis=-1,
                            ensure_minimum_range=0.01,
                            out=out,
                        )
    lows, highs = np.array([[-1, 0.5, -2], [2, 3, 0]], np.float32)
    matrix = x[:24].reshape(2, 3, 4)
    for mode in (b"MIN_COMBINED", b"SCALED"):
        out = (TensorType.INT8, TensorType.FLOAT32, TensorType.FLOAT32)
        yield one("QuantizeV2", matrix, lows, highs, T=DataType.QINT8, mode=mode, axis=1, out=out)


def _dequantized() -> Iterator[Case]:
    for type in TYPES:
        limits = np.iinfo(type.dtype)
        last = limits.max - (1 << 8 if type is DataType.QINT32 else 0)  # TensorFlow's floats end
        x = np.linspace(limits.min, last, 30).astype(type.dtype)
        for mode in MODES:
            for low, high in RANGES:
                yield one(
                    "Dequantize",
                    x,
                    np.float32(low),
                    np.float32(high),
                    T=type,
                    mode=mode,
                    narrow_range=low == -1.0,
                    axis=-1,
                    dtype=DataType.FLOAT32,
                    out=TensorType.FLOAT32,
                )
        half = {"dtype": DataType.BFLOAT16, "mode": b"MIN_COMBINED", "out": TensorType.BFLOAT16}
        yield one("Dequantize", x, np.float32(-1), np.float32(2), T=type, **half)
    x = np.arange(-60, 60, 5, np.int8).reshape(2, 3, 4)
    lows, highs = np.array([[-1, 0.5, -2], [2, 3, 0]], np.float32)
    for mode in (b"MIN_COMBINED", b"SCALED"):
        attrs = {"T": DataType.QINT8, "mode": mode, "axis": 1, "dtype": DataType.FLOAT32}
        yield one("Dequantize", x, lows, highs, **attrs, out=TensorType.FLOAT32)
