"""A running subgraph: tensors, nodes, execution plan and memory; allocated, then invoked.

Modules that only delegates or asynchronous nodes need are imported when they are needed.

Source:
    Subgraph, tflite/core/subgraph.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.collector import collector_paused
from delegraph.errors import NodeError, OperatorError, StateError
from delegraph.graph.model import rows_of, variables_of
from delegraph.log import Logger
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.operators.tensor import AllocationType, Tensor, runtime_tensors
from delegraph.runtime.context import SubgraphContext, SubgraphState
from delegraph.runtime.delegated_plan import DelegatedPlan
from delegraph.runtime.execution.bound_steps import ignoring_float_errors, may_be_asynchronous
from delegraph.runtime.execution.steps import StepRunner, Wrap
from delegraph.runtime.missing_inputs import (
    empty_inputs,
    missing_input_errors,
    missing_inputs,
    require_consistent_operands,
)
from delegraph.runtime.subgraph_memory import (
    SubgraphMemory,
    checked_shape,
    require_channel_copies,
    view,
)
from delegraph.runtime.tensor_access import Shortcuts
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from delegraph.graph.model import OperatorSpec, SubgraphSpec
    from delegraph.runtime.delegates.buffer_handles import BufferHandles
    from delegraph.runtime.delegates.node_facts import Findings
    from delegraph.runtime.delegates.plan_state import Snapshot
    from delegraph.runtime.execution.bound_steps import BoundRun
    from delegraph.runtime.shared_state import SharedState

logger = Logger(__name__)


class Subgraph:
    """State of one running subgraph, from loading to closing.

    Attributes:
        spec: declaration of the subgraph in the model file.
        tensors: tensors of the subgraph, by index; delegates may append tensors.
        plan: nodes, registrations and their execution order, delegates applied.
        memory: arenas and scratch memory.
        steps: runner that prepares and runs the nodes of the plan.
        session: state shared with the other subgraphs.
        context: context through which kernels and delegates access this subgraph.
        shortcuts: prepared data for ``Interpreter``, used if the subgraph is the first.
    """

    def __init__(self, spec: SubgraphSpec, session: SharedState) -> None:
        self.spec = spec
        self.session = session
        self.tensors = runtime_tensors(spec)
        self.inputs: tuple[int, ...] = spec.inputs
        self.outputs: tuple[int, ...] = spec.outputs
        self.variables = variables_of(spec)
        self.memory = SubgraphMemory(
            preserve_all_tensors=session.options.preserve_all_tensors,
            limit=session.memory_limit,
        )
        self.steps = StepRunner(
            self.tensors,
            self._prepare_node,
            self.memory,
            by_class=True,
            cancellation=session.cancellation,
        )
        require_channel_copies(spec, session.memory_limit)
        self.context = SubgraphContext(self)
        self.plan = self._new_plan()
        self._bound_run: BoundRun | None  # of a simple plan
        self.shortcuts = Shortcuts(session.calls.turn)
        self.is_allocated = False
        self._uses_blas = self._runs_our_code_only = False
        self._unset_inputs = missing_inputs(spec)
        self._unset_error: NodeError | None = None  # error that invoke() will raise

    def _new_plan(self) -> DelegatedPlan:
        """Return a plan of the model's nodes, each initialised by its kernel."""
        spec, session = self.spec, self.session
        resolve = session.resolver.resolve
        nodes = [(Node.from_operator(row), resolve(row)) for row in rows_of(spec.operators)]
        for node, registration in nodes:
            if registration.init is not None:
                node.user_data = registration.init(self.context, node)
        edges = None if session.control_edges is None else session.control_edges[spec.index]
        return DelegatedPlan(nodes, (spec, self.tensors, session.options, edges))

    @cached_property
    def buffers(self) -> BufferHandles:
        """The delegates' own buffers of tensors."""
        from delegraph.runtime.delegates.buffer_handles import BufferHandles

        return BufferHandles(self.tensors, self.context, self.plan)

    @cached_property
    def findings(self) -> Findings:
        """Result of the last check of the model's nodes; delegates cannot claim faulty nodes."""
        from delegraph.runtime.delegates.node_facts import NOTHING_KNOWN

        return NOTHING_KNOWN

    @property
    def state(self) -> SubgraphState:
        """State that says whether the subgraph can be invoked or changed now."""
        if not self.is_allocated or self.plan.application is not None:
            return SubgraphState.UNINVOKABLE
        is_immutable = bool(self.plan.static_delegates())
        return SubgraphState.IMMUTABLE if is_immutable else SubgraphState.INVOKABLE

    @property
    def is_allocated(self) -> bool:
        """Whether the nodes are prepared and the tensors have memory."""
        return self._is_allocated

    @is_allocated.setter
    def is_allocated(self, is_allocated: bool) -> None:
        self._is_allocated = is_allocated
        self._bound_run = None
        self.shortcuts.clear()

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether any shape is known only while invoking; valid once the nodes are prepared."""
        return self.steps.has_open_shapes

    @property
    def operators(self) -> Sequence[OperatorSpec]:
        """The nodes of the model file in file order, before any delegate replaced nodes."""
        return self.spec.operators

    # -- allocation ----------------------------------------------------------------------------

    def allocate(self) -> None:
        """Prepare the plan's nodes and allocate the tensors; cheap when nothing has changed.

        Delegates that a resize has removed stay removed; ``Session.allocate`` applies them again.

        Raises:
            NodeError: a node cannot be prepared, or the tensors do not fit in memory.
            UnresolvedOpError: custom operators have no implementation.
        """
        if self.is_allocated:
            return
        require_consistent_operands(self.spec)
        with collector_paused(lasting=len(self.plan.nodes)):
            self.prepare_all()
            held = self._overlapped()
            self.memory.plan(
                self.tensors, self.steps.nodes, self.inputs, self.outputs, self.variables, held
            )
            self.steps.allocate()
        for tensor in (self.tensors[index] for index in self.inputs):
            if tensor.type == TensorType.STRING and tensor.data is None and 0 in tensor.shape:
                tensor.data = np.empty(tensor.shape, object)  # an empty array needs no values
        for tensor in empty_inputs(self._unset_inputs, self.tensors):
            tensor.data = view(np.empty(0, np.uint8), tensor)
        self._unset_error = next(iter(self.missing_input_errors().values()), None)
        is_plain = self._unset_error is None and not self._uses_blas
        self.is_allocated = True
        if is_plain:
            self._bound_run = self.steps.bound_run(hides_context=self._runs_our_code_only)
        self.bind_invoke()
        arena, variables = self.memory.arena_bytes
        text = "subgraph %d: %d bytes of arena, %d of variables"
        logger.info(text, self.spec.index, arena, variables)
        self.reset_variables()

    def _overlapped(self) -> Mapping[int, Sequence[int]] | None:
        """Let asynchronous nodes overlap others; return the tensors that must keep their memory.

        The result maps a position in the plan to the tensors to keep while its node runs. It is
        None if nothing can overlap. A node with unknown output shapes is the last prepared node, so
        no other node uses these outputs yet.
        """
        if not may_be_asynchronous(self.steps.evals):
            return None
        from delegraph.runtime.execution.node_dependencies import tasks_of
        from delegraph.runtime.execution.schedule import scheduled  # lazy: few nodes need it

        tasks = tasks_of(self.plan, self.steps.evals, self.tensors)
        edges = [edge for edge in self.plan.control_edges() if max(edge) < len(tasks)]
        if self.has_dynamic_tensors:
            edges += [(position, len(tasks) - 1) for position in range(len(tasks) - 1)]
        schedule = scheduled(tasks, edges)
        return None if schedule is None else self.steps.follow(schedule).held

    def missing_input_errors(self) -> dict[int, NodeError]:
        """Error of each node with an input that has no value, by node index."""
        return missing_input_errors(self._unset_inputs, self.tensors)

    def prepare_all(self) -> None:
        """Prepare nodes in order, up to the first with an unknown output shape."""
        self.is_allocated = False
        for tensor in self.tensors:
            tensor.make_static()
        self.steps.prepare(steps := list(self.plan.steps()))
        used = {id(registration): registration for _, registration in steps}.values()
        self._uses_blas = any(each.uses_blas for each in used)
        # Whether the plan has only Delegraph's kernels, and calls no other subgraph.
        is_alone = len(self.session.model.subgraphs) == 1
        self._runs_our_code_only = is_alone and not any(each.custom_name for each in used)

    def _prepare_node(self, node: Node, registration: Registration) -> Eval:
        if registration.is_unresolved:
            from delegraph.runtime.unresolved_ops import unresolved_op_error

            raise unresolved_op_error(self.plan, node)
        run = registration.prepare(self.context, node)
        if node.delegate is not None or not self.plan.owner:
            return run
        return self.buffers.reading(run, node)

    def readable(self, index: int) -> Tensor:
        """Return tensor *index* with present ``data``, copied from a delegate's buffer if needed.

        Raises:
            DelegateNodeError: the delegate cannot copy it.
        """
        tensor = self.tensors[index]
        if tensor.data_is_stale:
            self.buffers.make_readable(tensor)
        return tensor

    def release_non_persistent_memory(self) -> None:
        """Free the memory of all tensors except variables; :meth:`allocate` allocates it again.

        Delegates stay applied.

        Source:
            Subgraph::ReleaseNonPersistentMemory, tflite/core/subgraph.cc.
        """
        self.is_allocated = False
        self.memory.release()
        for tensor in self.tensors:
            if tensor.allocation_type == AllocationType.ARENA_RW:
                tensor.data = None

    def close(self) -> None:
        """Free delegate nodes, steps and memory; the subgraph cannot be used afterwards."""
        self.is_allocated = False
        self.steps.settle()
        if any(tensor.delegate is not None for tensor in self.tensors):
            self.buffers.release(self.tensors)
        self.plan.close()
        self.steps.clear()
        self.tensors.clear()
        self.memory.release()
        self.__dict__.pop("buffers", None)
        del self.context, self.steps  # they have reference cycles with this subgraph

    def reset_variables(self) -> None:
        """Set every variable to zero; INT8 variables are set to their zero point.

        A variable that was computed during prepare counts as a constant and keeps its value.
        """
        self.steps.settle()
        for index in self.variables:
            tensor = self.tensors[index]
            if tensor.data is not None and not tensor.is_constant_or_persistent:
                tensor.data[...] = tensor.initial_value

    # -- invoke --------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run the execution plan once.

        Raises:
            StateError: the subgraph is not allocated.
            NodeError: an input of a node never gets a value, so that no node has run. Or a node
                failed, and the nodes after it have not run.
        """
        if not self.is_allocated:
            raise StateError(
                "Invoke called on model that is not ready. Call allocate_tensors() first."
            )
        if self._unset_error is not None:
            raise self._unset_error.with_traceback(None)
        profile = self.session.profile
        if profile is not None:
            forced = self.session.options.force_delegate_node_profiling
            nodes = self.plan.model_nodes
            profile.record(self.run_steps, self.spec.index, nodes, is_forced=forced)
        elif self._bound_run is not None:
            self._bound_run.run()
        else:
            self.run_steps(None)

    def bind_invoke(self) -> None:
        """Let ``Interpreter.invoke`` call a fast function, unless a profile is taken."""
        self.shortcuts.invoke, run = None, self._bound_run
        if run is not None and self.session.profile is None:
            self.shortcuts.invoke = self.session.calls.bound("invoke", run.step, run.failed)

    def run_steps(self, wrap: Wrap | None) -> None:
        """Run the execution plan once; *wrap* wraps the evaluation of each node."""
        if not self._uses_blas:
            _run(self.steps, wrap)
        else:
            from delegraph.runtime.execution import blas_threads  # lazy: many do without

            with blas_threads.BlasThreads(self.session.options.num_threads):
                _run(self.steps, wrap)

    def exchange_eval(self, present: Eval, other: Eval) -> None:
        """Replace a node's evaluation *present* by *other*, at the latest for the next run."""
        self.steps.evals[:] = [other if run is present else run for run in self.steps.evals]
        self._bound_run = self.shortcuts.invoke = None

    # -- shapes --------------------------------------------------------------------------------

    def is_resized_by(self, index: int, shape: Sequence[int]) -> bool:
        """Whether :meth:`resize_input` of tensor *index* to *shape* would change its shape.

        Raises:
            OperatorError: the tensor is a constant, or *shape* is negative or exceeds the limit.
        """
        tensor = self.tensors[index]
        if tensor.shape == checked_shape(tensor, shape, self.memory.limit):
            return False
        if tensor.is_constant:
            raise OperatorError("Attempting to resize a fixed-size tensor.")
        return True

    def resize_input(self, index: int, shape: Sequence[int]) -> None:
        """Set the shape of tensor *index*, which must be valid; :meth:`allocate` must follow."""
        tensor = self.tensors[index]
        self.is_allocated = False
        tensor.data = None
        tensor.shape = tuple(map(int, shape))  # last, so that an interrupted call can be repeated

    def exchange_constant(self, tensor: Tensor, data: Any) -> None:
        """Replace the value of the constant *tensor* by *data*, and prepare all nodes again.

        Raises:
            NodeError: the subgraph was allocated, and a node cannot be prepared again.
        """
        was_allocated, self.is_allocated = self.is_allocated, False
        self.session.has_other_constants = True
        tensor.data = data
        if was_allocated and not self.plan.has_unresolved:
            self.allocate()

    # -- going back ----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the subgraph before delegates are applied, for :meth:`restore`."""
        from delegraph.runtime.delegates.plan_state import Snapshot

        return Snapshot(
            self.plan.snapshot(),
            len(self.tensors),
            self.buffers.owners(),
            [tensor.shape for tensor in self.tensors],
        )

    def restore(self, snapshot: Snapshot, *, shapes: bool = True) -> None:
        """Restore plan, tensors and owners from *snapshot*; memory must then be allocated again.

        *shapes* says whether to restore the shapes of tensors as well.
        """
        try:
            self._restore(snapshot, shapes)
        except BaseException:
            self._restore(snapshot, shapes)  # after an interrupt, restore the rest
            raise

    def _restore(self, snapshot: Snapshot, shapes: bool) -> None:
        self.is_allocated = False
        self.steps.settle()
        self.buffers.release(self.tensors[snapshot.num_tensors :])
        del self.tensors[snapshot.num_tensors :]
        self.buffers.restore(snapshot.tensor_owners)
        self.plan.restore(snapshot.plan)
        if shapes:
            for tensor, shape in zip(self.tensors, snapshot.tensor_shapes, strict=True):
                tensor.shape = shape


_run = ignoring_float_errors(StepRunner.run)
