"""Handles and records a delegate's failures in an official interpreter."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from delegraph.delegation.delegate import Delegate, DelegateParams
from delegraph.delegation.incident import Incident
from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegateError, DelegatePhase, in_words
from delegraph.graph.model import OperatorSpec
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.fallback import with_fallback
from delegraph.native.litert.supervised_node import with_supervision
from delegraph.operators.op_table import OP_TABLE
from delegraph.operators.registration import Node, Registration
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.delegates.default_incidents import warn_of
from delegraph.runtime.delegates.incidents import Incidents, Supervision
from delegraph.runtime.options import FailurePolicy


class Failures:
    """Failure policy of one delegate, and its incidents.

    Args:
        delegate: the delegate.
        policy: failure policy of the user.
        is_default: whether the delegate is applied by default; then its errors are never raised.

    Attributes:
        is_default: whether the delegate is applied by default.
        incidents: failures after which other kernels replaced the delegate.
    """

    def __init__(
        self, delegate: Delegate, policy: FailurePolicy, *, is_default: bool = False
    ) -> None:
        self._delegate = delegate
        self._policy = policy.of(delegate, is_default=is_default)
        self._raises = self._policy.on_failure == "raise"
        self._supervision = Supervision()
        self._has_warned = False
        self.is_default = is_default
        self.incidents = Incidents()

    @property
    def is_quarantined(self) -> bool:
        """Whether Delegraph's kernels replace the delegate because one of its results was wrong."""
        return self._supervision.has_quarantined

    def record(self, incident: Incident, heir: str = "Delegraph's kernels") -> None:
        """Add an incident; the first incident of a default delegate also gives a warning.

        Args:
            incident: a failure of the delegate after which the interpreter went on.
            heir: name of the kernels or delegate that compute the nodes instead, for the message.

        Raises:
            DefaultDelegateWarning: the user turns warnings into errors.
        """
        self.incidents.record(incident, heir, logging.INFO if self.is_default else logging.WARNING)
        if self.is_default and not self._has_warned:
            self._has_warned = True
            warn_of(incident, heir)

    def guarded(self, registration: Registration) -> Registration:
        """Return the registration of a delegate node, extended by the failure policy.

        Depending on the policy, Delegraph's kernels compute failed nodes or check results.
        """
        alone = with_fallback(registration, self._node_failed, only_rejections=self._raises)
        policy = self._policy
        if policy.on_failure != "shadow" and not policy.validate:
            return alone
        return with_supervision(registration, alone, policy, self._supervision, self._supervised)

    def _supervised(self, context: LiteRtContext, node: Node, incident: Incident) -> None:
        """Record an incident of a node whose results are checked, with the runtime's indices."""
        operators, nodes = context.operators, node.options.nodes_to_replace
        of_model = tuple(operators[index].index for index in nodes if index in operators)
        at = context.subgraph_index
        self.record(replace(incident, subgraph=at, node_index=node.index, nodes=of_model))

    def _node_failed(
        self, context: LiteRtContext, node: Node, phase: DelegatePhase, error: Exception
    ) -> None:
        operators, nodes = context.operators, node.options.nodes_to_replace
        at = context.subgraph_index
        self.record(self._incident(at, operators, nodes, node.index, phase, error))

    def partition_failed(
        self,
        subgraph_index: int,
        operators: Mapping[int, OperatorSpec],
        params: DelegateParams,
        error: DelegateError,
    ) -> Rejection:
        """Return a rejection that leaves a partition to the runtime, or raise *error*.

        An *error* that is not raised is recorded as an incident.

        Raises:
            DelegateError: *error*, if the failure policy is ``"raise"`` or the runtime may lack an
                operator.
        """
        nodes = params.nodes_to_replace
        if self._raises or any(_is_foreign(operators[i]) for i in nodes if i in operators):
            raise error
        self.record(
            self._incident(subgraph_index, operators, nodes, -1, error.phase or "init", error),
            "LiteRT's kernels",
        )
        return Rejection("init-failed", in_words(error))

    def _incident(
        self,
        subgraph_index: int,
        operators: Mapping[int, OperatorSpec],
        nodes: tuple[int, ...],
        node_index: int,
        phase: DelegatePhase,
        error: Exception,
    ) -> Incident:
        of_model = tuple(operators[index].index for index in nodes if index in operators)
        name, text = delegate_name(self._delegate), in_words(error)
        return Incident(name, subgraph_index, node_index, of_model, phase, text)


def _is_foreign(operator: OperatorSpec) -> bool:
    """Whether *operator* is a custom operator that is not in Delegraph's operator table."""
    return operator.is_custom and operator.name not in OP_TABLE
