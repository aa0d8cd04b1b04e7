"""Delegates whose kernels are asynchronous, each in a way that shows what a host does wrong."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from delegraph import DelegateContext, DelegateFlags, DelegateOptions, Node
from delegraph.operators.asynchronous import AnyEvent
from support.by_name import ByName, ByNameKernel
from support.faulty_delegate import Faulty, FaultyKernel

Hook = Callable[[DelegateContext, Node], None]


def nothing(context: DelegateContext, node: Node) -> None:
    """Do nothing; the default action before a node is computed."""


class LateEvent:
    """Event that computes when it is waited for, like the event of a slow device."""

    def __init__(self, compute: Callable[[], object]) -> None:
        self._compute: Callable[[], object] | None = compute

    def wait(self) -> None:
        compute, self._compute = self._compute, None
        if compute is not None:
            compute()


class Late(ByName):
    """Asynchronous kernel that fills its outputs with rubbish at start and computes at the wait.

    Attributes:
        log: ``start 5``, ``wait 5``, ``eval 5``, with the index of the delegate's node.
    """

    def __init__(self, *ops: str, name: str = "late", before: Hook = nothing, **more: Any) -> None:
        super().__init__(*ops, name=name, kernel=LateKernel, **more)
        self.log: list[str] = []
        self.before = before


class LateKernel(ByNameKernel):
    delegate: Late

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.log.append(f"eval {node.index}")
        self.compute(context, node)

    def compute(self, context: DelegateContext, node: Node) -> None:
        self.delegate.before(context, node)
        super().eval(context, node)

    def eval_async(self, context: DelegateContext, node: Node) -> AnyEvent:
        self.delegate.log.append(f"start {node.index}")
        for index in node.outputs:
            context.tensors[index].data.fill(np.nan)

        def finish() -> None:
            self.delegate.log.append(f"wait {node.index}")
            self.compute(context, node)

        return LateEvent(finish)


class LateFaulty(Faulty):
    """Asynchronous kernel that computes with Delegraph's kernels at the wait, and then fails."""

    def create_delegate_kernel_interface(self) -> LateFaultyKernel:
        return LateFaultyKernel(self)


class LateFaultyKernel(FaultyKernel):
    def eval_async(self, context: DelegateContext, node: Node) -> LateEvent:
        return LateEvent(lambda: self.eval(context, node))


class InThread(ByName):
    """Event that computes in its own thread.

    *before* runs in that thread, or in the waiting host's.
    """

    def __init__(
        self,
        *ops: str,
        name: str = "in_thread",
        before: Hook = nothing,
        flags: DelegateFlags = DelegateFlags.NONE,
        options: DelegateOptions | None = None,
    ) -> None:
        super().__init__(*ops, name=name, flags=flags, options=options, kernel=InThreadKernel)
        self.before = before
        self.pool = ThreadPoolExecutor(4, thread_name_prefix=name)


class InThreadKernel(ByNameKernel):
    delegate: InThread

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.before(context, node)
        super().eval(context, node)

    def eval_async(self, context: DelegateContext, node: Node) -> Future[None]:
        return self.delegate.pool.submit(self.eval, context, node)
