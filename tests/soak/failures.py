"""Delegates that fail in one phase."""

from __future__ import annotations

from typing import Any

from delegraph import Node, Registration, SimpleDelegateKernelInterface
from delegraph.delegation.delegate import DelegateContext, DelegateParams
from support.faulty_delegate import Faulty, FaultyKernel

PHASES = ("initialize", "claim", "create", "init", "prepare", "eval")


class Boom(Exception):
    """The error that the failing delegates raise."""


class Failing(Faulty):
    """Delegate that computes with Delegraph's kernels, and raises in one phase."""

    def __init__(self, phase: str) -> None:
        super().__init__(dynamic=True, name=f"failing-at-{phase}")
        self.phase = phase

    def reach(self, phase: str) -> None:
        """Raise if the failure is due in this phase."""
        if phase == self.phase:
            raise Boom(phase)

    def initialize(self, context: DelegateContext) -> None:
        self.reach("initialize")

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> Any:
        self.reach("claim")
        return super().is_node_supported_by_delegate(registration, node, context)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        self.reach("create")
        return FailingKernel(self)


class FailingKernel(FaultyKernel):
    """Kernel of a :class:`Failing` delegate's partition."""

    delegate: Failing

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.delegate.reach("init")
        super().init(context, params)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self.delegate.reach("prepare")
        super().prepare(context, node)

    def eval(self, context: DelegateContext, node: Node) -> None:
        super().eval(context, node)
        self.delegate.reach("eval")
