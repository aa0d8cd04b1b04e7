"""Nodes of one class are prepared once: equal operators on tensors of equal types and shapes.

A model of ten thousand nodes has few classes of them. What a kernel decides for one node of a class
holds for the others, where it returns a ``TensorEval``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from delegraph.operators.registration import Eval, Node, Registration, TensorEval
from delegraph.operators.tensor import Tensor


class NodeClasses:
    """The classes of a subgraph's nodes, as far as the nodes are prepared.

    Args:
        tensors: of the subgraph, by index.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._made: dict[int, dict[Any, Callable[..., Eval]]] = {}  # by registration and class
        self._kinds = _TensorKinds(tensors)

    def clear(self) -> None:
        """Forget all classes; called before other nodes are prepared."""
        self._made.clear()
        self._kinds = _TensorKinds(self._tensors)

    def look_again(self) -> None:
        """Forget the kinds of tensors; called when nodes may have changed shapes."""
        self._kinds.clear()

    def prepared(
        self,
        node: Node,
        registration: Registration,
        prepare: Callable[[Node, Registration], Eval],
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
        """Return all that preparing *node* depends on, as a key; None if it has no class."""
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
    """Numbers that stand for all that a kernel sees of tensors, by tensor index.

    Forgotten by ``clear`` when a kernel may have changed a tensor. Missing are absent tensors, and
    those that a delegate owns: what they hold may have to be copied before it is read.
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
