"""Small quantised models of several operators, for tests of the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from delegraph.testing import TensorDef, constant, graph_model, tensor
from delegraph.testing.several_ops import NodeText


def q(*shape: int, type: str = "INT8", scale: float = 0.5, zero_point: int = 3) -> TensorDef:
    """Return a quantised tensor."""
    return tensor(shape, type, scale=scale, zero_point=zero_point)


def weights(*shape: int, seed: int = 0, scale: float = 0.25) -> TensorDef:
    """Return quantised weights."""
    values = np.random.default_rng(seed).integers(-127, 128, shape).astype(np.int8)
    return constant(values, scale=scale)


def bias(count: int) -> TensorDef:
    """Return biases that fit ``q`` and ``weights``."""
    return constant(np.arange(count, dtype=np.int32) * 100, scale=0.125)


def chain(
    nodes: Sequence[NodeText],
    *,
    inputs: str = "x",
    outputs: str,
    tensors: Mapping[str, TensorDef] | None = None,
    shape: tuple[int, ...] = (1, 4),
    **more: Any,
) -> bytes:
    """Return a model whose tensors are quantised, of *shape*, unless *tensors* says otherwise."""
    names = {name for node in nodes for text in node[1:3] for name in str(text).split()} - {"-"}
    defined = {name: q(*shape) for name in sorted(names)} | dict(tensors or {})
    return graph_model(nodes, inputs=inputs, outputs=outputs, tensors=defined, **more)
