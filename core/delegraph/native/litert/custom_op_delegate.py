"""Delegate that computes custom operators written in Python in an official runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags
from delegraph.graph.model import Model
from delegraph.operators.op_table import OP_TABLE
from delegraph.operators.registration import Eval, Node, OpContext, Registration
from delegraph.runtime.execution.node_errors import Verb, cause_of, node_error
from delegraph.runtime.op_resolver import OpResolver
from delegraph.schema.enums import BuiltinOperator

CUSTOM = BuiltinOperator.CUSTOM

NAME = "custom_ops"
"""Name of the delegate in the placement and in errors."""


def custom_op_delegate(
    model: Model, resolver: OpResolver, given: Collection[str]
) -> CustomOpDelegate | None:
    """Return a delegate for the model's custom operators written in Python; None if it has none.

    *given* are the names that the user provides for this model. All other operators that TFLite has
    are left to the runtime.
    """
    found = {
        operator.name: resolver.resolve(operator)
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if operator.is_custom and (operator.name in given or operator.name not in OP_TABLE)
    }
    known = {name: each for name, each in found.items() if not each.is_unresolved}
    return CustomOpDelegate(known) if known else None


class CustomOpDelegate(Delegate):
    """Computes each node of some custom operators by the operator's registration.

    Args:
        registrations: mapping from an operator's name to its registration.
    """

    def __init__(self, registrations: Mapping[str, Registration]) -> None:
        self._registrations = registrations

    @property
    def flags(self) -> DelegateFlags:
        """``ALLOW_DYNAMIC_TENSORS``, because an operator may decide its shapes while it runs."""
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def name(self) -> str:
        """Return ``custom_ops``."""
        return NAME

    def prepare(self, context: DelegateContext) -> None:
        """Claim the nodes of custom operators that are registered, each as a separate partition."""
        for index in context.get_execution_plan():
            node, registration = context.get_node_and_registration(index)
            known = self._registrations.get(registration.name)
            if known is not None and node.delegate is None and registration.builtin_code == CUSTOM:
                wrapped = _Wrapped(known).registration
                context.replace_node_subsets_with_delegate_kernels(wrapped, [index], self)


class _Wrapped:
    """Runs a custom operator in Python in a delegate node, which replaces the operator's node."""

    def __init__(self, inner: Registration) -> None:
        self._inner = inner
        self._node: Node | None = None

    @property
    def registration(self) -> Registration:
        """Registration of the delegate node."""
        return Registration(self._inner.name, self._prepare, init=self._init, free=self._free)

    def _init(self, context: OpContext, node: Node) -> None:
        found: Any = context
        inner, _ = found.get_node_and_registration(node.options.nodes_to_replace[0])
        self._node = replace(inner)
        if self._inner.init is not None:
            try:
                self._node.user_data = self._inner.init(context, self._node)
            except Exception as error:  # noqa: BLE001 - a user's code
                raise self._error("initialize", error) from cause_of(error)

    def _prepare(self, context: OpContext, node: Node) -> Eval:
        assert self._node is not None  # init has set it
        try:
            step = self._inner.prepare(context, self._node)
        except Exception as error:  # noqa: BLE001 - a user's code
            raise self._error("prepare", error) from cause_of(error)

        def run() -> None:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - a user's code
                raise self._error("invoke", error) from cause_of(error)

        return run

    def _free(self, user_data: Any) -> None:
        if self._inner.free is not None and self._node is not None:
            self._inner.free(self._node.user_data)

    def _error(self, verb: Verb, error: Exception) -> Exception:
        assert self._node is not None
        return node_error(self._node, self._inner, verb, error)
