"""A running subgraph: tensors, nodes, execution plan, and the invoke loop.

Source:
    Subgraph, tflite/core/subgraph.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.delegation.delegate import DelegateFlags
from delegraph.errors import NodeError, OperatorError, StateError
from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, OBJECT_TYPES
from delegraph.graph.model import OperatorSpec, SubgraphSpec, TensorSpec
from delegraph.graph.strings import decode_strings
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.runtime.context import SubgraphContext
from delegraph.runtime.delegates.buffer_handles import BufferHandles
from delegraph.runtime.delegates.delegated_plan import DelegatedPlan
from delegraph.runtime.delegates.fallback import guarded
from delegraph.runtime.delegates.original_nodes import OriginalNodes
from delegraph.runtime.kept_data import KeptData
from delegraph.runtime.node_errors import node_error
from delegraph.runtime.profile import Profile
from delegraph.runtime.subgraph_memory import SubgraphMemory, checked_shape
from delegraph.runtime.threads import BlasThreads
from delegraph.runtime.unresolved_ops import unresolved_op_error
from delegraph.schema.collector import collector_paused
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from delegraph.runtime.session import Session


class Subgraph:
    """State of one subgraph between loading and closing.

    Attributes:
        spec: what the model declares.
        tensors: its tensors, by index; delegates may append some.
        plan: nodes, registrations and their execution order, delegates applied.
        memory: arenas and scratch memory.
        buffers: the delegates' own buffers behind tensors.
        context: what kernels and delegates see of this subgraph.
    """

    def __init__(self, spec: SubgraphSpec, session: Session) -> None:
        self.spec = spec
        self.session = session
        self.tensors = [Tensor.from_spec(tensor, constant_value(tensor)) for tensor in spec.tensors]
        self.inputs: tuple[int, ...] = spec.inputs
        self.outputs: tuple[int, ...] = spec.outputs
        self.variables = tuple(t.index for t in spec.tensors if t.is_variable)
        self.memory = SubgraphMemory(
            preserve_all_tensors=session.options.preserve_all_tensors,
            limit=session.memory_limit,
        )
        self.context = SubgraphContext(self)
        self.buffers = BufferHandles(self)
        self.plan = DelegatedPlan(self)
        self.is_allocated = False
        self.has_dynamic_tensors = False
        self._steps: list[Eval] = []  # of the plan positions prepared so far
        self._stops: list[tuple[int, tuple[tuple[int, ...], ...]]] = []
        self._dynamic: set[int] = set()  # tensors whose shape the node being prepared leaves open
        self._invoking = False
        self._uses_blas = False

    @property
    def operators(self) -> Sequence[OperatorSpec]:
        """The operators that the model declares, whatever delegates have taken."""
        return self.spec.operators

    # -- allocation ----------------------------------------------------------------------------

    def allocate(self) -> None:
        """Prepare the plan's nodes and give the tensors memory; cheap when nothing changed.

        Raises:
            NodeError: a node cannot be prepared, or the tensors do not fit in memory.
            UnresolvedOpError: custom operators that nobody provides.
            DelegateError: a delegate cannot be applied again after a resize.
        """
        self.plan.redo()
        if self.is_allocated:
            return
        self._check_consistent()
        with collector_paused():
            self.prepare_all()
            self.memory.plan(
                self.tensors, self.plan.steps(), self.inputs, self.outputs, self.variables
            )
            self._allocate_range(0, len(self._steps) - 1)
        self.is_allocated = True
        self.reset_variables()

    def prepare_all(self) -> None:
        """Prepare nodes from the first up to the first whose output shapes stay open."""
        self.is_allocated = False
        self._steps.clear()
        self._stops.clear()
        for tensor in self.tensors:
            tensor.make_static()
        self.has_dynamic_tensors = False
        self._uses_blas = any(registration.uses_blas for _, registration in self.plan.steps())
        self._prepare_from(0)

    def _prepare_from(self, first: int) -> None:
        plan = self.plan.execution_plan
        for position in range(first, len(plan)):
            node, registration = self.plan.node(plan[position])
            self._dynamic = {i for i in node.outputs if i >= 0 and self.tensors[i].is_dynamic}
            self.memory.workspace.begin_node()
            self._steps.append(self._prepare_node(node, registration))
            if self._dynamic:
                self.has_dynamic_tensors = True
                self._stops.append((position + 1, ()))
                return

    def _prepare_behind(self, position: int) -> None:
        """Prepare on while invoking, now that the shapes before *position* are known."""
        self._invoking = False
        known_stops = len(self._stops)
        try:
            self._prepare_from(position)
            self._allocate_range(position, len(self._steps) - 1)
        except BaseException:
            del self._steps[position:]
            del self._stops[known_stops:]
            raise
        finally:
            self._invoking = True

    def _prepare_node(self, node: Node, registration: Registration) -> Eval:
        if registration.is_unresolved:
            raise unresolved_op_error(self.plan, node)
        try:
            if _needs_shapes_inside(node):
                OriginalNodes(self, node).propagate_shapes()
            if node.delegate is not None and self.session.options.policy.needs_guard:
                return guarded(self, node, registration)
            step = registration.prepare(self.context, node)
        except Exception as error:
            raise node_error(node, registration, "prepare", error) from error
        return self.buffers.reading(step, node)

    def readable(self, index: int) -> Tensor:
        """Return a tensor whose ``data`` is up to date, copied from its delegate if need be.

        Raises:
            DelegateNodeError: the delegate cannot copy it.
        """
        tensor = self.tensors[index]
        self.buffers.make_readable(tensor)
        return tensor

    def _allocate_range(self, first: int, last: int) -> None:
        if last < first and self.plan.execution_plan:
            return
        try:
            self.memory.allocate(first, last)
        except OperatorError as error:
            node, registration = self.plan.node(self.plan.execution_plan[last])
            raise node_error(node, registration, "allocate", error) from error

    def keep_data(self) -> KeptData:
        """Return copies of inputs and variables, to be put back after another allocation."""
        return KeptData(self)

    def close(self) -> None:
        """Free delegate nodes, steps and memory, which refer to this subgraph in circles."""
        self.is_allocated = False
        self.plan.close()
        self._steps.clear()
        self.tensors.clear()
        self.memory.release()

    def reset_variables(self) -> None:
        """Set every variable tensor to zero, INT8 ones to their zero point.

        Source:
            ResetVariableTensor, tflite/core/api/tensor_utils.cc.
        """
        for index in self.variables:
            tensor = self.tensors[index]
            if tensor.data is not None:
                value = tensor.zero_point if tensor.type == TensorType.INT8 else 0
                tensor.data[...] = np.asarray(value).astype(np.int8)  # its low byte, as there

    # -- invoke --------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run the plan.

        Raises:
            StateError: not allocated.
            NodeError: a node failed; the following ones have not run.
        """
        if not self.is_allocated:
            raise StateError(
                "Invoke called on model that is not ready. Call allocate_tensors() first."
            )
        self._invoking = True
        try:
            with np.errstate(all="ignore"):
                if self._uses_blas:
                    with BlasThreads(self.session.options.num_threads):
                        self._run()
                else:
                    self._run()
        finally:
            self._invoking = False

    def _run(self) -> None:
        """Run steps; behind each node with open shapes, prepare on when those shapes changed."""
        position, steps, total = 0, self._steps, len(self.plan.execution_plan)
        if not self._stops and len(steps) == total:
            self._run_steps(0, total)
            return
        stop = 0
        while position < total:
            if position == len(steps):
                self._prepare_behind(position)
            end = self._stops[stop][0] if stop < len(self._stops) else total
            self._run_steps(position, end)
            self._forget_stale_preparation(stop, end)
            position, stop = end, stop + 1

    def _forget_stale_preparation(self, stop: int, end: int) -> None:
        """Drop what is prepared behind *end* unless the shapes it was made for are still right."""
        if stop >= len(self._stops):
            return
        node, _ = self.plan.node(self.plan.execution_plan[end - 1])
        shapes = tuple(self.tensors[i].shape for i in node.outputs if i >= 0)
        if self._stops[stop][1] != shapes:
            self._stops[stop] = (end, shapes)
            del self._stops[stop + 1 :]
            del self._steps[end:]
            self.memory.reset_after(end - 1)

    def _run_steps(self, first: int, end: int) -> None:
        position = first
        steps = self._steps if end - first == len(self._steps) else self._steps[first:end]
        if self.session.profile is not None:
            steps = self._timed(steps, first, self.session.profile)
        try:
            for position, step in enumerate(steps, first):  # noqa: B007 - read by except
                step()
        except Exception as error:
            node, registration = self.plan.node(self.plan.execution_plan[position])
            raise self._invoke_error(node, registration, error) from error

    def _timed(self, steps: Sequence[Eval], first: int, profile: Profile) -> list[Eval]:
        """Return *steps*, from plan position *first* on, each recording how long it takes."""
        plan, options = self.plan, self.session.options
        return [
            profile.timed(
                step,
                *plan.node(plan.execution_plan[position]),
                self.spec.index,
                is_forced=options.force_delegate_node_profiling,
            )
            for position, step in enumerate(steps, first)
        ]

    def _invoke_error(self, node: Node, registration: Registration, error: Exception) -> Exception:
        for index in node.inputs:
            if index >= 0 and self.tensors[index].data is None:
                error = OperatorError(f"Input tensor {index} lacks data; set_tensor() comes first")
        return node_error(node, registration, "invoke", error)

    def first_open_shape(self) -> tuple[Node, Registration, int]:
        """Return the first node whose output shapes stay open, and the first such output."""
        position = self._stops[0][0] - 1
        node, registration = self.plan.node(self.plan.execution_plan[position])
        tensor = next(i for i in node.outputs if i >= 0 and self.tensors[i].is_dynamic)
        return node, registration, tensor

    # -- shapes --------------------------------------------------------------------------------

    def resize_input(self, index: int, shape: Sequence[int]) -> None:
        """Give a tensor another shape; :meth:`allocate` must follow. Same shape: nothing changes.

        Raises:
            OperatorError: a constant, a negative dimension, or too many bytes.
        """
        tensor = self.tensors[index]
        dims = checked_shape(tensor, shape, self.memory.limit)
        if tensor.shape == dims:
            return
        if tensor.is_constant:
            raise OperatorError("Attempting to resize a fixed-size tensor.")
        self.plan.undo_static()
        tensor.shape = dims
        tensor.data = None
        self.is_allocated = False

    def resize_from_kernel(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """See ``OpContext.resize_tensor``."""
        dims = checked_shape(tensor, shape, self.memory.limit)
        if self._invoking:
            if not tensor.is_dynamic:
                if dims == tensor.shape:
                    return
                raise OperatorError(f"{tensor!r} cannot become {list(dims)} while invoking")
            if tensor.data is None or tensor.shape != dims:
                tensor.shape = dims
                self.memory.allocate_dynamic(tensor)
            return
        if tensor.is_constant and dims != tensor.shape:
            raise OperatorError(f"{tensor!r} is constant and cannot become {list(dims)}")
        tensor.shape = dims
        if tensor.type in OBJECT_TYPES:  # has no place in the arena, and its shape is known now
            self._dynamic.discard(tensor.index)
            self.memory.allocate_dynamic(tensor)

    def set_dynamic(self, tensor: Tensor) -> None:
        """See ``OpContext.set_dynamic``."""
        tensor.make_dynamic()
        self._dynamic.add(tensor.index)

    # -- errors --------------------------------------------------------------------------------

    def _check_consistent(self) -> None:
        for operator in self.spec.operators:
            both = set(operator.inputs).intersection(operator.outputs) - {-1}
            if both and not operator.is_custom:
                tensor = min(both)
                i, o = operator.inputs.index(tensor), operator.outputs.index(tensor)
                raise NodeError(
                    f"Tensor {tensor} is both input {i} and output {o} of node number "
                    f"{operator.index} ({operator.name})",
                    node_index=operator.index,
                    op=operator.name,
                )


def _needs_shapes_inside(node: Node) -> bool:
    """Whether a node's delegate wants the shapes of the tensors inside its partition."""
    delegate: Any = node.delegate
    return delegate is not None and bool(delegate.flags & DelegateFlags.REQUIRE_PROPAGATED_SHAPES)


def constant_value(spec: TensorSpec) -> Any:
    """Return a constant's array as ``Tensor.data`` documents it, None for a computed tensor."""
    if spec.data is None:
        return None
    if spec.type == TensorType.STRING:
        return decode_strings(spec.data, spec.shape)
    if spec.type in BITS:
        return spec.data
    if spec.type in OBJECT_TYPES:
        return None
    dtype = NUMPY_DTYPES[spec.type]
    if spec.sparsity is not None:
        return spec.data[: len(spec.data) // dtype.itemsize * dtype.itemsize].view(dtype)
    count = int(np.prod(spec.shape, dtype=np.int64))
    return spec.data[: count * dtype.itemsize].view(dtype).reshape(spec.shape)
