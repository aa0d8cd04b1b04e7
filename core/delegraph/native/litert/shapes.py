"""Shapes inside a partition, and constants in front of it, worked out by Delegraph's kernels.

``REQUIRE_PROPAGATED_SHAPES`` promises a delegate's kernel the shapes of all tensors of its
partition. LiteRT keeps that promise only up to the first shape that it learns while invoking, so
for delegates in Python it is kept here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph.delegation.delegate import DelegateParams
from delegraph.delegation.partition_model import partition_as_model
from delegraph.errors import ModelError, NodeError, OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.memory.workspace import Workspace
from delegraph.native.litert.context import LiteRtContext
from delegraph.operators.registration import Node, Scratch
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.runtime.interpreter import Interpreter
from delegraph.schema.enums import BuiltinOperator

logger = logging.getLogger(__name__)

_WIDENING = (BuiltinOperator.DEQUANTIZE, BuiltinOperator.DENSIFY)


def propagate_shapes(context: LiteRtContext, delegate_node: Node) -> None:
    """Give the tensors of a partition the shapes that Delegraph's kernels work out.

    Shapes known only while invoking are left alone.

    Raises:
        NodeError: a kernel refuses its node.
    """
    params: DelegateParams = delegate_node.options
    shapes: Any = _Shapes(context)
    for index in params.nodes_to_replace:
        node, registration = context.get_node_and_registration(index)
        shapes.begin(node)
        try:
            registration.prepare(shapes, node)
        except OperatorError as error:
            raise NodeError(
                f"Node number {index} ({registration.name}) failed to prepare: {error}",
                node_index=index,
                op=registration.name,
            ) from error
        if shapes.open:
            break
    found = shapes.finish()
    for index, shape in found.items():
        tensor = context.tensors[index]
        if index in delegate_node.outputs:
            context.resize_tensor(tensor, shape)
        else:
            tensor.shape = shape


class _Shapes:
    """An ``OpContext`` in which kernels size tensors for themselves only."""

    def __init__(self, context: LiteRtContext) -> None:
        self._context: Any = context
        self._before: dict[int, tuple[tuple[int, ...], AllocationType, Any]] = {}
        self._workspace = Workspace()
        self.open: set[int] = set()

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self._context.tensors  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def begin(self, node: Node) -> None:
        """Get ready for the preparation of *node*."""
        self._workspace.begin_node()
        for index in node.outputs:
            if index >= 0 and index not in self._before:
                tensor = self.tensors[index]
                self._before[index] = tensor.shape, tensor.allocation_type, tensor.data
                if tensor.type not in OBJECT_TYPES:
                    tensor.allocation_type, tensor.data = AllocationType.ARENA_RW, None

    def finish(self) -> Mapping[int, tuple[int, ...]]:
        """Put back what tensors were; return the shapes that are known."""
        found = {}
        for index, (shape, allocation, data) in self._before.items():
            tensor = self.tensors[index]
            if index not in self.open:
                found[index] = tensor.shape
            tensor.shape, tensor.allocation_type, tensor.data = shape, allocation, data
        return found

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        tensor.shape = tuple(map(int, shape))
        if tensor.type in OBJECT_TYPES:
            tensor.data = np.empty(tensor.shape, object)

    def set_dynamic(self, tensor: Tensor) -> None:
        tensor.make_dynamic()
        self.open.add(tensor.index)

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        return self._workspace.reserve(shape, dtype)


def widened_constants(context: LiteRtContext, inputs: Iterable[int]) -> dict[int, NDArray[Any]]:
    """Return those of *inputs* that DEQUANTIZE and DENSIFY make of constants.

    Delegraph computes them before nodes are prepared, LiteRT when it first invokes.
    """
    spec = context.spec
    makers = {o.outputs[0]: o for o in spec.operators if o.builtin_code in _WIDENING and o.outputs}
    node_of = {operator.index: index for index, operator in context.operators.items()}
    wanted: dict[int, int] = {}  # tensor to the constant it is made of
    nodes: set[int] = set()
    for index in inputs:
        chain: set[int] = set()
        source = index
        while source in makers and makers[source].index in node_of:
            chain.add(node_of[makers[source].index])
            source = makers[source].inputs[0]
        if chain and 0 <= source < len(spec.tensors) and spec.tensors[source].data is not None:
            wanted[index] = source
            nodes |= chain
    if not wanted:
        return {}
    sources = tuple(sorted({*wanted.values()}))
    params = DelegateParams(None, tuple(sorted(nodes)), sources, tuple(wanted), context)
    try:
        return dict(zip(wanted, _computed(partition_as_model(context, params)), strict=True))
    except ModelError as error:
        logger.info("LiteRT will compute %d constants when it invokes: %s", len(wanted), error)
        return {}


def _computed(content: bytes) -> list[NDArray[Any]]:
    """Return the outputs of a model without inputs, read-only."""
    with Interpreter(model_content=content, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        interpreter.invoke()
        outputs = [
            np.asarray(interpreter.get_tensor(details["index"]))
            for details in interpreter.get_output_details()
        ]
    for output in outputs:
        output.flags.writeable = False
    return outputs
