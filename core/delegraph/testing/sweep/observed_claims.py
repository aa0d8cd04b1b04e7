"""Claims of a delegate that declares none, found by asking it about models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from delegraph.delegation.capabilities import Claim
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegraphError
from delegraph.testing.sweep.generator import seeded_cases
from delegraph.testing.sweep.hosts import open_ours

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate, DelegateContext
    from delegraph.delegation.node_traits import NodeTraits
    from delegraph.operators.registration import Node, Registration
    from delegraph.testing.operator_case import OperatorCase

TRIES = 2
"""Largest number of models of an operator with the same input types that are asked about."""


def observed_claims(delegate: Delegate, operators: Sequence[str], seed: int) -> list[Claim]:
    """Return claims of the forms of *operators* that a delegate takes, when asked about models.

    It computes nothing. Only a delegate with ``is_node_supported_by_delegate`` can be asked;
    others get no claims.
    """
    if not isinstance(delegate, SimpleDelegate):
        return []
    asked = _Asked(delegate.simple)
    return [_claim(form) for op in operators for form in _taken_forms(asked, op, seed)]


def _taken_forms(asked: _Asked, op: str, seed: int) -> Iterator[NodeTraits]:
    """Yield the forms of an operator that a delegate takes, each once."""
    tries: Counter[tuple[str, ...]] = Counter()
    taken: set[NodeTraits] = set()
    for case in seeded_cases(op, seed):
        form, types = case.input_form(), case.types()
        if form in taken or tries[types] == TRIES:
            continue
        if asked.takes(case):
            taken.add(form)
            yield form
        elif not any(each.types == form.types for each in taken):
            tries[types] += 1


def _claim(form: NodeTraits) -> Claim:
    roles: dict[str, Any] = {
        role: tuple(dict.fromkeys(type for other, type in form.types if other == role))
        for role, _ in form.types
    }
    return Claim(form.operator, versions=(form.version, form.version), **roles)


class _Asked(SimpleDelegateInterface):
    """Delegate that asks another one about each node, notes its answers and takes nothing."""

    def __init__(self, inner: SimpleDelegateInterface) -> None:
        self._inner = inner
        self._taken: set[str] = set()

    def takes(self, case: OperatorCase) -> bool:
        """Whether the other delegate takes a node of the case's operator."""
        self._taken.clear()
        try:
            open_ours(case.model(), SimpleDelegate(self)).close()
        except DelegraphError:
            return False
        return case.op in self._taken

    def name(self) -> str:
        return self._inner.name()

    def initialize(self, context: DelegateContext) -> None:
        self._inner.initialize(context)

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = self._inner.is_node_supported_by_delegate(registration, node, context)
        if answer:
            self._taken.add(registration.name)
        return Rejection("op")

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        raise AssertionError("it takes no node")
