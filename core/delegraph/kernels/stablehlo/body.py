"""Bodies: subgraphs on scalars that StableHLO operators apply to whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.model import OperatorSpec
from delegraph.kernels.stablehlo.elementwise import ELEMENTWISE
from delegraph.operators.registration import CallableSubgraph, OpContext
from delegraph.operators.subgraph_call import Callee, Value
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType

Array = NDArray[Any]

_ELEMENTWISE = ELEMENTWISE | {
    "ABS",
    "ADD",
    "DIV",
    "EQUAL",
    "EXP",
    "GREATER",
    "GREATER_EQUAL",
    "LESS",
    "LESS_EQUAL",
    "LOG",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "LOGICAL_OR",
    "MAXIMUM",
    "MINIMUM",
    "MUL",
    "NEG",
    "NOT_EQUAL",
    "SELECT",
    "SELECT_V2",
    "STABLEHLO_CLAMP",
    "STABLEHLO_COMPARE",
    "STABLEHLO_CONVERT",
    "STABLEHLO_SELECT",
    "SUB",
}


class Body:
    """A subgraph from scalars to scalars, applied to arrays element by element.

    A subgraph of element-wise operators that read no constants runs once, on arrays. Any other
    subgraph runs once for every element.

    Args:
        context: context of the node that calls the subgraph.
        index: index of the subgraph.
        inputs: tensors whose types the subgraph's inputs must have.
        outputs: number of outputs that the subgraph must have.

    Raises:
        OperatorError: the numbers or types of inputs or outputs differ.
    """

    def __init__(
        self, context: OpContext, index: int, inputs: Sequence[Tensor], outputs: int
    ) -> None:
        self._subgraph: CallableSubgraph = context.subgraph(index)
        self._callee = Callee(context, index)
        self._callee.check(inputs, outputs, "body")
        self._input_types = [tensor.type for tensor in inputs]
        self._callee.take_shapes([()] * len(inputs))
        self._runs_on_arrays = all(self._is_elementwise(op) for op in self._subgraph.operators)

    @property
    def input_types(self) -> list[TensorType]:
        """Element types of the inputs of the body subgraph."""
        return self._input_types

    @property
    def output_types(self) -> list[TensorType]:
        """Element types of the outputs of the body subgraph."""
        return [tensor.type for tensor in self._callee.outputs]

    @property
    def operation(self) -> tuple[OperatorSpec, bool] | None:
        """The body's only operator, and whether its inputs are swapped; None for larger bodies."""
        operators = self._subgraph.operators
        if len(operators) != 1 or operators[0].outputs != tuple(self._subgraph.outputs):
            return None
        (operator,) = operators
        activation = getattr(operator.options, "fused_activation_function", 0)
        if activation != ActivationFunctionType.NONE:
            return None
        inputs = tuple(self._subgraph.inputs)
        pairs = {inputs[i : i + 2]: False for i in range(0, len(inputs), 2)}
        pairs |= {(b, a): True for a, b in list(pairs)}
        found = pairs.get(operator.inputs)
        return None if found is None else (operator, found)

    def position(self, operator: OperatorSpec) -> int:
        """Return the number of the input pair that an operator from :attr:`operation` reads.

        Inputs 0 and 1 are pair 0, inputs 2 and 3 pair 1, and so on.
        """
        return min(self._subgraph.inputs.index(i) for i in operator.inputs) // 2

    def _is_elementwise(self, operator: OperatorSpec) -> bool:
        tensors = self._subgraph.tensors
        return operator.name in _ELEMENTWISE and not any(
            tensors[i].is_constant for i in operator.inputs if i >= 0
        )

    def __call__(self, *arrays: Array) -> list[Array]:
        """Run the body on arrays of one shape; return the results as new arrays of that shape."""
        if self._runs_on_arrays:
            return self._run(arrays)
        shape = arrays[0].shape
        results = [np.empty(shape, tensor.dtype) for tensor in self._callee.outputs]
        for index in np.ndindex(*shape):
            values = self._run([np.asarray(array[index]) for array in arrays])
            for result, value in zip(results, values, strict=True):
                result[index] = value
        return results

    def _run(self, arrays: Sequence[Array]) -> list[Array]:
        self._callee.take([Value(array.shape, array) for array in arrays])
        return [value.data.copy() for value in self._callee.invoke()]
