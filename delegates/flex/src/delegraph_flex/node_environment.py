"""Makes the environment that the nodes of one interpreter share, from the delegate's context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray

from delegraph import DelegateContext
from delegraph.delegation import raise_if_requested
from delegraph.operators import Callee, Value
from delegraph_flex.flex_node import FunctionSignature, NodeEnvironment


def node_environment(context: DelegateContext) -> NodeEnvironment:
    """Return the resources, functions and threads of *context*'s subgraph for its operators.

    All subgraphs of a model share the resources.
    """
    functions = Functions(context)
    return NodeEnvironment(
        context.resources,
        functions.call,
        functions.signature,
        context.recommended_num_threads,
        partial(raise_if_requested, context),
    )


class Functions:
    """The functions of a model: subgraphs that operators call by name."""

    def __init__(self, context: DelegateContext) -> None:
        self._context = context
        self._callees: dict[str, Callee] = {}

    def signature(self, name: str) -> FunctionSignature:
        """Return the types and shapes of the inputs and outputs of the function *name*.

        Raises:
            KeyError: the function does not exist.
        """
        subgraph = self._context.subgraph(self._index(name))
        inputs = [subgraph.tensors[i] for i in subgraph.inputs]
        outputs = [subgraph.tensors[i] for i in subgraph.outputs]
        return FunctionSignature(
            tuple(tensor.type for tensor in inputs),
            tuple(tensor.shape_signature for tensor in inputs),
            tuple(tensor.type for tensor in outputs),
            tuple(tensor.shape_signature for tensor in outputs),
        )

    def call(self, name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Run the function *name* on *arrays* and return copies of its outputs.

        Raises:
            KeyError: the function does not exist.
        """
        callee = self._callees.get(name)
        if callee is None:
            callee = self._callees[name] = Callee(self._context, self._index(name))
            callee.take_shapes([array.shape for array in arrays])
        callee.take([Value(array.shape, array) for array in arrays])
        return [value.data.copy() for value in callee.invoke()]

    def _index(self, name: str) -> int:
        names = list(self._context.subgraph_names)
        if name not in names:
            raise KeyError(f"the model has no function {name!r}")
        return names.index(name)
