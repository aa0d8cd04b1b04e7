"""Runs delegate nodes under a failure policy: fall back, shadow or validate.

``original_nodes.py`` runs the host's kernels instead; ``runtime/options.py`` has the policies.

At each invoke, a guarded node does more than the delegate's eval::

    keep variables -> eval -> copy its buffers -> check results -> compare with the kernels
                       |             |                  |                    |
                       +-------------+------------------+--------------------+
                              incident; variables back; original nodes run
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from delegraph.errors import (
    DelegateError,
    DelegatePhase,
    ModelError,
    OperatorError,
    PartitionRejected,
    in_words,
)
from delegraph.log import Logger
from delegraph.operators.asynchronous import DONE, AnyEvent, AsyncEval, Started
from delegraph.operators.registration import Eval, Node, Prepare, Registration, nothing
from delegraph.operators.tensor import Tensor
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.delegates.incidents import Supervision
from delegraph.runtime.delegates.partition_state import Before, PartitionState, SavedState
from delegraph.runtime.options import FailurePolicy
from delegraph.runtime.subgraph import Subgraph

if TYPE_CHECKING:
    from delegraph.delegation.capabilities import Capabilities
    from delegraph.delegation.incident import Incident
    from delegraph.delegation.tolerance import Tolerance
    from delegraph.runtime.delegates.original_nodes import OriginalNodes
    from delegraph.runtime.delegates.result_checks import Expected

logger = Logger(__name__)


class Guard:
    """Runs one delegate node and handles its failures by the failure policy."""

    def __init__(self, subgraph: Subgraph, node: Node) -> None:
        self._subgraph = subgraph
        self._node = node
        self._delegate: Any = node.delegate
        self._policy: FailurePolicy = subgraph.session.policy_of(node.delegate)
        self._supervision: Supervision = subgraph.session.supervision
        self._inputs = [subgraph.tensors[i] for i in node.inputs if i >= 0]
        self._outputs = [subgraph.tensors[i] for i in node.outputs if i >= 0]
        self._state = PartitionState(subgraph, node)
        self._obstacle: str | None = None  # to the original nodes; "": none; None: unknown
        self._expected: list[Expected] | None = None
        self._capabilities: Capabilities  # only for the policy "shadow"
        self._eval: Eval = nothing  # until the node is prepared
        self._is_excused = False  # whether only rounding differences were found
        self._at_start: Before | None = None  # of a started run that is not checked yet

    @cached_property
    def _checks(self) -> ModuleType:
        from delegraph.runtime.delegates import result_checks  # lazy: no default policy checks

        return result_checks

    @cached_property
    def _is_random(self) -> bool:
        return any(registration.name in self._checks.RANDOM for _, registration in self._replaced())

    @cached_property
    def _originals(self) -> OriginalNodes:
        from delegraph.runtime.delegates.original_nodes import OriginalNodes  # few fail

        notes = self._policy.on_failure == "shadow"
        return OriginalNodes(self._subgraph, self._node, only_kernels=True, notes_results=notes)

    def _replaced(self) -> list[tuple[Node, Registration]]:
        return list(self._subgraph.plan.model_nodes(self._node))

    # -- preparing -----------------------------------------------------------------------------

    def prepared(self, prepare: Prepare) -> Eval:
        """Prepare the delegate's node, or the original nodes instead; return the evaluation."""
        if self._is_quarantined():
            self._size_outputs()
            return self._run_originals
        try:
            if self._policy.on_failure == "shadow":
                self._capabilities = self._delegate.capabilities()
            step = prepare(self._subgraph.context, self._node)
        except PartitionRejected as rejection:
            return self.prepared_instead(rejection)
        except Exception as error:  # noqa: BLE001 - a plugin's code; the policy decides
            return self._prepared_instead(error)
        finding = self._wrong_shape()
        if finding is not None:
            return self._prepared_instead(OperatorError(finding), is_wrong=True)
        if self._policy.validate:
            from delegraph.runtime.delegates.unwritten_values import with_outputs_checked

            step = with_outputs_checked(step, self._outputs, self._inputs, self._state)
        return self._guarded(self._subgraph.buffers.reading(step, self._node))

    def _guarded(self, step: Eval) -> Eval:
        """Return the evaluation that runs the delegate's *step* and handles its failures."""
        self._eval = step
        if isinstance(step, AsyncEval):
            return AsyncEval(self._run, partial(self._start, step), partial(self._finish, step))
        return self._run

    def prepared_instead(self, rejection: PartitionRejected) -> Eval:
        """Return the evaluation by the original nodes, regardless of the failure policy."""
        self._require_kernels(rejection)
        self._record(rejection, "prepare")
        self._size_outputs()
        return self._run_originals

    def _prepared_instead(self, error: Exception, is_wrong: bool = False) -> Eval:
        self._judge(error, "prepare", is_wrong)
        self._size_outputs()
        return self._run_originals

    def _wrong_shape(self) -> str | None:
        """Text about a wrong shape of an output of the delegate node; None if all are right."""
        if not (self._policy.validate or self._policy.on_failure == "shadow"):
            return None
        if not self._has_kernels():
            return None
        for tensor in self._outputs:
            if not (tensor.is_dynamic or self._originals.is_open(tensor.index)):
                expected = self._originals.result(tensor.index).shape
                finding: str | None = self._checks.wrong_shape(tensor, expected)
                if finding is not None:
                    return finding
        return None

    def _size_outputs(self) -> None:
        """Give the outputs the shapes that Delegraph's kernels compute."""
        context = self._subgraph.context
        self._originals.work_out_shapes()
        for tensor in self._outputs:
            if self._originals.is_open(tensor.index):
                context.set_dynamic(tensor)
            else:
                context.resize_tensor(tensor, self._originals.result(tensor.index).shape)

    # -- running -------------------------------------------------------------------------------

    def _run(self) -> None:
        """Run the delegate's node; the policy handles any error."""
        if self._is_quarantined():
            self._run_originals()
        else:
            self._judged(self._eval, self._before())

    def _start(self, step: AsyncEval) -> AnyEvent:
        """Start the delegate node *step*; an error at the start is handled at once."""
        self._at_start = None
        if self._is_quarantined():
            self._run_originals()
            return DONE
        before = self._before()
        try:
            event = step.start()
        except Exception as error:  # noqa: BLE001 - a plugin's code; the policy decides
            self._give_up(before, error)
            return DONE
        self._at_start = before
        return event

    def _finish(self, step: AsyncEval, started: Started) -> None:
        """Wait for the delegate's node *started* to end; the failure policy handles any error."""
        before, self._at_start = self._at_start, None
        if before is not None:
            self._judged(partial(step.finish, started), before)

    def _before(self) -> Before:
        saved = self._state.save() if self._state else None
        arrays = [(tensor, tensor.shape, tensor.data) for tensor in self._outputs]
        return Before(saved, arrays, self._expectations() if self._policy.validate else [])

    def _judged(self, compute: Callable[[], None], before: Before) -> None:
        """Run the delegate's node by *compute* and check its outputs; handle failures by policy."""
        try:
            compute()
            for tensor in self._outputs:
                self._subgraph.buffers.make_readable(tensor)
        except Exception as error:  # noqa: BLE001 - a plugin's code; the policy decides
            self._give_up(before, error)
            return
        finding = self._finding(before.expected, before.saved)
        if finding is not None:
            self._give_up(before, OperatorError(finding), is_wrong=not self._is_excused)

    def _give_up(self, before: Before, error: Exception, is_wrong: bool = False) -> None:
        for tensor, shape, data in before.arrays:
            tensor.shape, tensor.data = shape, data
        self._judge(error, phase_of(error), is_wrong)
        if before.saved is not None:
            before.saved.put_back()
        self._run_originals()

    def _run_originals(self) -> None:
        self._originals.run()
        self._originals.deliver()
        if self._is_quarantined():  # the buffers of the quarantined delegate are no longer read
            return
        for tensor in self._outputs:
            try:
                self._subgraph.buffers.write_through(tensor)
            except DelegateError as error:
                self._subgraph.buffers.release([tensor])
                self._record(error, "copy")

    def _judge(self, error: Exception, phase: DelegatePhase, is_wrong: bool) -> None:
        """Record the failure *error*; raise it if Delegraph's kernels may not run instead.

        Raises:
            CallCancelledError: the call was asked to stop, which is not the delegate's fault.
        """
        self._subgraph.session.cancellation.raise_if_requested()
        if self._policy.on_failure == "raise":
            raise error
        self._require_kernels(error)
        is_out = is_wrong and self._policy.on_failure == "shadow"
        self._record(error, phase, is_out)
        if is_out:
            self._supervision.quarantine(self._delegate)

    def _require_kernels(self, error: Exception) -> None:
        if not self._has_kernels():
            raise OperatorError(
                f"{in_words(error)}; Delegraph's kernels cannot take over: {self._obstacle}"
            ) from error

    def _record(self, error: Exception, phase: DelegatePhase, is_out: bool = False) -> None:
        self._subgraph.session.incidents.record(self._incident(error, phase, is_out))

    def _incident(self, error: Exception, phase: DelegatePhase, is_out: bool = False) -> Incident:
        from delegraph.delegation.incident import Incident, named_nodes

        replaced = self._replaced()
        return Incident(
            delegate=delegate_name(self._delegate),
            subgraph=self._subgraph.spec.index,
            node_index=self._node.index,
            nodes=tuple(node.index for node, _ in replaced),
            phase=phase,
            error=in_words(error),
            is_quarantined=is_out,
            place=named_nodes(replaced, self._subgraph.tensors),
        )

    def _is_quarantined(self) -> bool:
        """Whether the delegate is quarantined, and the original nodes can run in its place."""
        return self._supervision.is_quarantined(self._delegate) and self._has_kernels()

    def _has_kernels(self) -> bool:
        """Whether Delegraph's own kernels can compute all nodes that the delegate replaced."""
        if self._obstacle is None:
            try:
                self._originals.work_out_shapes()
                self._obstacle = ""
            except ModelError as error:
                self._obstacle = str(error)
        return not self._obstacle

    # -- looking at results --------------------------------------------------------------------

    def _finding(self, expected: list[Expected], saved: SavedState | None) -> str | None:
        """Text about an output unlike *expected* or recomputed; None if right or not checked."""
        if self._policy.validate:
            finding = self._broken(expected) or self._special(saved)
            if finding is not None:
                return finding
        return self._recomputed(saved, self._different) if self._is_due() else None

    def _broken(self, expected: list[Expected]) -> str | None:
        """Text about an output of wrong shape, dtype or range; None if all are as *expected*."""
        for tensor, (shape, allowed) in zip(self._outputs, expected, strict=True):
            finding: str | None = (
                (None if shape is None else self._checks.wrong_shape(tensor, shape))
                or self._checks.wrong_array(tensor)
                or self._checks.wrong_bools(tensor)
                or (None if allowed is None else self._checks.outside(tensor, allowed))
            )
            if finding is not None:
                return finding
        return None

    def _expectations(self) -> list[Expected]:
        """Shape and range of each output, as far as known before it is computed."""
        if self._expected is None:
            if self._has_kernels():
                with self._originals.as_computed():
                    self._expected = [self._expectation(t) for t in self._outputs]
            else:
                shapes = [None if t.is_dynamic else t.shape for t in self._outputs]
                self._expected = [(shape, None) for shape in shapes]
        return self._expected

    def _expectation(self, output: Tensor) -> Expected:
        tensors, is_open = self._subgraph.tensors, self._originals.is_open
        shape = None if is_open(output.index) else output.shape
        for node, registration in self._originals.nodes:
            if output.index in node.outputs and not any(map(is_open, node.inputs)):
                find = tensors.__getitem__
                return shape, self._checks.allowed_range(node, registration, output.index, find)
        return shape, None

    def _special(self, saved: SavedState | None) -> str | None:
        """Text about NaN or infinity that neither inputs nor Delegraph's kernels have, or None."""
        if not any(self._checks.has_special_values(tensor.data) for tensor in self._outputs):
            return None
        inputs = (tensor for tensor in self._inputs if not tensor.is_constant)
        if any(self._checks.has_special_values(tensor.data) for tensor in inputs):
            return None
        return self._recomputed(saved, self._wrongly_special)

    def _wrongly_special(self, after: SavedState | None) -> str | None:
        for tensor in self._outputs:
            if self._checks.has_special_values(tensor.data):
                expected = self._originals.result(tensor.index).data
                finding: str | None = self._checks.wrong_special_values(tensor, expected)
                if finding is not None:
                    return finding
        return None

    def _is_due(self) -> bool:
        policy, key = self._policy, (self._subgraph.spec.index, self._node.index)
        if policy.on_failure != "shadow" or self._is_random:
            return False
        return self._supervision.is_due(*key, policy.shadow_share)

    def _recomputed(
        self, saved: SavedState | None, find: Callable[[SavedState | None], str | None]
    ) -> str | None:
        """Run Delegraph's kernels from the variables *saved* as well; return what *find* returns.

        The result is None if they fail. Afterwards, variables have the delegate's values again.
        """
        if not self._has_kernels():
            return None
        after = None if saved is None else self._state.save()
        if saved is not None:
            saved.put_back()
        try:
            self._originals.run()
            return find(after)
        except ModelError as error:  # an original kernel failed: nothing to compare
            logger.debug("nothing to compare %r with: %s", delegate_name(self._delegate), error)
            return None
        finally:
            if after is not None:
                after.put_back()

    def _different(self, after: SavedState | None) -> str | None:
        """Text about outputs or variables that differ beyond the tolerance; None if none differ.

        Variables have the values of Delegraph's kernels now, and *after* those of the delegate.
        """
        from delegraph.delegation.partition_tolerance import partition_tolerances

        pairs, checks = [], self._checks
        for tensor in self._outputs:
            expected = self._originals.result(tensor.index).data
            finding: str | None = checks.wrong_array(tensor) or checks.wrong_shape(
                tensor, expected.shape
            )
            if finding is not None and not tensor.is_packed:
                return finding
            pairs.append((tensor, tensor.data, expected))
        pairs += [(t, values, t.data) for t, values in after.values()] if after else []
        capabilities = self._capabilities
        tolerances = partition_tolerances(self._originals.computed, capabilities)
        for tensor, found, expected in pairs:
            allowed: Tolerance | None = capabilities.tolerance_of(tensor.type)
            if tensor in self._subgraph.tensors:  # not a variable of another subgraph
                allowed = tolerances.get(tensor.index, allowed)
            other = None if allowed is None else checks.difference(tensor, found, expected, allowed)
            if other is not None:
                from delegraph.runtime.delegates.magnified_roundings import magnified

                who = self._subgraph, self._originals, self._delegate
                excuse = magnified(*who, capabilities, tolerances)
                self._is_excused = excuse is not None
                return excuse or f"{tensor!r} is {other}"
        return None


def phase_of(error: Exception) -> DelegatePhase:
    """Phase in which a delegate's node failed to run."""
    return (error.phase if isinstance(error, DelegateError) else None) or "eval"
