"""Sketches: models that grow operator by operator, such that all operands fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.options import OPTIONS_OF_OPERATOR, StableHLOCompositeOptions
from delegraph.testing.one_op import TensorDef, constant
from delegraph.testing.operator_case import Fed, OperatorCase
from delegraph.testing.operator_cases.convolutions import CLAMPED
from delegraph.testing.random_operands import RandomOperands
from delegraph.testing.subgraphs import Graph, Op, records_of

SPREAD = 73.0
"""Approximate standard deviation of random INT8 weights."""


class Sketch:
    """A model whose next operator reads the result of the last one.

    Attributes:
        random: generator of the operators' shapes, options and values.
        y: result of the last operator; at first a graph input.
        made: the first graph input and all results, in order.
    """

    def __init__(self, random: RandomOperands, type: str, shape: Sequence[int]) -> None:
        self.random = random
        self._fed: list[Fed] = []
        self._ops: list[Op] = []
        self.y = self._fed_as(random.output(type, shape))
        self.made = [self.y]

    @property
    def type(self) -> str:
        """Type of the last result."""
        return self.y.type.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the last result."""
        return self.y.shape

    def fed(self, shape: Sequence[int], like: TensorDef | None = None) -> TensorDef:
        """Return a new graph input of *shape* with the type of the last result.

        Args:
            shape: shape of the input.
            like: tensor whose quantization the input gets, if given.
        """
        return self._fed_as(self.result(shape, like=like))

    def _fed_as(self, definition: TensorDef) -> TensorDef:
        values = self.random.values(definition.type.name, definition.shape, spread=1.0)
        self._fed.append(Fed(values, definition))
        return definition

    def constant(self, shape: Sequence[int]) -> TensorDef:
        """Return a random constant with the type of the last result."""
        return self.random.constant(self.type, shape, spread=1.0)

    def integers(self, values: Any) -> TensorDef:
        """Return an INT32 constant, such as a shape or paddings."""
        return constant(np.array(values, np.int32))

    def weights(self, shape: Sequence[int], axis: int, taps: int, y: TensorDef) -> list[TensorDef]:
        """Return weights and bias of a layer from the last result to *y*.

        *axis* is that of the output channels. A sum has *taps* products; integer weights get scales
        that keep sums in range.
        """
        rng, channels = self.random.rng, shape[axis]
        if self.type == "FLOAT32":
            weight = rng.normal(0, taps**-0.5, shape).astype(np.float32)
            return [constant(weight), constant(rng.normal(size=channels).astype(np.float32))]
        x_scale, y_scale = _scale(self.y), _scale(y)
        scales = np.full(channels, y_scale / (x_scale * taps**0.5 * SPREAD))
        if self.type == "UINT8":
            type, low, high, zero_point, scales = "UINT8", 0, 255, 121, scales[:1]
        else:
            type, low, high, zero_point = "INT8", -127, 127, 0
            scales *= rng.uniform(0.5, 1, channels)
        values = rng.integers(low, high, shape, endpoint=True)
        bias = rng.integers(-3000, 3000, channels)
        wide = bias.astype(np.int64 if self.type == "INT16" else np.int32)
        return [
            constant(values, type, scale=scales.tolist(), zero_point=zero_point, axis=axis),
            constant(wide, scale=(x_scale * scales).tolist()),
        ]

    def result(self, shape: Sequence[int], *, like: TensorDef | None = None) -> TensorDef:
        """Return a result tensor of the last result's type; quantized as *like*, if given."""
        if like is None:
            return self.random.output(self.type, shape)
        return replace(like, shape=tuple(shape), data=None)

    def add(self, op: str, inputs: Sequence[TensorDef], y: TensorDef, **options: Any) -> None:
        """Append the operator *op*; its output *y* becomes the last result.

        *options* are fields of the operator's options record.
        """
        self.y = self.aside(op, inputs, y, **options)
        self.made.append(y)

    def aside(
        self, op: str, inputs: Sequence[TensorDef], y: TensorDef, **options: Any
    ) -> TensorDef:
        """Append *op* and return its result *y*, which does not become the last result.

        A later operator reads *y* as its second operand. *options* are fields of the operator's
        options record.
        """
        table = OPTIONS_OF_OPERATOR.get(BuiltinOperator[op])
        self._ops.append(Op(op, inputs, [y], None if table is None else table(**options)))
        return y

    def case(self, composite: float) -> tuple[OperatorCase, tuple[str, ...]]:
        """Return the model as a case of its first operator, and the names of all its operators.

        The model's output is the last result; sometimes an earlier result is an output, too. With
        the chance
        *composite* the model is one STABLEHLO_COMPOSITE, and the operators are its decomposition.
        """
        outputs, inner = [self.y], self.made[1:-1]
        if inner and self.random.chance(0.15):
            outputs.append(self.random.pick(inner))
        names = tuple(op.name for op in self._ops)
        graphs = [Graph([given.definition for given in self._fed], outputs, self._ops)]
        if self.random.chance(composite):
            options = StableHLOCompositeOptions(name="pattern", decomposition_subgraph_index=1)
            whole = Op("STABLEHLO_COMPOSITE", graphs[0].inputs, outputs, options)
            graphs.insert(0, Graph(whole.inputs, outputs, [whole]))
            names = (whole.name, *names)
        arrays = tuple(given.array for given in self._fed)
        case = OperatorCase(names[0], records_of(*graphs), (arrays,), tolerance=CLAMPED)
        return case, names


def _scale(definition: TensorDef) -> float:
    quantization = definition.quantization
    assert quantization is not None
    assert quantization.scale is not None
    return float(quantization.scale[0])
