"""Cases of quantization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TYPES = (DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32)
MODES = (b"MIN_COMBINED", b"MIN_FIRST", b"SCALED")
RANGES = ((-1.0, 2.0), (0.5, 3.0), (-3.0, -0.5), (-6.0, 6.0), (1.0, 1.0))


def cases() -> Iterator[Case]:
    yield from _fakes()
    yield from _quantized()
    yield from _dequantized()
    yield from _there_and_back()


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


def _there_and_back() -> Iterator[Case]:
    x = np.random.default_rng(5).normal(0, 3, (4, 3, 5))
    x[0, 0] = 0, 1e9, -1e9, 0.5, -0.49999997
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        values = x.astype(type.dtype)
        for attrs in _quantizations():
            bits = attrs.pop("num_bits")
            low, high = (values.dtype.type(v) for v in attrs.pop("range"))
            yield one("QuantizeAndDequantizeV4", values, low, high, T=type, num_bits=bits, **attrs)
            half_up = {**attrs, "round_mode": b"HALF_UP", "num_bits": bits}
            yield one("QuantizeAndDequantizeV2", values, low, high, T=type, **half_up)
            yield one("QuantizeAndDequantizeV3", values, low, high, np.int32(bits), T=type, **attrs)
        yield from _channels(values[1:], type)
    odd = np.float32([np.nan, np.inf, -np.inf, 3, -2])
    for part in (odd, odd[[0, 3, 4]], odd[:0], odd[:1]):
        for has_range in (False, True):
            limits = np.float32(-4), np.float32(3)
            given = {"T": DataType.FLOAT32, "range_given": has_range}
            yield one("QuantizeAndDequantizeV2", part, *limits, **given)


def _quantizations() -> Iterator[dict[str, Any]]:
    for low, high in (*RANGES[:4], (0.0, 0.0), (-1.0, 0.0)):
        for bits, is_signed in ((8, True), (4, False), (1, True), (61, True), (62, False)):
            for narrow, given in ((False, True), (True, True), (True, False)):
                yield {
                    "range": (low, high),
                    "num_bits": bits,
                    "signed_input": is_signed,
                    "narrow_range": narrow,
                    "range_given": given,
                }


def _channels(x: Any, type: DataType) -> Iterator[Case]:
    """Yield ranges for each channel, which TensorFlow takes with bits in a tensor only."""
    lows, highs = np.array([[-1, 0.5, -2, 2], [2, 3, 0, -2]], x.dtype)
    bits = np.int32(4)
    for axis in (0, 1, 2):
        count = x.shape[axis]
        low, high = lows[:count], highs[:count]
        if axis < 2:
            yield one(
                "QuantizeAndDequantizeV3", x, low, high, bits, T=type, range_given=True, axis=axis
            )
        for op, more in (("V2", []), ("V3", [bits]), ("V4", [])):
            name = f"QuantizeAndDequantize{op}"
            yield one(name, x, x[0, 0, 0], x[0, 0, 0], *more, T=type, range_given=False, axis=axis)
