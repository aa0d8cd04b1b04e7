"""Cases of recurrent networks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TOLERANCES = {DataType.FLOAT32: 1e-6, DataType.FLOAT16: 4e-3}
CELL = 3


def cases() -> Iterator[Case]:
    yield from _lstm_cells()
    yield from _sequences()
    yield from _gru_cells()


def _values(seed: int, type: DataType, *shapes: tuple[int, ...]) -> list[NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, shape).astype(type.dtype) for shape in shapes]


def _lstm_inputs(type: DataType, batch: int, size: int) -> list[NDArray[Any]]:
    """Return states and weights."""
    state, gates = (batch, CELL), 4 * CELL
    weights = ((size + CELL, gates), (CELL,), (CELL,), (CELL,), (gates,))
    return _values(batch, type, state, state, *weights)


def _lstm_cells() -> Iterator[Case]:
    for type, tolerance in TOLERANCES.items():
        attrs: dict[str, Any] = {"T": type, "out": (_stored(type),) * 7, "tolerance": tolerance}
        for batch, peeps, clip in itertools.product((2, 1), (False, True), (3.0, 0.3, -1.0)):
            (x,) = _values(9, type, (batch, 2))
            inputs = (x, *_lstm_inputs(type, batch, 2))
            bias = 1.0 if peeps else -0.5
            yield one(
                "LSTMBlockCell",
                *inputs,
                use_peephole=peeps,
                cell_clip=clip,
                forget_bias=bias,
                **attrs,
            )
        yield one("LSTMBlockCell", x, *_lstm_inputs(type, 1, 2), **attrs)


def _sequences() -> Iterator[Case]:
    for type, tolerance in TOLERANCES.items():
        attrs: dict[str, Any] = {"T": type, "out": (_stored(type),) * 7, "tolerance": tolerance}
        for op in ("BlockLSTM", "BlockLSTMV2"):
            for batch, count in itertools.product((2, 1), (5, 2, 0)):
                (x,) = _values(7, type, (5, batch, 2))
                inputs = (np.int64(count), x, *_lstm_inputs(type, batch, 2))
                for more in ({}, {"use_peephole": True, "cell_clip": 0.4}):
                    yield _defined(one(op, *inputs, **more, **attrs), count == 5)
        biased = {"forget_bias": 2.5, "cell_clip": 0.0}
        yield one("BlockLSTM", np.int64(5), *inputs[1:], **biased, **attrs)
        nothing = np.zeros((0, 1, 2), type.dtype)
        yield one("BlockLSTM", np.int64(0), nothing, *inputs[2:], **attrs)


def _defined(case: Case, is_whole: bool) -> Case:
    """Return the case with the outputs that are defined past the last step: cs and h."""
    return case if is_whole else replace(case, outputs=(case.outputs[1], case.outputs[6]))


def _gru_cells() -> Iterator[Case]:
    type = DataType.FLOAT32
    for batch, size in ((2, 4), (1, 1), (3, 0), (0, 2)):
        inputs = size + CELL
        shapes = ((inputs, 2 * CELL), (inputs, CELL), (2 * CELL,), (CELL,))
        values = _values(batch, type, (batch, size), (batch, CELL), *shapes)
        yield one("GRUBlockCell", *values, T=type, out=(_stored(type),) * 4, tolerance=1e-6)


def _stored(type: DataType) -> TensorType:
    return TensorType[type.name]
