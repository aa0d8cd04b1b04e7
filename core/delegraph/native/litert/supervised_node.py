"""Failure policies ``shadow`` and ``validate`` in an official runtime: Delegraph checks results.

The partition becomes a separate model in an interpreter of Delegraph. The only node of that model
is the delegate node of the official runtime, on the same memory. So the failure policies of
Delegraph's own runtime apply to this node, with the same checks and tolerances.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags, DelegateParams
from delegraph.delegation.incident import Incident
from delegraph.errors import DelegateError, ModelError, OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.fallback import paired, partition_interpreter, require_own_state
from delegraph.operators.registration import Eval, Node, Registration, nothing
from delegraph.operators.tensor import Tensor
from delegraph.runtime.delegates.fallback import Guard
from delegraph.runtime.delegates.incidents import Incidents, Supervision
from delegraph.runtime.options import FailurePolicy

_Result = TypeVar("_Result")

Record = Callable[[LiteRtContext, Node, Incident], None]
"""Function that records an incident at a delegate node."""


def with_supervision(
    registration: Registration,
    alone: Registration,
    policy: FailurePolicy,
    supervision: Supervision,
    record: Record,
) -> Registration:
    """Return a registration whose results are compared with those of Delegraph's kernels.

    *alone* is the registration for partitions that cannot be separate models; after a failure,
    Delegraph's kernels compute them, without a comparison.
    """
    node = _SupervisedNode(registration, alone, policy, supervision, record)
    return replace(registration, prepare=node.prepare, free=node.free)


class _SupervisedNode:
    """Runs one delegate node under a failure policy of Delegraph's runtime."""

    # Kept as an attribute, because modules may be gone at exit.
    _is_finalizing = staticmethod(sys.is_finalizing)

    def __init__(
        self,
        registration: Registration,
        alone: Registration,
        policy: FailurePolicy,
        supervision: Supervision,
        record: Record,
    ) -> None:
        self._registration = registration
        self._alone = alone
        self._policy = replace(policy, isolate=None, timeout=None, is_default=False)
        self._supervision = supervision
        self._record = record
        self._partition: _Partition | None = None
        self._is_alone = False

    def prepare(self, context: Any, node: Node) -> Eval:
        """Prepare the delegate's node, or Delegraph's kernels instead; return the evaluation."""
        if self._partition is None and not self._is_alone:
            try:
                self._partition = self._opened(context, node)
            except (ModelError, DelegateError):
                self._is_alone = True
        if self._partition is None:
            return self._alone.prepare(context, node)
        return self._partition.prepared()

    def _opened(self, context: LiteRtContext, node: Node) -> _Partition:
        """Return the partition of *node* as a separate model.

        Raises:
            ModelError: Delegraph's kernels do not support the partition.
            DelegateError: the partition cannot be a separate model.
        """
        own = partial(self._registration.prepare, context, node)
        partition = _Partition(context, node, own, self._policy)
        session = partition.interpreter.session
        session.incidents = _Incidents(partition, partial(self._record, context, node))
        key = context.subgraph_index, node.index
        session.supervision = _SupervisionOfNode(self._supervision, key)
        return partition

    def free(self, user_data: Any) -> None:
        """Free the delegate's kernel, which has *user_data*, and the partition's interpreter."""
        if self._alone.free is not None:
            self._alone.free(user_data)
        if self._partition is not None and not self._is_finalizing():
            self._partition.close()
            self._partition = None


class _Partition:
    """A partition of the official runtime in an interpreter of Delegraph, on the same memory.

    Attributes:
        interpreter: the interpreter, whose only node is the delegate node.
    """

    def __init__(
        self,
        context: LiteRtContext,
        node: Node,
        own: Callable[[], Eval],
        policy: FailurePolicy,
    ) -> None:
        require_own_state(context, node)
        self._context = context
        self._own = own
        params = cast(DelegateParams, node.options)
        self._delegate = cast(Delegate, params.delegate)
        model = params.partition_model()
        self.interpreter = partition_interpreter(
            context, model, delegates=[_Substitute(self._delegate)], failures=policy
        )
        self._subgraph = self.interpreter.session.subgraphs[0]
        nodes = [inner for inner, _ in self._subgraph.plan.steps()]
        if len(nodes) != 1 or nodes[0].delegate is not self._delegate:
            raise DelegateError("the partition is not one node of a separate model")
        self._node = nodes[0]
        self._inputs, self._results, state = paired(self.interpreter.subgraph(), context, model)
        self._memory = [*self._inputs, *state, *self._results]
        self._step: Eval = nothing
        self._raised: Exception | None = None

    # -- preparing -----------------------------------------------------------------------------

    def prepared(self) -> Eval:
        """Prepare the node for the present shapes; return the evaluation."""
        for inner, tensor in self._inputs:
            inner.shape, inner.data = tensor.shape, None
            if tensor.is_constant_or_persistent:
                inner.data = tensor.data
        for inner, _ in self._results:
            inner.make_static()
            inner.data = None
        guard = Guard(self._subgraph, self._node)
        self._step = self._told(partial(guard.prepared, self._prepare_own))
        for inner, tensor in self._results:  # Delegraph's kernels may have decided the shapes
            if inner.is_dynamic and tensor.type not in OBJECT_TYPES:
                self._context.set_dynamic(tensor)
            else:
                self._context.resize_tensor(tensor, inner.shape)
        return self._run

    def _prepare_own(self, *_: object) -> Eval:
        """Prepare the delegate's node in the official runtime, and copy its output shapes."""
        step, inner_context = self._keeping(self._own), self._subgraph.context
        for inner, tensor in self._results:
            if tensor.is_dynamic and tensor.type not in OBJECT_TYPES:
                inner_context.set_dynamic(inner)
            else:
                inner_context.resize_tensor(inner, tensor.shape)
        return partial(self._run_own, step)

    # -- running -------------------------------------------------------------------------------

    def _run(self) -> None:
        self._make_readable([tensor for _, tensor in self._inputs])
        for inner, tensor in self._memory:
            inner.shape, inner.data = tensor.shape, tensor.data
        self._told(self._step)
        for inner, tensor in self._results:
            self._deliver(inner, tensor)

    def _run_own(self, step: Eval) -> None:
        """Run *step*, the delegate's node; set its results in the partition's own interpreter."""
        self._keeping(step)
        self._make_readable([tensor for _, tensor in self._results])
        for inner, tensor in self._results:
            inner.shape, inner.data = tensor.shape, tensor.data

    def _make_readable(self, tensors: list[Tensor]) -> None:
        """Copy the values of those *tensors* that are up to date only in the delegate's buffers."""
        for tensor in tensors if self._context.has_buffer_handles else ():
            if tensor.data_is_stale:
                self._delegate.copy_from_buffer_handle(self._context, tensor)
                tensor.data_is_stale = False

    def _deliver(self, inner: Tensor, tensor: Tensor) -> None:
        """Copy *inner*, a result in the partition's own interpreter, to *tensor* of the runtime."""
        if inner.data is tensor.data:
            return
        if tensor.is_dynamic or tensor.type in OBJECT_TYPES or tensor.shape != inner.shape:
            self._context.resize_tensor(tensor, inner.shape)
            np.copyto(tensor.data, inner.data)
        else:
            tensor.data = inner.data  # the runtime's memory, which the delegate had replaced

    # -- errors --------------------------------------------------------------------------------

    def _keeping(self, compute: Callable[[], _Result]) -> _Result:
        """Call *compute*, the delegate's code; return its result, and store its exception.

        :meth:`_told` does not rewrite the text of an exception that is stored here.

        Args:
            compute: function without arguments that runs the delegate's code.
        """
        try:
            return compute()
        except Exception as error:
            self._raised = error
            raise

    def _told(self, compute: Callable[[], _Result]) -> _Result:
        """Call *compute*, and return its result; errors name tensors as the official runtime does.

        Args:
            compute: function without arguments that calls the partition's own interpreter.
        """
        try:
            return compute()
        except OperatorError as error:
            if error is self._raised:
                raise
            raise OperatorError(self.in_runtime(str(error))) from error
        finally:
            self._raised = None

    def close(self) -> None:
        """Close the interpreter."""
        self._step = nothing
        self.interpreter.close()

    def in_runtime(self, text: str) -> str:
        """Return the error text *text* with tensor indices and names of the official runtime."""
        names = {_start(inner): _start(tensor) for inner, tensor in self._memory}
        return re.sub(r"Tensor\(\d+, '[^']*'", lambda m: names.get(m[0], m[0]), text)


def _start(tensor: Tensor) -> str:
    return f"Tensor({tensor.index}, {tensor.name!r}"


class _Substitute(Delegate):
    """Delegate that replaces all nodes of a small model by one node of another delegate."""

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self, delegate: Delegate) -> None:
        self._delegate = delegate

    def name(self) -> str:
        """Name of the delegate that this object replaces."""
        return self._delegate.name()

    def prepare(self, context: DelegateContext) -> None:
        """Replace all nodes of the model by one delegate node."""
        registration = Registration(self.name(), _not_prepared)
        context.replace_node_subsets_with_delegate_kernels(
            registration, context.get_execution_plan(), self._delegate
        )


def _not_prepared(context: Any, node: Node) -> Eval:
    raise DelegateError("only the official runtime prepares this node")


class _Incidents(Incidents):
    """Receives incidents of a partition's own model; reports them for the runtime's node."""

    def __init__(self, partition: _Partition, record: Callable[[Incident], None]) -> None:
        super().__init__()
        self._partition = partition
        self._record = record

    def record(self, incident: Incident, heir: str = "", level: int = 0) -> None:
        """Report *incident* with the node numbers of the official runtime.

        Args:
            incident: the incident, with node numbers of the partition's own model.
            heir: has no effect.
            level: has no effect.
        """
        self._record(replace(incident, error=self._partition.in_runtime(incident.error)))


class _SupervisionOfNode(Supervision):
    """The part of a delegate's supervision that is about one of its nodes.

    Args:
        shared: supervision of the delegate.
        key: subgraph and node in the official runtime.
    """

    def __init__(self, shared: Supervision, key: tuple[int, int]) -> None:
        super().__init__()
        self._shared = shared
        self._key = key

    def quarantine(self, delegate: object) -> None:
        """Stop running *delegate* in all of its nodes."""
        self._shared.quarantine(delegate)

    def is_quarantined(self, delegate: object) -> bool:
        """Whether a delegate has been quarantined."""
        return self._shared.is_quarantined(delegate)

    def is_due(self, subgraph: int, node_index: int, share: float) -> bool:
        """Whether the results of this run of a node are to be compared.

        Args:
            subgraph: has no effect; the runtime's subgraph is used.
            node_index: has no effect; the runtime's node is used.
            share: share of the runs to compare, from 0 to 1.
        """
        return self._shared.is_due(*self._key, share)
