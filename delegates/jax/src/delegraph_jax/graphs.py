"""Graphs: the subgraphs of a partition with all shapes known.

Delegraph's kernels compute the shapes, on the partition as a separate model. In this model, the
body of a loop has the shapes of the loop's values, and the host's tensors are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from delegraph import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Interpreter,
    Node,
    PartitionModel,
    Registration,
    Rejection,
    Tensor,
)
from delegraph.errors import DelegraphError, OperatorError, in_words
from delegraph.graph import called_subgraphs

Supports = Callable[[Registration, Node, DelegateContext], bool | Rejection]
"""Function that returns whether a node is supported, or a rejection with the reason."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node to compute, with its operator and its name for messages.

    Attributes:
        node: the node.
        registration: registration of its operator.
        where: name of the node in messages, with its indices in the model.
    """

    node: Node
    registration: Registration
    where: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A subgraph that is ready to be computed: all shapes and all constants are known."""

    steps: Sequence[Step]
    tensors: Sequence[Tensor]
    inputs: Sequence[int]
    outputs: Sequence[int]

    @property
    def constants(self) -> list[Tensor]:
        """Constants that nodes read or that are outputs."""
        read = {i for step in self.steps for i in step.node.inputs if i >= 0}
        needed = (self.tensors[i] for i in sorted(read | {*self.outputs}))
        return [tensor for tensor in needed if tensor.is_constant]


def graphs_of(model: PartitionModel) -> list[Graph]:
    """Return the subgraphs of the partition *model*, with the numbers that they have in its file.

    Raises:
        OperatorError: a shape is known only during invoke.
        DelegraphError: a kernel of Delegraph rejects a node.
    """
    with prepared(model) as contexts:
        main, *called = contexts
        found = [_graph(main, model.nodes, "")]
        for context, index in zip(called, model.called, strict=True):
            found.append(_graph(context, context.get_execution_plan(), f" of subgraph {index}"))
        return found


def _graph(context: DelegateContext, numbers: Sequence[int], of: str) -> Graph:
    """Return the subgraph of *context* as a graph.

    *numbers* are its nodes' indices in the model.
    """
    steps = []
    for index, number in zip(context.get_execution_plan(), numbers, strict=True):
        node, registration = context.get_node_and_registration(index)
        steps.append(Step(node, registration, f"node {number} ({registration.name}){of}"))
        for tensor in (context.tensors[i] for i in node.outputs if i >= 0):
            if tensor.is_dynamic:
                raise OperatorError(
                    f"{steps[-1].where} gives {tensor.name!r} a shape that is known only while it "
                    "runs; XLA compiles fixed shapes"
                )
    return Graph(steps, [*context.tensors], [*context.inputs], [*context.outputs])


class _Looks(Delegate):
    """Delegate that claims no node, and only records the contexts of all subgraphs."""

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self) -> None:
        self.seen: dict[int, DelegateContext] = {}

    def name(self) -> str:
        return "looks"

    def prepare(self, context: DelegateContext) -> None:
        self.seen[context.subgraph_index] = context


@contextmanager
def prepared(model: PartitionModel) -> Iterator[list[DelegateContext]]:
    """Yield the contexts of the partition *model*'s subgraphs, prepared by Delegraph's kernels."""
    looks = _Looks()
    with Interpreter(model_content=model.content, delegates=[]) as interpreter:
        interpreter.modify_graph_with_delegate(looks)
        interpreter.allocate_tensors()
        yield [looks.seen[index] for index in sorted(looks.seen)]


def calls(node: Node) -> bool:
    """Whether *node* calls subgraphs."""
    return any(True for _ in called_subgraphs(node.options))


def check_called(node: Node, context: DelegateContext, supports: Supports) -> bool | Rejection:
    """Whether a delegate supports all nodes of the subgraphs that *node* calls.

    The called subgraphs must have fixed shapes.
    """
    read = {i for i in node.inputs if i >= 0}
    written = tuple(i for i in node.outputs if i >= 0)
    alone = DelegateParams(None, (node.index,), tuple(sorted(read)), written, context)
    try:
        model = alone.partition_model()
        with prepared(model) as (_, *called):
            for index, inner in zip(model.called, called, strict=True):
                for number in inner.get_execution_plan():
                    inner_node, registration = inner.get_node_and_registration(number)
                    answer = supports(registration, inner_node, inner)
                    if not answer:
                        where = f"node {number} ({registration.name}) of subgraph {index}"
                        return Rejection("subgraph", f"{where}: {answer}")
        graphs_of(model)
    except DelegraphError as error:
        return Rejection("subgraph", in_words(error))
    return True
