"""The delegates of one subgraph; each is applied to the plan that earlier delegates have made.

Source:
    Subgraph::ModifyGraphWithDelegate, UndoAllDelegates and RedoAllDelegates,
    tflite/core/subgraph.cc. In contrast to TFLite, the earlier delegates remain if a delegate
    fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from delegraph.delegation.delegate import Delegate, DelegateFlags
from delegraph.delegation.rejections import NO_REASON
from delegraph.errors import CallCancelledError, DelegateError, DelegatePhase, in_words
from delegraph.log import Logger
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.delegates.delegate_node import as_delegate_node
from delegraph.runtime.delegates.kept_findings import KeptFindings
from delegraph.runtime.delegates.node_facts import Findings, order_errors
from delegraph.runtime.delegates.plan_state import Application, AppliedDelegate, Barred, Snapshot
from delegraph.runtime.delegates.replaced_nodes import original_node
from delegraph.runtime.subgraph import Subgraph

if TYPE_CHECKING:
    from delegraph.delegation.incident import Incident

logger = Logger(__name__)

_NEEDS_NO_SHAPES = (
    DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE
)


class DelegateStack:
    """Applies delegates to a subgraph, removes them and applies them again.

    Args:
        subgraph: the subgraph.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        self._plan = subgraph.plan
        self._base: Snapshot | None = None  # the subgraph without delegates
        self._kept = KeptFindings(subgraph)
        self._checked_shapes: list[tuple[int, ...]] | None = None  # shapes of the inputs

    # -- applying ------------------------------------------------------------------------------

    def apply(self, delegate: Delegate, lost: Barred = MappingProxyType({})) -> None:
        """Let a delegate claim nodes; if it fails, the graph is restored and the error is raised.

        It may not have the nodes *lost*, because measurements found its partitions slower.

        Raises:
            DelegateError: the delegate failed, or it is static and the graph has dynamic tensors.
            CallCancelledError: the call was asked to stop.
        """
        self.reapply_named()
        before = self._subgraph.snapshot()
        if not self._plan.applied:
            self._base = before
        try:
            self._refuse_open_shapes(delegate)
            self._check_nodes(delegate)
            barred = self._barred(delegate, lost)
            wrapped = partial(as_delegate_node, self._subgraph, delegate)
            self._plan.application = Application(delegate, barred, wrapped)
            self._let_claim(self._plan.application, lost)
            self._log(self._plan.applied[-1])
        except Exception as error:
            self._subgraph.restore(before)
            self._subgraph.session.cancellation.raise_if_requested()
            raise self._not_applied(delegate, error) from error
        except BaseException:
            self._subgraph.restore(before)
            raise
        finally:
            self._plan.application = None

    def _log(self, applied: AppliedDelegate) -> None:
        if not logger.is_wanted():
            return
        plan, name = self._plan, delegate_name(applied.delegate)
        own = [node for node, _ in plan.steps() if node.delegate is applied.delegate]
        taken = sum(1 for node in own for _ in plan.model_nodes(node))
        total, index = len(self._subgraph.operators), self._subgraph.spec.index
        text = "delegate %r takes %d of %d nodes of subgraph %d, in %d partitions"
        logger.info(text, name, taken, total, index, len(own))
        for node, rejection in sorted(applied.rejections.items()):
            logger.debug(
                "delegate %r leaves node %d (%s): %s",
                name,
                node,
                plan.node(node)[1].name,
                rejection,
            )

    def _barred(self, delegate: Delegate, lost: Barred) -> Barred:
        """Return the nodes that a delegate may not claim, each with the reason.

        *lost* are nodes on which the delegate is slower; the result contains them.
        """
        subgraph = self._subgraph
        rules = subgraph.session.barred(subgraph.spec.index, delegate_name(delegate))
        barred = {**lost, **rules, **subgraph.findings.rejections}
        for node in list(barred):  # also the delegate node that computes a barred node
            barred.setdefault(self._plan.current(node), barred[node])
        return barred

    def _let_claim(self, application: Application, lost: Barred) -> None:
        delegate, subgraph = application.delegate, self._subgraph
        application.may_claim = True
        with np.errstate(all="ignore"):  # as when nodes are prepared
            delegate.prepare(subgraph.context)
        application.may_claim = False
        rules = subgraph.session.barred(subgraph.spec.index, delegate_name(delegate))
        refused = subgraph.findings.rejections
        rejections = {**delegate.rejections(), **lost, **rules, **refused}
        self._plan.applied.append(AppliedDelegate(delegate, rejections, lost))
        subgraph.is_allocated = False
        flags = delegate.flags
        if flags & DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE:
            self._require_every_node(delegate, rejections)
        elif self._plan.static_delegates() and not self._plan.has_unresolved:
            subgraph.allocate()  # a kernel that cannot be prepared must fail here, not later
            if flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS:
                self._refuse_opened_shapes()

    def _require_every_node(self, delegate: Delegate, rejections: Barred) -> None:
        left = [node.index for node, _ in self._plan.steps() if node.delegate is not delegate]
        if left:
            first = rejections.get(left[0], NO_REASON)
            raise DelegateError(
                "it hints that it takes every node (HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE), and "
                f"left {len(left)}, the first of them node {left[0]}: {first}",
                phase="claim",
                node_index=left[0],
            )

    def _check_nodes(self, delegate: Delegate) -> None:
        """Update the findings about malformed nodes if the input shapes have changed.

        If *delegate* needs shapes, the graph is prepared, which also gives the findings.
        """
        subgraph = self._subgraph
        shapes = [subgraph.tensors[index].shape for index in subgraph.inputs if index >= 0]
        if shapes == self._checked_shapes:
            return
        errors = {**order_errors(subgraph.spec), **subgraph.missing_input_errors()}
        is_prepared = subgraph.is_allocated or self._needs_shapes(delegate)
        if is_prepared and not subgraph.has_dynamic_tensors and not self._plan.applied:
            subgraph.findings = Findings.of_prepared(subgraph.tensors, errors)
        else:
            nodes = [original_node(subgraph, operator.index) for operator in subgraph.operators]
            limit, kept = subgraph.session.memory_limit, self._kept
            found = None if errors else kept.find(nodes)
            if found is None:
                from delegraph.runtime.delegates.checked_nodes import check_nodes

                found = check_nodes(subgraph.context, nodes, limit, errors=errors)
                kept.keep(found)
            subgraph.findings = found
        self._checked_shapes = shapes

    def _needs_shapes(self, delegate: Delegate) -> bool:
        return not (delegate.flags & _NEEDS_NO_SHAPES or self._plan.has_unresolved)

    def _refuse_open_shapes(self, delegate: Delegate) -> None:
        """Raise an error if a static delegate is applied to a graph with dynamic tensors."""
        if not self._needs_shapes(delegate):
            return
        subgraph = self._subgraph
        if not subgraph.is_allocated:
            subgraph.prepare_all()
        if subgraph.has_dynamic_tensors:
            node, registration, tensor = subgraph.steps.first_open()
            raise DelegateError(
                "Attempting to use a delegate that only supports static-sized tensors with a graph "
                f"that has dynamic-sized tensors (tensor#{tensor} is a dynamic-sized tensor, made "
                f"so by node {node.index}, {registration.name})"
            )

    def _refuse_opened_shapes(self) -> None:
        """Raise an error if a delegate made a tensor dynamic while a static delegate is applied."""
        subgraph = self._subgraph
        if subgraph.has_dynamic_tensors:
            node, registration, tensor = subgraph.steps.first_open()
            names = ", ".join(
                repr(delegate_name(delegate)) for delegate in self._plan.static_delegates()
            )
            raise DelegateError(
                f"Cannot allow dynamic tensors due to previous delegation: {names} supports "
                f"static-sized tensors only (tensor#{tensor} is a dynamic-sized tensor, made so by "
                f"node {node.index}, {registration.name})"
            )

    def _not_applied(self, delegate: Delegate, error: Exception) -> DelegateError:
        name = delegate_name(delegate)
        phase: DelegatePhase = "claim"
        node_index = None
        if isinstance(error, DelegateError):
            phase, node_index = error.phase or phase, error.node_index
        return DelegateError(
            f"delegate {name!r} could not be applied to subgraph {self._subgraph.spec.index}: "
            f"{phase} failed: {in_words(error)}; the graph is as it was before this delegate",
            delegate=name,
            phase=phase,
            node_index=node_index,
        )

    # -- taking off ----------------------------------------------------------------------------

    def take_off_static(self) -> None:
        """Remove all delegates if any depends on shapes; the caller must then call :meth:`reapply`.

        A delegate depends on shapes if it is static, or if it rejected nodes for their old shapes.
        """
        applied = self._plan.applied
        depend_on_shapes = self._plan.static_delegates() or self._subgraph.findings.errors
        if self._base is not None and depend_on_shapes:
            try:
                self._subgraph.restore(self._base, shapes=False)
            finally:
                self._plan.undone = applied

    def allocate(self) -> None:
        """Apply the delegates again that a resize has removed, and allocate the subgraph.

        Default delegates that fail stay removed; see ``default_failures``.

        Raises:
            DelegateError: a delegate fails for the new shapes.
            NodeError: a node cannot be prepared, or the tensors do not fit in memory.
        """
        subgraph, wanted = self._subgraph, self.wanted
        session, failure = subgraph.session, None
        if session.failure_memory is not None:
            from delegraph.runtime.delegates.default_incidents import recall_failures

            recall_failures(session, session.failure_memory)
        if not session.supervision.has_quarantined:
            try:
                self.reapply()
                subgraph.allocate()
            except CallCancelledError:
                raise
            except Exception as error:
                if not any(session.is_by_default(each.delegate) for each in wanted):
                    raise
                failure = error
        if failure is not None or session.supervision.has_quarantined:
            from delegraph.runtime.delegates import default_failures

            default_failures.allocate(self, subgraph, wanted, failure)

    def reapply(self) -> None:
        """Apply the delegates again that a resize has removed.

        Raises:
            DelegateError: a delegate fails for the new shapes; it and the delegates after it stay
                removed. With another policy than ``"raise"`` only the failed delegate stays
                removed, and the failure is an incident.
        """
        undone, tried = self._plan.undone, 0
        try:
            self._plan.undone = []
            for applied in undone:
                self._apply_again(applied)
                tried += 1
        except DelegateError:
            raise
        except BaseException:
            self._plan.undone = undone[tried:]  # interrupted: the next call continues here
            raise

    def reapply_named(self) -> None:
        """Apply the removed delegates again, except failed default delegates."""
        wanted = self.wanted
        is_default = self._subgraph.session.is_by_default
        try:
            self.reapply()
        except DelegateError:
            if not any(is_default(each.delegate) for each in wanted):
                raise
            self.start_again([each for each in wanted if not is_default(each.delegate)])
            self.reapply()
            for each in wanted:
                if is_default(each.delegate):
                    self.postpone(each.delegate)

    @property
    def wanted(self) -> list[AppliedDelegate]:
        """The applied delegates, then the delegates that a resize has removed temporarily."""
        return [*self._plan.applied, *self._plan.undone]

    def start_again(self, delegates: Iterable[AppliedDelegate]) -> None:
        """Remove all delegates, and note *delegates* as those that :meth:`reapply` will apply."""
        if self._plan.applied and self._base is not None:
            self._subgraph.restore(self._base, shapes=False)
        self._plan.undone = list(delegates)

    def look_again(self) -> None:
        """Remove all delegates until :meth:`reapply`, so that the nodes are checked again."""
        self.start_again(self.wanted)
        self._checked_shapes = None

    def postpone(self, delegate: Delegate) -> None:
        """Make :meth:`reapply` apply *delegate*, after the delegates that wait already."""
        self._plan.undone.append(AppliedDelegate(delegate, {}, {}))

    def _apply_again(self, applied: AppliedDelegate) -> None:
        session = self._subgraph.session
        try:
            self.apply(applied.delegate, applied.lost)
        except DelegateError as error:
            policy = session.policy_of(applied.delegate)
            if policy.on_failure == "raise" or policy.is_default:
                raise
            session.incidents.record(self._incident(error))

    def _incident(self, error: DelegateError) -> Incident:
        from delegraph.delegation.incident import Incident

        return Incident(
            error.delegate,
            self._subgraph.spec.index,
            -1 if error.node_index is None else error.node_index,
            (),
            error.phase or "claim",
            str(error),
        )

    def remove_all(self) -> None:
        """Remove all delegates permanently, including those that wait for :meth:`reapply`."""
        if self._plan.applied and self._base is not None:
            self._subgraph.restore(self._base, shapes=False)
        self._plan.applied, self._plan.undone, self._base = [], [], None
