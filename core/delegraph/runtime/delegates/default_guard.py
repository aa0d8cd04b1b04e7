"""Guard of a default delegate's nodes: when a node fails, Delegraph's kernels compute it.

While nothing fails, the guard takes no time, except to copy the variables that a partition may
change.
"""

from __future__ import annotations

from typing import Any

from delegraph.delegation.simple_delegate import SimpleDelegateKernelInterface
from delegraph.errors import (
    CallCancelledError,
    DefaultDelegateWarning,
    DelegatePhase,
    PartitionRejected,
    UnresolvedOpError,
)
from delegraph.operators.registration import Eval, NativeEval, Node
from delegraph.runtime.delegates.buffer_handles import NO_HANDLE
from delegraph.runtime.delegates.fallback import Guard, phase_of
from delegraph.runtime.delegates.partition_state import Before, SavedState
from delegraph.runtime.execution.bound_steps import is_asynchronous
from delegraph.runtime.subgraph import Subgraph


class DefaultGuard(Guard):
    """Runs one node of a default delegate; if it fails, Delegraph's kernels compute the node.

    If Delegraph's kernels fail as well, their error is raised, as without the delegate. If they
    succeed, the delegate is at fault and is not run again.

    Attributes:
        delegate: the delegate.
    """

    def __init__(self, subgraph: Subgraph, node: Node) -> None:
        super().__init__(subgraph, node)
        self.delegate: Any = node.delegate
        self._saved: SavedState | None = None
        self._runs: Eval | None = None  # function in the subgraph's list of steps

    # -- preparing -----------------------------------------------------------------------------

    def prepared_instead(self, rejection: PartitionRejected) -> Eval:
        """Return the evaluation of the original nodes for shapes that the kernel has rejected."""
        self._size_outputs_instead_of(rejection)
        self._record(rejection, "prepare")
        return self._run_originals

    def _prepared_instead(self, error: Exception, is_wrong: bool = False) -> Eval:
        """Return the evaluation by Delegraph's kernels, after the delegate failed with *error*.

        *is_wrong* means that the failure is a wrong result of the delegate.

        While the delegate is being applied, *error* is raised, so that applying it fails.
        """
        self._raise_if_cancelled(error)
        if self._subgraph.plan.application is not None:
            raise error
        self._size_outputs_instead_of(error)
        self._leave_out(error, "prepare")
        return self._run_originals

    def _size_outputs_instead_of(self, error: Exception) -> None:
        """Set output shapes by Delegraph's kernels, after the delegate failed with *error*.

        Raises:
            Exception: *error*, if only the delegate can compute the nodes.
            RefusedByKernel: the kernels reject the nodes, as without the delegate.
        """
        try:
            self._size_outputs()
        except UnresolvedOpError:
            raise error from None
        except Exception as own:  # noqa: BLE001 - whatever users get without the delegate
            from delegraph.runtime.execution.node_errors import RefusedByKernel  # lazy: few fail

            raise RefusedByKernel(own) from None

    def _guarded(self, step: Eval) -> Eval:
        policy = self._policy
        if policy.validate or policy.on_failure == "shadow" or is_asynchronous(step):
            return super()._guarded(step)
        try:
            keeps_state = bool(self._state) and self._may_fail_halfway()
        except Exception as error:  # noqa: BLE001 - a plugin's code
            return self._prepared_instead(error)
        if isinstance(step, NativeEval):
            run = self._keeping_state(step.run) if keeps_state else step.run
            self._runs = NativeEval(run, self._rescued)
        else:
            self._runs = self._rescuing(self._keeping_state(step) if keeps_state else step)
        self._subgraph.session.supervision.watch(self)
        return self._runs

    def _may_fail_halfway(self) -> bool:
        kernel = self._node.user_data
        return not isinstance(kernel, SimpleDelegateKernelInterface) or kernel.may_fail_halfway()

    # -- running -------------------------------------------------------------------------------

    def _keeping_state(self, run: Eval) -> Eval:
        """Return *run* preceded by a copy of the variables that the partition may change."""

        def keep_and_run() -> None:
            self._saved = self._state.save()
            run()

        return keep_and_run

    def _rescuing(self, step: Eval) -> Eval:
        """Return an evaluation that runs *step* and, if it fails, Delegraph's kernels instead."""
        outputs, make_readable = self._outputs, self._subgraph.buffers.make_readable

        def run() -> None:
            arrays = [(tensor, tensor.shape, tensor.data) for tensor in outputs]
            try:
                step()
                for tensor in outputs:
                    if tensor.data_is_stale:
                        make_readable(tensor)
            except Exception as error:  # noqa: BLE001 - a plugin's code
                for tensor, shape, data in arrays:
                    tensor.shape, tensor.data = shape, data
                left = self._rescued(error)
                if left is not None:
                    raise left from left.__cause__

        return run

    def _give_up(self, before: Before, error: Exception, is_wrong: bool = False) -> None:
        for tensor, shape, data in before.arrays:
            tensor.shape, tensor.data = shape, data
        self._saved = before.saved
        left = self._rescued(error)
        if left is not None:
            raise left from left.__cause__

    def _rescued(self, error: Exception) -> Exception | None:
        """Compute the outputs by Delegraph's kernels; return the error if this fails, else None."""
        from delegraph.runtime.execution.node_errors import RefusedByKernel  # lazy import, too

        try:
            self._raise_if_cancelled(error)
            if self._saved is not None:
                self._saved.put_back()
            self._run_originals()
            self._leave_out(error, phase_of(error))
        except UnresolvedOpError:
            return error  # only the delegate can compute these nodes
        except (CallCancelledError, DefaultDelegateWarning, RefusedByKernel) as left:
            return left
        finally:
            self._saved = None
        return None

    def _run_originals(self) -> None:
        try:
            self._originals.run()
            self._originals.deliver()
        except (CallCancelledError, UnresolvedOpError):
            raise
        except Exception as own:  # noqa: BLE001 - whatever users get without the delegate
            from delegraph.runtime.execution.node_errors import RefusedByKernel  # lazy import, too

            raise RefusedByKernel(own) from None
        for tensor in self._outputs:
            if tensor.buffer_handle != NO_HANDLE:
                self._subgraph.buffers.release([tensor])

    # -- taking the delegate off ---------------------------------------------------------------

    def _leave_out(self, error: Exception, phase: DelegatePhase) -> None:
        from delegraph.runtime.delegates.default_incidents import leave_out  # lazy import: few fail

        session = self._subgraph.session
        leave_out(session, self.delegate, self._incident(error, phase), error)

    def retire(self) -> None:
        """From now on, let Delegraph's kernels run the nodes, if they can."""
        if self._runs is not None:
            self._subgraph.exchange_eval(self._runs, self._run_in_retirement)

    def _run_in_retirement(self) -> None:
        # Not earlier: this prepares the original nodes, whose called subgraphs may be running.
        if self._has_kernels():
            self._run_originals()
        elif self._runs is not None:
            self._runs()

    def _raise_if_cancelled(self, error: Exception) -> None:
        if isinstance(error, CallCancelledError):
            raise error
        self._subgraph.session.cancellation.raise_if_requested()
