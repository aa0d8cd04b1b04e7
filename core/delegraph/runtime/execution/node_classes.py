"""Prepares equal nodes once: nodes of one operator on tensors of equal types and shapes.

A model of ten thousand nodes has few classes of equal nodes. If a kernel returns a ``TensorEval``
for one node of a class, that evaluation serves the other nodes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from delegraph.operators.registration import Eval, Node, Registration, TensorEval
from delegraph.operators.tensor import Tensor


class NodeClasses:
    """Groups equal nodes (same operator, options, types and shapes), to prepare one of each group.

    Args:
        tensors: tensors of the subgraph, by index.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._made: dict[int, dict[Any, Callable[..., Eval]]] = {}  # by registration and class
        self._kinds = _TensorKinds(tensors)

    def clear(self) -> None:
        """Forget all classes, before other nodes are prepared."""
        self._made.clear()
        self._kinds = _TensorKinds(self._tensors)

    def look_again(self) -> None:
        """Forget the recorded tensor properties; called when nodes may have changed shapes."""
        self._kinds.clear()

    def prepared(
        self, node: Node, registration: Registration, prepare: Callable[[Node, Registration], Eval]
    ) -> Eval:
        """Return the evaluation of *node*, made by *prepare* only for the first node of its class.

        Nodes of a class have the same registration, options, and types and shapes of tensors. A
        class is kept only if preparing its first node changed no tensor, so that its other nodes
        change none.
        """
        made = self._made.get(id(registration))
        key = None if made is None else self._class_of(node)
        if made is not None and (make := made.get(key)) is not None:
            return make(*map(self._tensors.__getitem__, node.inputs + node.outputs))
        run = prepare(node, registration)
        self._kinds.clear()
        if not isinstance(run, TensorEval):
            return run
        if made is None:
            self._made[id(registration)] = {}
        elif key is not None and key == self._class_of(node):
            made[key] = run.make
        return run.run

    def _class_of(self, node: Node) -> tuple[object, ...] | None:
        """Return a key of all that preparing *node* depends on; None if it belongs to no class."""
        if node.delegate is not None or node.custom_options:
            return None
        inputs = node.inputs
        try:
            seen = tuple(map(self._kinds.__getitem__, inputs + node.outputs))
        except KeyError:
            return None
        options = None if node.options is None else tuple(node.options)
        return options, node.version, len(inputs), seen


class _TensorKinds(dict[int, int]):
    """Mapping from tensor indices to numbers; equal numbers mean equal tensors for a kernel.

    ``clear`` must be called when a kernel may have changed a tensor. Absent tensors and tensors
    that a delegate owns are missing; the latter may have to be copied before they are read.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._numbers: dict[object, int] = {}

    def __missing__(self, index: int) -> int:
        tensor = self._tensors[index]
        if index < 0 or tensor.delegate is not None:
            raise KeyError(index)
        number = self[index] = self._numbers.setdefault(_seen(tensor), len(self._numbers))
        return number


_seen = attrgetter("type", "shape", "allocation_type", "quantization", "sparsity")
