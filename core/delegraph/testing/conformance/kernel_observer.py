"""Observes the memory accesses of a delegate's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags, PartitionPolicy
from delegraph.delegation.rejections import Rejection
from delegraph.operators.asynchronous import AsyncEval, Started
from delegraph.operators.registration import Eval, Node, OpContext, Registration

if TYPE_CHECKING:
    from delegraph.operators.tensor import Tensor

PATTERN = 0x2A
"""Value of the bytes that fill outputs before they are computed, so that unwritten bytes show."""


class KernelWatch:
    """Records evaluations of watched delegates' kernels, and writes to their inputs.

    Args:
        pattern: byte that fills outputs before each evaluation; None leaves outputs unchanged.
        starts: whether kernels that have ``eval_async`` are evaluated by it; the result is awaited
            at once.

    Attributes:
        evaluations: number of evaluations of kernels.
        started: number of evaluations by ``eval_async``.
        kernels: the value that ``Registration.init`` returned for each delegate node.
        changed_inputs: tensors that a kernel changed although it must only read them.
    """

    def __init__(self, pattern: int | None = None, *, starts: bool = False) -> None:
        self.pattern = pattern
        self.starts = starts
        self.evaluations = self.started = 0
        self.kernels: list[object] = []
        self.changed_inputs: list[str] = []

    def over(self, registration: Registration) -> Registration:
        """Return a copy of *registration* that records evaluations and writes to inputs."""

        def init(context: Any, node: Node) -> object:
            made = None if registration.init is None else registration.init(context, node)
            self.kernels.append(made)
            return made

        def prepare(context: OpContext, node: Node) -> Eval:
            step = registration.prepare(context, node)
            if self.starts and isinstance(step, AsyncEval):
                step = partial(self._start, step)
            return lambda: self._evaluate(step, context, node)

        return replace(registration, init=init, prepare=prepare)

    def _start(self, step: AsyncEval) -> None:
        started = Started(step.start())
        self.started += 1
        started.settle()  # a host may wait more than once
        step.finish(started)

    def _evaluate(self, step: Eval, context: OpContext, node: Node) -> None:
        outputs = [context.tensors[i] for i in node.outputs if i >= 0]
        inputs = [context.tensors[i] for i in node.inputs if i >= 0 and i not in node.outputs]
        read_only = [t for t in inputs if not t.is_variable and _is_plain(t.data)]
        before = [_bytes(tensor.data) for tensor in read_only]
        if self.pattern is not None:
            for tensor in outputs:
                if not any(_share(tensor, other) for other in inputs):
                    fill(tensor.data, self.pattern)
        step()
        self.evaluations += 1
        for tensor, content in zip(read_only, before, strict=True):
            is_shared = any(_share(tensor, other) for other in outputs)
            if not is_shared and _bytes(tensor.data) != content:
                kind = "constant" if tensor.is_constant else "input"
                self.changed_inputs.append(f"{kind} {tensor!r}")


class WatchedDelegate(Delegate):
    """A delegate that forwards to another delegate and watches its kernels."""

    def __init__(self, delegate: Delegate, watch: KernelWatch) -> None:
        self._delegate = delegate
        self._watch = watch

    @property
    def flags(self) -> DelegateFlags:
        """Flags of the watched delegate."""
        return self._delegate.flags

    @property
    def partition_policy(self) -> PartitionPolicy:
        """Partition policy of the watched delegate."""
        return self._delegate.partition_policy

    def name(self) -> str:
        """Return the name of the watched delegate."""
        return self._delegate.name()

    def capabilities(self) -> Capabilities:
        """Return the claims of the watched delegate."""
        return self._delegate.capabilities()

    def prepare(self, context: DelegateContext) -> None:
        """Let the watched delegate claim nodes, and record the evaluations of its kernels."""
        self._delegate.prepare(cast("DelegateContext", _WatchedContext(context, self._watch)))

    def rejections(self) -> dict[int, Rejection]:
        """Return the rejections of the watched delegate."""
        return self._delegate.rejections()

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Forward the call to the watched delegate."""
        self._delegate.copy_from_buffer_handle(context, tensor)

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Forward the call to the watched delegate."""
        self._delegate.copy_to_buffer_handle(context, tensor)

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
        """Forward the call for *handle* to the watched delegate."""
        self._delegate.free_buffer_handle(context, handle)


class _WatchedContext:
    """A delegate context that wraps every registration so that its kernels are watched."""

    def __init__(self, context: DelegateContext, watch: KernelWatch) -> None:
        self._context = context
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def replace_node_subsets_with_delegate_kernels(
        self, registration: Registration, nodes: Sequence[int], delegate: object
    ) -> None:
        """Replace *nodes* by nodes of a watched registration; see ``DelegateContext``."""
        self._context.replace_node_subsets_with_delegate_kernels(
            self._watch.over(registration), nodes, delegate
        )


def fill(data: Any, pattern: int) -> None:
    """Set every byte of the array *data* to *pattern*; do nothing if it is not writable."""
    if _is_plain(data) and data.flags.writeable:
        data.reshape(-1).view(np.uint8)[:] = pattern


def move_border_tensors(tensors: Sequence[Tensor], nodes: Sequence[Node]) -> None:
    """Move the inputs and outputs of the delegate nodes *nodes* to new memory.

    Values are kept. The old memory is filled with a pattern, so that a stale view of it reads wrong
    values.
    """
    indices = sorted({i for node in nodes for i in (*node.inputs, *node.outputs) if i >= 0})
    for index in indices:
        tensor = tensors[index]
        if not tensor.is_constant and _is_plain(tensor.data):
            old: NDArray[Any] = tensor.data
            tensor.data = old.copy()
            fill(old, 0xA5)


def _is_plain(data: Any) -> bool:
    return data is not None and not data.dtype.hasobject


def _bytes(data: NDArray[Any]) -> bytes:
    return data.tobytes()


def _share(a: Tensor, b: Tensor) -> bool:
    return _is_plain(a.data) and _is_plain(b.data) and bool(np.may_share_memory(a.data, b.data))
