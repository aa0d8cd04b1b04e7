"""The interface most delegates implement: say which nodes, then compute partitions.

Source:
    tflite/delegates/utils/simple_delegate.h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from delegraph.delegation.delegate import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
)
from delegraph.delegation.rejections import Rejection
from delegraph.operators.asynchronous import AnyEvent
from delegraph.operators.registration import Node, Registration

if TYPE_CHECKING:
    from delegraph.delegation.capabilities import Capabilities
    from delegraph.operators.tensor import Tensor


class SimpleDelegateKernelInterface(ABC):
    """Kernel that computes one partition; each delegate node has its own kernel."""

    @abstractmethod
    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Take the partition; called once, before any prepare.

        ``params`` may be kept. Shapes may still change; constants are readable.
        """

    @abstractmethod
    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Get ready for the current shapes; called at each (re)allocation.

        Input shapes are known. Output tensors keep the shapes that the model declares unless this
        resizes them. Arena tensors have no data yet. A kernel that does not compute these shapes
        raises :class:`~delegraph.errors.PartitionRejected`; the host's kernels then compute them.
        """

    @abstractmethod
    def eval(self, context: DelegateContext, node: Node) -> None:
        """Compute ``node.outputs`` from ``node.inputs``; called at each invoke.

        ``tensor.data`` may be another array than last time.
        """

    def eval_async(self, context: DelegateContext, node: Node) -> AnyEvent:
        """Start the work of :meth:`eval` and return an event that marks the end of the work.

        Optional. A kernel that has it can run while other nodes do, also nodes of other kernels of
        its delegate. A host calls it in place of :meth:`eval` where something can run meanwhile, in
        the thread that calls ``eval``, and not again before it has waited. Until then the inputs,
        outputs and ``context.scratch`` memory of the node stay where they are, and nobody writes
        them. Where the invoke fails or is stopped, the host waits all the same, so that nothing
        goes on after it: a kernel that takes long looks at ``context.cancellation``.

        Returns:
            An object with ``wait()``, or a ``concurrent.futures.Future``. What waiting raises is as
            if :meth:`eval` had raised it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no eval_async")

    def native_eval(self, context: DelegateContext, node: Node) -> Callable[[], None] | None:
        """Return a native function that replaces :meth:`eval` until the next :meth:`prepare`.

        Optional, for kernels that take microseconds: what the function needs can be bound in it. A
        host that runs in Python calls it in place of :meth:`eval`. It computes nothing by NumPy,
        for the host does not see to it that float errors are ignored. Called after each
        :meth:`prepare`.

        Returns:
            The function; None, the default, where :meth:`eval` is to be called.
        """
        return None

    def memory_changed(self, context: DelegateContext, node: Node) -> None:  # noqa: B027 - optional
        """Take note of where the node's inputs and outputs lie.

        Called before the first :meth:`eval` after each :meth:`prepare`, and before any later one
        for which the host has given one of them other memory. Until it is called again,
        ``tensor.data`` of them is the same array: what is bound to it needs no check in ``eval``.
        Those whose shape is known only while invoking get other memory each time.
        """

    def may_share_memory(self, context: DelegateContext, given: int, made: int) -> bool:
        """Return whether the output *made* may lie in the memory of the input *given*.

        Optional. A host asks after :meth:`prepare` where a program keeps a state, such as a KV
        cache, in one buffer, and no node outside of the partition reads the input. True promises
        that each element of the input is read before it is overwritten, and that the run may
        fail at any point and be repeated on what is in the memory then.

        Args:
            context: the host's view of the subgraph.
            given: index of an input of the partition.
            made: index of an output with the type and shape of the input.

        Returns:
            False, the default: the output needs memory of its own.
        """
        return False

    def may_fail_halfway(self) -> bool:
        """Return whether an :meth:`eval` that raises may have changed variables or resources.

        Optional. A host that repeats a failed run on other kernels asks after each :meth:`prepare`.
        Where the answer is False it need not copy variables before each run, which costs as much as
        a small recurrent layer.

        Returns:
            True, the default: they may be anything then.
        """
        return True

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release the kernel's resources; called once, as the last method.

        When the delegate is taken off, for a resize too, when the interpreter is closed or no
        longer used, and when applying the delegate failed after :meth:`init` was called.
        """


class SimpleDelegateInterface(ABC):
    """Interface of a simple delegate: which nodes it supports, and kernels for partitions."""

    @abstractmethod
    def name(self) -> str:
        """Return the name that reports and errors show."""

    def initialize(self, context: DelegateContext) -> None:  # noqa: B027 - most need nothing
        """Look at the subgraph before any node is asked about; called once a subgraph."""

    @abstractmethod
    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return whether the delegate supports this node, or a :class:`Rejection` with the reason.

        Called once for every well-formed node of the plan, in order: one that Delegraph's kernels
        take, or that they have no kernel of, as custom operators. A bare ``False`` is recorded as
        "no reason given".
        """

    @abstractmethod
    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        """Return a new kernel, which will compute one partition."""

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        """Return whether the delegate accepts a whole partition; the default is True.

        Called for each partition that the supported nodes make, before anything of the graph is
        replaced. Nodes of a refused one go to the next delegate or to the host's kernels, and the
        placement has the :class:`Rejection` as the reason. A kernel whose ``init`` finds out later
        raises :class:`~delegraph.errors.PartitionRejected`, to the same effect.
        """
        return True

    def delegate_options(self) -> DelegateOptions:
        """Return the limits on partitions; none by default."""
        return DelegateOptions()

    def flags(self) -> DelegateFlags:
        """Return the delegate's abilities; none by default."""
        return DelegateFlags.NONE

    def capabilities(self) -> Capabilities:
        """Operators that the delegate claims to compute, and how exactly; none by default."""
        from delegraph.delegation.capabilities import Capabilities

        return Capabilities()

    def note(self) -> str:
        """Remark on the results for users; see :meth:`Delegate.note`."""
        return ""

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Copy a tensor from the delegate's buffer.

        See :meth:`Delegate.copy_from_buffer_handle`.
        """
        Delegate.copy_from_buffer_handle(self, context, tensor)  # type: ignore[arg-type]  # name() only

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Copy a tensor to the delegate's buffer.

        See :meth:`Delegate.copy_to_buffer_handle`.
        """
        Delegate.copy_to_buffer_handle(self, context, tensor)  # type: ignore[arg-type]  # name() only

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:  # noqa: B027 - optional
        """Free the delegate's own buffer *handle*; the default does nothing."""


def is_asynchronous(kernel: object) -> bool:
    """Return whether a kernel overrides ``eval_async``."""
    base = SimpleDelegateKernelInterface
    return isinstance(kernel, base) and type(kernel).eval_async is not base.eval_async
