"""Passes tensors to another subgraph and back, for control-flow operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import OpContext
from delegraph.operators.tensor import Shape, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Value:
    """Shape and array of a tensor at one moment; the array is not copied."""

    shape: tuple[int, ...]
    data: NDArray[Any]

    @classmethod
    def of(cls, tensor: Tensor) -> Value:
        """Return the present value of *tensor*."""
        return cls(tensor.shape, tensor.data)


class Callee:
    """A subgraph that a node calls, with its input and output tensors; recursion is an error.

    Attributes:
        inputs: input tensors of the subgraph; None for an absent input.
        outputs: output tensors of the subgraph.
        is_dynamic: whether an output's shape is known only while invoking.
    """

    def __init__(self, context: OpContext, index: int) -> None:
        subgraph = context.subgraph(index)
        self._subgraph = subgraph
        self._index = index
        self._active: set[int] = context.resources.setdefault("active subgraphs", set())
        tensors = subgraph.tensors
        self.inputs = [tensors[i] if i >= 0 else None for i in subgraph.inputs]
        self.outputs = [tensors[i] for i in subgraph.outputs]

    @property
    def is_dynamic(self) -> bool:
        """Whether a shape inside is known only during the run; valid after ``take_shapes``."""
        return self._subgraph.has_dynamic_tensors

    def check(self, inputs: Sequence[Tensor], outputs: int, what: str) -> None:
        """Check the types of the inputs, the number of outputs, and that the inputs have values.

        *what* names the subgraph in the error.

        Raises:
            OperatorError: the subgraph has another number of inputs or outputs, inputs of other
                types, a constant input, or an output that no node computes.
        """
        found = (len(self.inputs), len(self.outputs))
        if found != (len(inputs), outputs):
            raise OperatorError(
                f"{what} subgraph has {found[0]} inputs and {found[1]} outputs, "
                f"expected {len(inputs)} and {outputs}"
            )
        for tensor, given in zip(self.inputs, inputs, strict=True):
            if tensor is not None and tensor.type is not given.type:
                raise OperatorError(
                    f"{what} subgraph takes {tensor.type.name} as {tensor.name!r}, "
                    f"expected {given.type.name}"
                )
            if tensor is not None and tensor.is_constant:
                raise OperatorError(f"{what} subgraph takes {tensor.name!r}, which is a constant")
        self._check_outputs_are_made(what)

    def _check_outputs_are_made(self, what: str) -> None:
        subgraph = self._subgraph
        made = {*subgraph.inputs, *chain.from_iterable(o.outputs for o in subgraph.operators)}
        made |= {t.index for t in self.outputs if t.is_constant or t.is_variable}
        for index, tensor in zip(subgraph.outputs, self.outputs, strict=True):
            if index not in made - {-1}:
                raise OperatorError(
                    f"{what} subgraph returns {tensor!r}, which lacks data: it is no input, no "
                    "constant and no node's output"
                )

    def take_shapes(self, shapes: Sequence[Shape]) -> None:
        """Resize the subgraph's inputs to *shapes*, and prepare the subgraph."""
        for tensor, shape in zip(self.inputs, shapes, strict=True):
            if tensor is not None and tensor.shape != tuple(shape):
                self._subgraph.resize_input(tensor.index, tuple(shape))
        self._enter(self._subgraph.allocate)

    def take(self, values: Sequence[Value]) -> None:
        """Copy *values* into the subgraph's inputs; resize inputs whose shape differs."""
        pairs = list(zip(self.inputs, values, strict=True))
        if any(tensor is not None and tensor.shape != value.shape for tensor, value in pairs):
            self.take_shapes([value.shape for value in values])
        for tensor, value in pairs:
            if tensor is not None:
                put(tensor, value)

    def invoke(self) -> list[Value]:
        """Run the subgraph and return the values of its outputs."""
        self._enter(self._subgraph.invoke)
        return [Value.of(self._subgraph.readable(tensor.index)) for tensor in self.outputs]

    def _enter(self, work: Callable[[], None]) -> None:
        """Call *work* while the subgraph is marked as running; raise an error if it already runs.

        A subgraph must not call itself, directly or through others.
        """
        if self._index in self._active:
            raise OperatorError(f"subgraph {self._index} calls itself through other subgraphs")
        try:
            self._active.add(self._index)
            work()
        finally:
            self._active.discard(self._index)


def put(tensor: Tensor, value: Value) -> None:
    """Copy *value* into *tensor* of the same shape; strings are copied by reference."""
    if tensor.type in OBJECT_TYPES or tensor.data is None:
        tensor.data = value.data.copy()
    else:
        np.copyto(tensor.data, value.data)


def give_back(
    context: OpContext, outputs: Sequence[Tensor | None], values: Sequence[Value]
) -> None:
    """Copy the results *values* of a called subgraph into the outputs of the calling node.

    Args:
        context: context of the node.
        outputs: output tensors of the node; dynamic tensors are resized.
        values: outputs of the subgraph.

    Raises:
        OperatorError: the shape of an output that is not dynamic has changed.
    """
    for tensor, value in zip(outputs, values, strict=True):
        if tensor is None:
            continue
        if tensor.is_dynamic:
            context.resize_tensor(tensor, value.shape)
        elif tensor.shape != value.shape:
            raise OperatorError(
                f"a subgraph returned shape {list(value.shape)} for {tensor.name!r}, "
                f"expected {list(tensor.shape)}"
            )
        put(tensor, value)
