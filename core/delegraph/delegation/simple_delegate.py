"""Interface that most delegates implement: it tells the supported nodes, and makes kernels.

Source:
    tflite/delegates/utils/simple_delegate.h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from delegraph.delegation.delegate import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
)
from delegraph.delegation.rejections import Rejection
from delegraph.errors import ArgumentTypeError, DelegateError
from delegraph.operators.registration import Node, Registration

if TYPE_CHECKING:
    from delegraph.delegation.capabilities import Capabilities
    from delegraph.operators.asynchronous import AnyEvent
    from delegraph.operators.tensor import Tensor


class SimpleDelegateKernelInterface(ABC):
    """Kernel that computes one partition; each delegate node has its own kernel.

    Attributes:
        start_module: module that runs kept programs for a process that has not read the model; None
            if the delegate has none. It has the functions ``made_for``, ``key_of`` and ``run_of``,
            as ``delegraph_numba_cpu.kept.start`` has, and is used only for the default delegate.
    """

    start_module: ClassVar[str | None] = None

    @abstractmethod
    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Store the partition *params*; called once, before any :meth:`prepare`.

        ``params`` may be kept. Shapes may still change; constants are readable.
        """

    @abstractmethod
    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Prepare for the current shapes; called at each (re)allocation.

        Input shapes are known. Outputs keep their declared shapes unless this method resizes them.
        Arena tensors have no data yet. A kernel that does not support these shapes raises
        :class:`~delegraph.errors.PartitionRejected`; then the host's kernels compute the partition.
        """

    @abstractmethod
    def eval(self, context: DelegateContext, node: Node) -> None:
        """Compute ``node.outputs`` from ``node.inputs``; called at each invoke.

        ``tensor.data`` may be another array than in the last call.
        """

    def eval_async(self, context: DelegateContext, node: Node) -> AnyEvent:
        """Start the work of :meth:`eval`; return an event that marks the end of the work.

        This method is optional. A kernel that has it can run at the same time as other nodes,
        including nodes of the same delegate. If other nodes can run meanwhile, the host calls this
        method in place of :meth:`eval`, in the same thread. The host waits for the event before it
        calls the method again. Until then the host neither moves nor writes the node's inputs,
        outputs and ``context.scratch`` memory. The host also waits if the invoke fails or is
        stopped, so a slow kernel should check ``context.cancellation``.

        Returns:
            An object with ``wait()``, or a ``concurrent.futures.Future``. An error raised by the
            wait counts as an error of :meth:`eval`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no eval_async")

    def native_eval(self, context: DelegateContext, node: Node) -> Callable[[], None] | None:
        """Return a native function that replaces :meth:`eval` until the next :meth:`prepare`.

        This method is optional, for kernels that take microseconds: the function's arguments can be
        bound in advance. A host in Python calls the function in place of :meth:`eval`. The function
        must not compute with NumPy, since the host does not suppress float errors for it. The
        method is called after each :meth:`prepare`.

        Returns:
            The function; None, the default, means that :meth:`eval` is called.
        """
        return None

    def memory_changed(self, context: DelegateContext, node: Node) -> None:  # noqa: B027 - optional
        """React to new memory of the node's inputs and outputs.

        The method is called before the first :meth:`eval` after each :meth:`prepare`, and before
        each later :meth:`eval` for which the memory of an input or output has changed. Until the
        next call, ``tensor.data`` of all inputs and outputs stays the same array, so ``eval`` need
        not check it. Tensors whose shape is known only while invoking get other memory each time.
        """

    def may_share_memory(self, context: DelegateContext, given: int, made: int) -> bool:
        """Whether the output *made* may be in the memory of the input *given*.

        This method is optional. The host calls it after :meth:`prepare`, for a state that the user
        keeps in one buffer, such as a KV cache. No other node reads the input. True promises that
        the kernel reads each input element before overwriting it. It also promises that a run that
        failed at any point can be repeated on the memory's content.

        Args:
            context: the host's view of the subgraph.
            given: index of an input of the partition.
            made: index of an output with the type and shape of the input.

        Returns:
            False, the default, means that the output needs separate memory.
        """
        return False

    def may_fail_halfway(self) -> bool:
        """Whether an :meth:`eval` that raises an error may have changed variables or resources.

        This method is optional. A host that repeats a failed run with other kernels calls it after
        each :meth:`prepare`. If the result is False, the host need not copy variables before each
        run, which takes as long as a small recurrent layer.

        Returns:
            True, the default, means that variables may have any value after an error.
        """
        return True

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release the kernel's resources; called once, as the last method.

        The method is called when the delegate is removed, also for a resize; when the interpreter
        is closed or deleted; and when applying the delegate failed after :meth:`init`.
        """


class SimpleDelegateInterface(ABC):
    """Interface of a simple delegate: which nodes it supports, and kernels for partitions."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Check that *cls* has a method wherever the interface has one.

        Raises:
            ArgumentTypeError: an attribute such as ``name = "chip"`` is in place of a method.
        """
        super().__init_subclass__(**arguments)
        for name in sorted(vars(SimpleDelegateInterface).keys() & vars(cls).keys()):
            if not name.startswith("_") and not callable(value := getattr(cls, name)):
                raise ArgumentTypeError(
                    f"{cls.__name__}.{name} is {value!r}, expected a method: write "
                    f"def {name}(self): return {value!r}"
                )

    @abstractmethod
    def name(self) -> str:
        """Return the delegate's name, which reports and errors show."""

    def initialize(self, context: DelegateContext) -> None:  # noqa: B027 - most need nothing
        """Inspect the subgraph before any node is asked about; called once for each subgraph."""

    @abstractmethod
    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return True if the delegate supports *node*, else False or a rejection with the reason.

        The method is called once for every well-formed node of the plan, in order. A node is
        well-formed if Delegraph's kernel accepts it, or if no kernel exists, as for custom
        operators. A rejection is a :class:`Rejection`; a bare ``False`` is recorded as "no reason
        given".
        """

    @abstractmethod
    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        """Return a new kernel, which will compute one partition."""

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        """Return True if the delegate accepts a whole partition, else False or a rejection.

        The default is True. The method is called for each partition of supported nodes, before any
        node is replaced. Nodes of a rejected partition go to the next delegate or to the host's
        kernels, and the placement shows the :class:`Rejection`. A kernel's ``init`` can reject its
        partition, too, by raising :class:`~delegraph.errors.PartitionRejected`.
        """
        return True

    def delegate_options(self) -> DelegateOptions:
        """Return the limits on partitions; by default, there are none."""
        return DelegateOptions()

    def flags(self) -> DelegateFlags:
        """Return the delegate's abilities as flags; none by default."""
        return DelegateFlags.NONE

    def capabilities(self) -> Capabilities:
        """Operators that the delegate claims to compute, with tolerances; none by default."""
        from delegraph.delegation.capabilities import Capabilities

        return Capabilities()

    def note(self) -> str:
        """Remark on the results, for users; see :meth:`Delegate.note`."""
        return ""

    def most_threads(self, requested: int | None) -> int | None:
        """Largest number of threads of a run, for benchmarks; None, the default, means unknown.

        Args:
            requested: number of threads that the user allows the interpreter; None if not set.
        """
        return None

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


def claims_of(delegate: SimpleDelegateInterface) -> Capabilities:
    """Return the capabilities of a delegate.

    Raises:
        DelegateError: its method ``capabilities`` returned another type.
    """
    from delegraph.delegation.capabilities import Capabilities

    claimed: object = delegate.capabilities()
    if isinstance(claimed, Capabilities):
        return claimed
    raise DelegateError(
        f"{type(delegate).__name__}.capabilities returned {type(claimed).__name__}, expected "
        "Capabilities: write return Capabilities([Claim('ADD', 'FLOAT32'), ...])"
    )


def is_asynchronous(kernel: object) -> bool:
    """Whether a kernel overrides ``eval_async``."""
    base = SimpleDelegateKernelInterface
    return isinstance(kernel, base) and type(kernel).eval_async is not base.eval_async
