"""Nodes of one class are prepared once: equal operators on tensors of equal types and shapes.

A model of ten thousand nodes has few classes of them. What a kernel decides for one node of a class
holds for the others, where it returns a ``TensorEval``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self._kinds: dict[int, int] = {}  # of tensors, as long as no kernel may have changed one
        self._numbers: dict[tuple[Any, ...], int] = {}  # of all that a kernel sees of a tensor

    def clear(self) -> None:
        """Forget all classes; called before other nodes are prepared."""
        self._made.clear()
        self._kinds.clear()
        self._numbers.clear()

    def prepared(
        self,
        node: Node,
        registration: Registration,
        prepare: Callable[[Node, Registration], Eval],
    ) -> Eval:
        """Return the evaluation of a node: of *prepare*, unless one of its class was prepared.

        A class is kept only where preparing its node changed no tensor: for the others, nothing is
        then to be changed, either.
        """
        made = self._made.get(id(registration))
        key = None if made is None else self._class_of(node)
        if made is not None and (make := made.get(key)) is not None:
            tensors = self._tensors
            return make(*[tensors[index] for index in node.inputs + node.outputs])
        run = prepare(node, registration)
        self._kinds.clear()
        if not isinstance(run, TensorEval):
            return run
        if made is None:
            self._made[id(registration)] = {}
        elif key is not None and key == self._class_of(node):
            made[key] = run.make
        return run.run

    def _class_of(self, node: Node) -> tuple[Any, ...] | None:
        """All that a preparation may depend on; None for a node that is prepared by itself.

        A node of a tensor that a delegate owns is such: its value may have to be copied first.
        """
        if node.delegate is not None or node.custom_options:
            return None
        options, kinds = node.options, self._kinds
        parts = [None if options is None else tuple(options), node.version, len(node.inputs)]
        for index in node.inputs + node.outputs:
            kind = kinds.get(index)
            if kind is None and (index < 0 or (kind := self._kind_of(index)) is None):
                return None
            parts.append(kind)
        return tuple(parts)

    def _kind_of(self, index: int) -> int | None:
        """Number that stands for what a kernel sees of a tensor; None if a delegate owns it."""
        tensor = self._tensors[index]
        if tensor.delegate is not None:
            return None
        seen = (
            tensor.type,
            tensor.shape,
            tensor.allocation_type,
            tensor.quantization,
            tensor.sparsity,
        )
        number = self._kinds[index] = self._numbers.setdefault(seen, len(self._numbers))
        return number
