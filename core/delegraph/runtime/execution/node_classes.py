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
        self._kinds: dict[int, int] = {}  # kind of each tensor that was looked at, a number
        self._numbers: dict[object, int] = {}  # number of each kind

    def clear(self) -> None:
        """Forget all classes, before other nodes are prepared."""
        self._made.clear()
        self._kinds.clear()
        self._numbers.clear()

    def look_again(self) -> None:
        """Forget the recorded tensor properties, because nodes may have changed shapes."""
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
        operands = node.inputs + node.outputs
        key = None if made is None else self._class_of(node, operands)
        if made is not None and (make := made.get(key)) is not None:
            return make(*map(self._tensors.__getitem__, operands))
        run = prepare(node, registration)
        self._kinds.clear()
        if not isinstance(run, TensorEval):
            return run
        if made is None:
            self._made[id(registration)] = {}
        elif key is not None and key == self._class_of(node, operands):
            made[key] = run.make
        return run.run

    def _class_of(self, node: Node, operands: Sequence[int]) -> tuple[int, ...] | None:
        """Return a key of all that preparing *node* depends on; None if it belongs to no class.

        The key has a number for each tensor's type and shape. A node belongs to no class if a
        tensor is absent or owned by a delegate. A delegate's tensor may have to be copied before it
        is read.
        """
        if node.delegate is not None or node.custom_options:
            return None
        kinds, key = self._kinds, [id(node.options), node.version, len(node.inputs)]
        for index in operands:
            if (kind := kinds.get(index)) is None:
                tensor = self._tensors[index]
                if index < 0 or tensor.delegate is not None:
                    return None
                kind = self._numbers.setdefault(_seen(tensor), len(self._numbers))
                kinds[index] = kind
            key.append(kind)
        return tuple(key)


_seen = attrgetter("type", "shape", "allocation_type", "quantization", "sparsity")
