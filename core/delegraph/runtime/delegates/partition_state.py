"""Variables and resources that a partition changes, saved so that they can be restored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import NamedTuple
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.runtime.delegates.result_checks import Expected


class PartitionState:
    """The variables and resources that a partition may change.

    A partition that calls another subgraph, or has a custom operator, may change all of them.

    Attributes:
        variables: the variable tensors.
    """

    def __init__(self, subgraph: Subgraph, delegate_node: Node) -> None:
        self._subgraph = subgraph
        nodes = list(subgraph.plan.model_nodes(delegate_node))
        registrations = {id(each): each for _, each in nodes}.values()
        is_custom = any(each.builtin_code == BuiltinOperator.CUSTOM for each in registrations)
        reaches_all = is_custom or (len(subgraph.session.callees) > 1 and _calls_any(nodes))
        read = dict.fromkeys(i for node, _ in nodes for i in node.inputs if i >= 0)
        tensors = [subgraph.tensors[i] for i in read]
        self.variables = [tensor for tensor in tensors if tensor.is_variable]
        if reaches_all:
            callees = enumerate(subgraph.session.callees)
            others = [callee for index, callee in callees if index != subgraph.spec.index]
            self.variables += [t for callee in others for t in callee.tensors if t.is_variable]
        self._has_resources = reaches_all or any(t.type in OBJECT_TYPES for t in tensors)

    def __bool__(self) -> bool:
        return bool(self.variables) or self._has_resources

    def save(self) -> SavedState:
        """Return a copy of the present values."""
        for tensor in self.variables:
            self._subgraph.buffers.make_readable(tensor)
        return SavedState(
            self.variables, self._subgraph.session.resources if self._has_resources else None
        )


class SavedState:
    """Values of variables and resources at one moment."""

    def __init__(self, variables: Iterable[Tensor], resources: dict[Any, Any] | None) -> None:
        self._variables = [
            (tensor, tensor.data, tensor.data.copy())
            for tensor in variables
            if tensor.data is not None
        ]
        self._resources = resources
        self._values = {} if resources is None else dict(_copied(resources))

    def put_back(self) -> None:
        """Restore these values of variables and resources."""
        for tensor, data, values in self._variables:
            np.copyto(data, values)
            tensor.data = data
            tensor.data_is_stale = False
        if self._resources is not None:
            for key, value in list(self._resources.items()):
                if _is_value(value) and key not in self._values:
                    del self._resources[key]
            self._resources.update(_copied(self._values))

    def values(self) -> Iterator[tuple[Tensor, Any]]:
        """Yield each variable with its saved value."""
        return ((tensor, values) for tensor, _, values in self._variables)


def _copied(resources: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for key, value in resources.items():
        if _is_value(value):
            yield key, value.copy() if isinstance(value, np.ndarray | dict | list) else value


def _is_value(resource: object) -> bool:
    """Whether *resource* is part of the model's state.

    A set is not: it only records which subgraphs are running.
    """
    return not isinstance(resource, set)


def _calls_any(nodes: Iterable[tuple[Node, Registration]]) -> bool:
    """Whether one of *nodes* calls another subgraph."""
    from delegraph.graph.calls import called_subgraphs  # lazy import: most models have one subgraph

    return any(True for node, _ in nodes for _ in called_subgraphs(node.options))


class Before(NamedTuple):
    """State before a run of a delegate's node, to undo the run and to judge its outputs.

    Attributes:
        saved: copies of the variables that the node may change; None if not needed.
        arrays: each output tensor, with its shape and array.
        expected: required shape and range of each output; empty without the policy ``validate``.
    """

    saved: SavedState | None
    arrays: list[tuple[Tensor, tuple[int, ...], Any]]
    expected: list[Expected]
