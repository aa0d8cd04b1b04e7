"""Cases of random numbers.

Those with a state have seeds that no other case has: TensorFlow keeps a kernel, with its place in
the stream, for all nodes of equal attributes in a process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import FLOATS, Case, one

INTEGERS = (DataType.INT32, DataType.INT64)
SHAPE = np.array([3, 5], np.int32)
SEED = np.array([7, -3], np.int64)
KEY = np.array([0x9E3779B97F4A7C15], np.uint64)
COUNTERS = {
    "": np.array([5, 6], np.uint64),
    "wrapping": np.array([(1 << 64) - 2, (1 << 64) - 1], np.uint64),
}
ALG = np.array(1, np.int32)
LAST_BIT = 0.0 if sys.platform == "linux" else 2e-7
"""Other C libraries round logarithms and sines otherwise."""


def tensor_type(type: DataType) -> TensorType:
    return TensorType[type.name]


def cases() -> Iterator[Case]:
    yield from _stateless_floats()
    yield from _stateless_integers()
    yield from _keys()
    yield from _stateful()
    yield from _classes()
    yield from _gammas()
    yield from _poissons()


def _stateless_floats() -> Iterator[Case]:
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        for type in FLOATS:
            same = {"out": tensor_type(type), "dtype": type, "tolerance": LAST_BIT}
            types = {"T": DataType.INT32, "Tseed": DataType.INT64}
            yield one(op, SHAPE, SEED, **types, **same)
            for name, counter in COUNTERS.items():
                yield one(
                    op + "V2",
                    np.array([2, 9], np.int64),
                    KEY,
                    counter,
                    ALG,
                    Tshape=DataType.INT64,
                    name=op + "V2" + name,
                    **same,
                )
        types = {"T": DataType.INT64, "Tseed": DataType.INT32, "dtype": DataType.FLOAT32}
        for dims in ([], [0, 3], [1], [601]):
            inputs = (np.array(dims, np.int64), SEED.astype(np.int32))
            yield one(op, *inputs, **types, out=TensorType.FLOAT32, tolerance=LAST_BIT)
    yield one(
        "StatelessRandomUniformV2",
        SHAPE,
        KEY,
        COUNTERS[""],
        np.array(3, np.int32),
        dtype=DataType.FLOAT32,
        Tshape=DataType.INT32,
        out=TensorType.FLOAT32,
        name="automatic",
    )


def _stateless_integers() -> Iterator[Case]:
    key = (KEY, COUNTERS[""], ALG)
    for type in (*INTEGERS, DataType.UINT32, DataType.UINT64):
        same = {"out": tensor_type(type), "dtype": type}
        types = {"T": DataType.INT32, "Tseed": DataType.INT64}
        yield one("StatelessRandomUniformFullInt", SHAPE, SEED, **types, **same)
        yield one("StatelessRandomUniformFullIntV2", SHAPE, *key, Tshape=DataType.INT32, **same)
    for type in INTEGERS:
        full = np.iinfo(type.dtype)
        same = {"out": tensor_type(type), "dtype": type}
        for limits in ((-5, 12), (full.min, full.max), (3, 4)):
            low, high = (np.array(limit, type.dtype) for limit in limits)
            types = {"T": DataType.INT32, "Tseed": DataType.INT64}
            yield one("StatelessRandomUniformInt", SHAPE, SEED, low, high, **types, **same)
            types = {"Tshape": DataType.INT32}
            yield one("StatelessRandomUniformIntV2", SHAPE, *key, low, high, **types, **same)


def _keys() -> Iterator[Case]:
    both = (TensorType.UINT64, TensorType.UINT64)
    for seed in (SEED, np.array([-1, 2**31 - 1], np.int32)):
        type = DataType.INT64 if seed.dtype == np.int64 else DataType.INT32
        yield one("StatelessRandomGetKeyCounter", seed, Tseed=type, out=both)
        types = (*both, TensorType.INT32)
        yield one("StatelessRandomGetKeyCounterAlg", seed, Tseed=type, out=types)
    yield one("StatelessRandomGetAlg", out=TensorType.INT32)


def _stateful() -> Iterator[Case]:
    seeds = count(9001)
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for type in FLOATS:
            case = one(
                op,
                SHAPE,
                T=DataType.INT32,
                dtype=type,
                seed=next(seeds),
                seed2=-next(seeds),
                out=tensor_type(type),
                tolerance=LAST_BIT,
            )
            yield replace(case, runs=3)
    for type in INTEGERS:
        limits = (np.array(limit, type.dtype) for limit in (-5, 17))
        same = {"T": DataType.INT32, "Tout": type, "seed": next(seeds), "seed2": 0}
        yield replace(
            one("RandomUniformInt", SHAPE, *limits, **same, out=tensor_type(type)), runs=2
        )
    for x in (np.arange(11, dtype=np.int32), np.arange(12, dtype=np.float32).reshape(6, 2)):
        type = DataType.INT32 if x.ndim == 1 else DataType.FLOAT32
        yield replace(one("RandomShuffle", x, T=type, seed=next(seeds), seed2=3), runs=3)
    for x in (np.array(3, np.int32), np.zeros((0, 2), np.int32), np.array([[1, 2]], np.int32)):
        yield one("RandomShuffle", x, T=DataType.INT32, seed=next(seeds), seed2=3)


def _classes() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    seeds = count(9101)
    for type in (*FLOATS, *INTEGERS):
        logits = rng.normal(0, 2, (2, 4)).astype(type.dtype)
        for out in INTEGERS:
            same = {"T": type, "output_dtype": out, "out": tensor_type(out)}
            if type in FLOATS:
                drawn = one("Multinomial", logits, np.int32(6), seed=next(seeds), seed2=0, **same)
                yield replace(drawn, runs=2)
                yield one(
                    "StatelessMultinomial", logits, np.int32(7), SEED, Tseed=DataType.INT64, **same
                )
    same = {"T": DataType.FLOAT32, "output_dtype": DataType.INT64, "out": TensorType.INT64}
    odd = np.array([[0, np.inf, -np.inf, 1], [np.nan, 0, 0, -100]], np.float32)
    for number in (9, 0):
        yield one("StatelessMultinomial", odd, np.int32(number), SEED, Tseed=DataType.INT64, **same)


def _gammas() -> Iterator[Case]:
    seeds = count(9201)
    alphas = np.array([0.2, 1.0, 3.5, 40.0])
    for type in FLOATS[:3]:
        alpha, out = alphas.astype(type.dtype), tensor_type(type)
        # The C library's power is not Python's everywhere.
        tolerance = 1e-14 if type is DataType.FLOAT64 else 0.0
        shape = np.array([5], np.int32)
        attrs = {"S": DataType.INT32, "T": type, "seed": next(seeds), "seed2": 1}
        gamma = one("RandomGamma", shape, alpha, **attrs, tolerance=tolerance, out=out)
        yield replace(gamma, runs=2)
        shape = np.array([6, 4], np.int64)
        attrs = {"dtype": type, "T": DataType.INT64, "Tseed": DataType.INT64}
        yield one(
            "StatelessRandomGammaV2", shape, SEED, alpha, **attrs, tolerance=tolerance, out=out
        )
        attrs = {"dtype": type, "shape_dtype": DataType.INT64}
        key = (KEY, COUNTERS[""], ALG)
        yield one(
            "StatelessRandomGammaV3", shape, *key, alpha, **attrs, tolerance=tolerance, out=out
        )


def _poissons() -> Iterator[Case]:
    seeds = count(9301)
    counts = (*FLOATS[:3], *INTEGERS)
    for rate_type in counts:
        rates = np.array([0, 0.3, 4, 9.5, 10, 33, 200]).astype(rate_type.dtype)
        for type in counts:
            shape = np.array([4], np.int32)
            attrs = {"S": DataType.INT32, "R": rate_type, "dtype": type}
            attrs |= {"seed": next(seeds), "seed2": 1, "out": tensor_type(type)}
            yield one("RandomPoissonV2", shape, rates, **attrs)
            attrs = {"T": DataType.INT32, "Rtype": rate_type, "dtype": type}
            attrs |= {"Tseed": DataType.INT64, "out": tensor_type(type)}
            yield one("StatelessRandomPoisson", np.array([3, 7], np.int32), SEED, rates, **attrs)
