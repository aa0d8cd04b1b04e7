"""Prepares and runs nodes one after the other, for each runtime that has kernels.

Nodes are prepared up to the first node whose output shape is known only after it has run. The
prepared nodes get memory and run; then preparation continues. If node 1 has such a shape::

    prepare 0 1, allocate, run 0 1, prepare 2 3, allocate, run 2 3

The preparation for a shape is kept for the next run, and repeated only if the shape has changed.

Source: Subgraph::PrepareOpsAndTensors and Subgraph::Invoke, tflite/core/subgraph.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from delegraph.errors import CallCancelledError, OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import dataclass
from delegraph.runtime.execution.bound_steps import (
    BoundRun,
    bound_run,
    cause_of,
    followed,
    is_asynchronous,
    run_in_order,
)
from delegraph.runtime.execution.calls import Cancellation
from delegraph.runtime.execution.node_classes import NodeClasses
from delegraph.runtime.subgraph_memory import SubgraphMemory, checked_shape

if TYPE_CHECKING:
    from delegraph.operators.registration import Eval, Node, Registration
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.execution.node_errors import Verb
    from delegraph.runtime.execution.overlap import Overlap
    from delegraph.runtime.execution.schedule import Schedule

Step: TypeAlias = "tuple[Node, Registration]"
"""A node and its registration."""

PrepareNode: TypeAlias = "Callable[[Node, Registration], Eval]"
"""Function that prepares one node; its error becomes the node's error."""

Wrap: TypeAlias = "Callable[[Eval, Node, Registration], Eval]"
"""Function that returns an evaluation that does more than the given one, such as timing it."""


@dataclass(slots=True)
class _Stop:
    """The place where preparation stops, because a shape depends on values that a node computes.

    Attributes:
        end: number of nodes up to that node, which is included.
        shapes: shapes of its outputs for which the nodes after it were prepared.
    """

    end: int
    shapes: tuple[tuple[int, ...], ...] = ()


class StepRunner:
    """Prepares nodes in order, allocates their memory and runs them.

    Args:
        tensors: tensors of the subgraph, by index.
        prepare: function that prepares one node.
        memory: memory of the tensors that the nodes write; None if the caller provides it.
        resizable: indices of tensors that nodes may resize; None for all tensors except constants.
        after_each: function that is called after each node has run, or None.
        by_class: whether nodes of one class may be prepared together.
        cancellation: stop request that is read before each node, or None.

    Attributes:
        has_memory: whether the prepared nodes have memory; then only dynamic tensors can be
            resized.
        nodes: the nodes, in the order in which they run.
        evals: evaluations of the nodes that are prepared.
        overlap: runner of asynchronous nodes; None if no nodes can run at the same time.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        prepare: PrepareNode,
        memory: SubgraphMemory | None = None,
        *,
        resizable: Container[int] | None = None,
        after_each: Callable[[], None] | None = None,
        by_class: bool = False,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.has_memory = False
        self._cancellation = cancellation or Cancellation()
        self._tensors = tensors
        self._prepare = prepare
        self._classes = NodeClasses(tensors) if by_class else None
        self._memory = memory
        self._resizable = resizable
        self._after_each = after_each
        self._is_cut_short = False  # whether the last run ended while it prepared nodes
        self.nodes: list[Step] = []
        self.overlap: Overlap | None = None
        self.evals: list[Eval] = []
        self._stops: list[_Stop] = []
        self._open: set[int] = set()  # outputs of unknown shape, of the node being prepared
        self._left_open: set[int] = set()  # outputs whose shape the kernel has not set
        self._first_use: dict[int, int] | None = None  # first use of each tensor; see first_uses

    # -- preparing -----------------------------------------------------------------------------

    def prepare(self, nodes: Iterable[Step]) -> None:
        """Prepare *nodes* in order, up to the first with an unknown output shape.

        Raises:
            NodeError: a node cannot be prepared.
        """
        self.clear()
        self.nodes = list(nodes)
        self._prepare_from(0)

    def clear(self) -> None:
        """Wait for asynchronous nodes, then forget all nodes."""
        self.settle()
        self.overlap = None
        self.nodes.clear()
        self.evals.clear()
        self._stops.clear()
        self._first_use = None
        if self._classes is not None:
            self._classes.clear()
        self._is_cut_short = self.has_memory = False

    @property
    def has_open_shapes(self) -> bool:
        """Whether any shape is known only while the nodes run."""
        return bool(self._stops)

    def first_open(self) -> tuple[Node, Registration, int]:
        """Return the first node with an unknown output shape, and the index of that output."""
        node, registration = self.nodes[self._stops[0].end - 1]
        tensor = next(i for i in node.outputs if i >= 0 and self._tensors[i].is_dynamic)
        return node, registration, tensor

    def known_outputs(self) -> set[int]:
        """Return the indices of the prepared nodes' outputs whose shapes are known."""
        ready = self.nodes[: len(self.evals)]
        return {index for node, _ in ready for index in node.outputs} - self._open

    def _prepare_from(self, first: int) -> None:
        self._open = set()
        self.has_memory = False
        classes, evals, cancellation = self._classes, self.evals, self._cancellation
        if classes is not None:
            classes.look_again()
        with np.errstate(all="ignore"):  # as during invoke: any scales are allowed
            try:
                for node, registration in self.nodes[first:]:
                    if cancellation.reason:
                        cancellation.raise_if_requested()
                    if classes is None:
                        evals.append(self._prepare_node(node, registration))
                    else:
                        evals.append(classes.prepared(node, registration, self._prepare_node))
                    if self._open:
                        self._stops.append(_Stop(len(evals)))
                        return
            except Exception as error:  # noqa: BLE001 - raised on as the node's
                raise self._failure(len(evals), "prepare", error) from cause_of(error)

    def _prepare_node(self, node: Node, registration: Registration) -> Eval:
        outputs = [self._tensors[index] for index in node.outputs if index >= 0]
        if self._memory is not None:
            self._open = {tensor.index for tensor in outputs if tensor.is_dynamic}
            self._memory.workspace.begin_node()
        self._left_open.clear()
        types = [tensor.type for tensor in outputs]
        for tensor in outputs:
            if tensor.is_constant:
                raise OperatorError(f"output {tensor!r} is constant and cannot be written")
        run = self._prepare(node, registration)
        for tensor, type_ in zip(outputs, types, strict=True):
            if tensor.type is not type_:  # earlier nodes may have used the declared type
                self._require_unused(tensor, f"change from {type_.name} to {tensor.type.name}")
        self._give_memory_to_left_open()
        if self._memory is not None and is_asynchronous(run):
            self._memory.workspace.keep_apart()
        return run

    def follow(self, schedule: Schedule) -> Overlap:
        """Run the prepared nodes by *schedule* from now on; memory is planned afterwards."""
        from delegraph.runtime.execution.overlap import (
            Overlap,  # lazy import: only asynchronous nodes need it
        )

        self._first_use = None
        self.nodes[: len(schedule.order)] = nodes = [self.nodes[i] for i in schedule.order]
        self.evals = [self.evals[i] for i in schedule.order]
        self.overlap = Overlap(schedule, nodes, self.evals)
        return self.overlap

    def settle(self) -> None:
        """Wait until all asynchronous nodes have ended; their errors are raised later."""
        if self.overlap is not None:
            self.overlap.settle()

    def allocate(self) -> None:
        """Allocate the planned memory for all prepared nodes.

        Raises:
            NodeError: the tensors do not fit.
        """
        self._allocate_from(0)

    def _allocate_from(self, first: int) -> None:
        assert self._memory is not None, "only hosts with memory have open shapes"
        last = len(self.evals) - 1
        try:
            self._memory.allocate(first, last)
        except OperatorError as error:
            if not self.nodes:
                raise
            raise self._failure(last, "allocate", error) from cause_of(error)
        self.has_memory = True

    # -- what kernels ask for ------------------------------------------------------------------

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set the shape of a tensor; see ``OpContext.resize_tensor``."""
        assert self._memory is not None, "hosts without memory resize by themselves"
        dims = checked_shape(tensor, shape, self._memory.limit)
        if self.has_memory:
            self._memory.resize_running(tensor, dims)
            return
        if dims != tensor.shape and not self._may_resize(tensor):
            what = f"{tensor!r} is constant and" if tensor.is_constant else f"{tensor!r}"
            raise OperatorError(f"{what} cannot become {list(dims)}")
        self._require_free_output(tensor, dims)
        if tensor.index in self._left_open:
            tensor.make_static()
            self._left_open.discard(tensor.index)
            self._open.discard(tensor.index)
        tensor.shape = dims
        if tensor.type in OBJECT_TYPES and self._may_resize(tensor):
            self._open.discard(tensor.index)  # its shape is known; it is outside of the arena
            self._memory.allocate_dynamic(tensor)

    def _require_free_output(self, tensor: Tensor, dims: tuple[int, ...]) -> None:
        """Check that output *tensor* may get the shape *dims*, and that its old shape is unused.

        Raises:
            OperatorError: the output would lose its shape, although it is a variable with memory,
                or this node or an earlier node uses it.
        """
        position = len(self.evals)
        if dims == tensor.shape or position >= len(self.nodes):
            return
        if tensor.index not in self.nodes[position][0].outputs:
            return
        if tensor.is_variable and self._stops:
            raise OperatorError(
                f"variable {tensor!r} cannot become {list(dims)}: it got memory before the first "
                "node ran"
            )
        self._require_unused(tensor, f"become {list(dims)}")

    def _require_unused(self, tensor: Tensor, change: str) -> None:
        """Check that no earlier node uses the output *tensor*; the error names the *change*."""
        if self._first_use is None:
            from delegraph.graph.lifetimes import first_uses  # lazy import: few outputs change

            self._first_use = first_uses(node for node, _ in self.nodes)
        first = self._first_use[tensor.index]
        if first < 2 * len(self.evals) + 1:
            user = self.nodes[first // 2][0].index
            raise OperatorError(
                f"output {tensor!r} cannot {change}: node {user} "
                f"{'writes' if first % 2 else 'reads'} it before, as it is"
            )

    def _may_resize(self, tensor: Tensor) -> bool:
        if self._resizable is None:
            return not tensor.is_constant
        return tensor.index in self._resizable

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare that a tensor's shape is known only while the nodes run."""
        for node, _ in self.nodes[len(self.evals) : len(self.evals) + 1]:  # the node being prepared
            if tensor.index in node.outputs and not tensor.is_dynamic:
                self._require_unused(tensor, "be left open")
        tensor.make_dynamic()
        self._open.add(tensor.index)
        self._left_open.discard(tensor.index)

    def leave_open(self, tensor: Tensor) -> None:
        """Treat the shape of *tensor* as unknown until its node runs, as for the original node.

        If the node's kernel then sets a shape, the tensor is static. If not, the tensor has memory
        for its present shape until the kernel resizes it.
        """
        self.set_dynamic(tensor)
        self._left_open.add(tensor.index)

    def _give_memory_to_left_open(self) -> None:
        if self._left_open and self._memory is not None:
            for index in sorted(self._left_open):
                self._memory.allocate_dynamic(self._tensors[index])

    # -- running -------------------------------------------------------------------------------

    def run(self, wrap: Wrap | None = None) -> None:
        """Run the nodes, and continue the preparation after nodes whose output shapes were unknown.

        Args:
            wrap: function that wraps the eval of each node, or None.

        Raises:
            NodeError: a node failed; the following steps have not run.
        """
        if self._cancellation.reason:  # also here: a loop's body may have no node
            self._cancellation.raise_if_requested()
        if not self._stops:
            self._run_range(0, len(self.nodes), wrap)
        else:
            self._run_and_prepare(wrap)

    def _run_and_prepare(self, wrap: Wrap | None) -> None:
        if self._is_cut_short:
            self._stops[0].shapes = ()
            self._forget_after(self._stops[0].end)
        self._is_cut_short = True
        position, stop, total = 0, 0, len(self.nodes)
        while position < total:
            if position == len(self.evals):
                self._prepare_from(position)
                self._allocate_from(position)
            end = self._stops[stop].end if stop < len(self._stops) else total
            self._run_range(position, end, wrap)
            if stop < len(self._stops):
                self._forget_stale_preparation(stop)
            position, stop = end, stop + 1
        self._is_cut_short = False

    def _forget_stale_preparation(self, stop: int) -> None:
        """Discard the nodes prepared after stop number *stop* if the shapes there have changed."""
        node, _ = self.nodes[(end := self._stops[stop].end) - 1]
        shapes = tuple(self._tensors[i].shape for i in node.outputs if i >= 0)
        if self._stops[stop].shapes != shapes:
            self._stops[stop].shapes = shapes
            self._forget_after(end)

    def _forget_after(self, end: int) -> None:
        """Discard the preparation after position *end*, and its memory."""
        assert self._memory is not None, "only hosts with memory have open shapes"
        del self.evals[end:]
        self._stops = [stop for stop in self._stops if stop.end <= end]
        self._memory.reset_after(end - 1)

    def _run_range(self, first: int, end: int, wrap: Wrap | None) -> None:
        evals = self.evals if end - first == len(self.evals) else self.evals[first:end]
        if wrap is not None:
            nodes = self.nodes[first:end]
            evals = [wrap(run, *node) for run, node in zip(evals, nodes, strict=True)]
        how = self._cancellation, self._invoke_failure
        if self.overlap is not None and first == 0:
            self.overlap.run(None if wrap is None else evals, *how)
            return
        if self._after_each is not None:
            evals = [followed(run, self._after_each) for run in evals]
        run_in_order(evals, first, *how)

    def bound_run(self, *, hides_context: bool) -> BoundRun | None:
        """Return faster equivalents of :meth:`run`, valid until nodes are prepared again.

        The result is None if nodes overlap, or if there is work between nodes.
        """
        if self._stops or self.overlap is not None or self._after_each is not None:
            return None
        how = self._cancellation, self._invoke_failure
        return bound_run(self.evals, *how, hides_context=hides_context)

    def _invoke_failure(self, position: int, error: Exception) -> Exception:
        return self._failure(position, "invoke", error)

    def _failure(self, position: int, verb: Verb, error: Exception) -> Exception:
        """Return the error to raise if *verb* failed at *position*, or if the call was stopped.

        A kernel may have wrapped the error that stops the call in another error.
        """
        from delegraph.runtime.execution.node_errors import explained, node_error

        node, registration = self.nodes[position]
        if verb == "invoke":
            error = explained(node, self._tensors, error)
        if not isinstance(error, CallCancelledError):
            self._cancellation.raise_if_requested()
        return node_error(node, registration, verb, error)
