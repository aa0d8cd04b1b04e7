"""State of the rewrite of one builtin operator to Flex operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph.errors import ArgumentError
from delegraph.graph import NUMPY_DTYPES, OperatorSpec, TensorSpec
from delegraph.schema import tables
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import AttrValue, NodeDef


class CannotFlexify(ArgumentError):
    """Error: TensorFlow has no equivalent of a builtin operator with these options.

    Args:
        node: description of the operator.
        reason: the unsupported property.
    """

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"{node}: {reason}")
        self.reason = reason


@dataclass
class Rewrite:
    """A builtin operator, and the TensorFlow operators that replace it in the model.

    Attributes:
        operator: the builtin operator, with its typed options.
        tensors: tensors of the subgraph.
        added: tensors added for the Flex operators, with the values of constants.
        calls: the Flex operators, in order: NodeDef, inputs, outputs.
    """

    operator: OperatorSpec
    tensors: Sequence[TensorSpec]
    first_added: int
    added: list[tuple[tables.Tensor, NDArray[Any] | None]] = field(default_factory=list)
    calls: list[tuple[NodeDef, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    @property
    def inputs(self) -> list[TensorSpec]:
        """Inputs of the operator that are present."""
        return [self.tensors[i] for i in self.operator.inputs if i >= 0]

    @property
    def output(self) -> TensorSpec:
        """First output of the operator."""
        return self.tensors[self.operator.outputs[0]]

    @property
    def type(self) -> DataType:
        """Element type of the first input, as a TensorFlow type."""
        return DataType.of(self.inputs[0].type)

    def option(self, name: str, default: Any = None) -> Any:
        """Return option *name* of the builtin operator, or *default* if it has no such option."""
        return getattr(self.operator.options, name, default)

    def require(self, condition: bool, reason: str) -> None:
        """Raise CannotFlexify with *reason* unless *condition* is true."""
        if not condition:
            raise CannotFlexify(f"node {self.operator.index} ({self.operator.name})", reason)

    def constant(self, values: NDArray[Any]) -> int:
        """Add a constant with *values*; return the index of its tensor."""
        values = np.asarray(values)
        type = next(type for type, dtype in NUMPY_DTYPES.items() if dtype == values.dtype)
        return self._add(tables.Tensor(shape=values.shape, type=type, has_rank=True), values)

    def value(self, tensor: TensorSpec, what: str) -> NDArray[Any]:
        """Return a constant's values; raise CannotFlexify for a computed tensor.

        *what* names the tensor in the error.
        """
        self.require(tensor.data is not None, f"its {what} are no constant")
        data: Any = tensor.data
        return np.asarray(data.view(NUMPY_DTYPES[tensor.type])).reshape(tensor.shape)

    def temporary(self, shape: Sequence[int], type: TensorType, like: TensorSpec) -> int:
        """Return the index of a new tensor of *shape* and *type* between two Flex operators.

        If *shape* is the shape of *like*, dimensions that are unknown in *like* are also unknown in
        the new tensor.
        """
        is_open = -1 in like.shape_signature
        signature = like.shape_signature if is_open and tuple(shape) == like.shape else None
        return self._add(
            tables.Tensor(shape=tuple(shape), type=type, has_rank=True, shape_signature=signature),
            None,
        )

    def same_as_output(self) -> int:
        """Return the index of a new tensor with the shape and type of the first output."""
        return self.temporary(self.output.shape, self.output.type, self.output)

    def emit(
        self,
        op: str,
        inputs: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        **attrs: AttrValue,
    ) -> None:
        """Add the TensorFlow operator *op* to those that replace the builtin operator.

        Args:
            op: TensorFlow's name of the operator.
            inputs: indices of its input tensors; None means those of the builtin operator.
            outputs: indices of its output tensors; None means those of the builtin operator.
            attrs: attributes of the operator.
        """
        inputs = self.operator.inputs if inputs is None else inputs
        outputs = self.operator.outputs if outputs is None else outputs
        self.calls.append((NodeDef(op, attrs, len(inputs)), tuple(inputs), tuple(outputs)))

    def _add(self, record: tables.Tensor, values: NDArray[Any] | None) -> int:
        self.added.append((record.replace(name=f"flexified_{self._next}"), values))
        return self._next - 1

    @property
    def _next(self) -> int:
        return self.first_added + len(self.added)
