"""Applies simple delegates: asks about nodes, partitions the graph and replaces partitions.

Source:
    DelegatePrepare, GetDelegateKernelRegistration; tflite/delegates/utils/simple_delegate.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_not
from typing import TYPE_CHECKING, Any

from delegraph.delegation.delegate import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    PartitionPolicy,
    raise_if_requested,
)
from delegraph.delegation.graph_partition_helper import GraphPartitionHelper
from delegraph.delegation.rejections import Rejection, answered
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    claims_of,
    is_asynchronous,
)
from delegraph.errors import (
    CallCancelledError,
    DelegateError,
    DelegatePhase,
    PartitionRejected,
    in_words,
)
from delegraph.lazy_dataclass import replace
from delegraph.log import Logger
from delegraph.operators.registration import Eval, NativeEval, Node, Registration
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.delegation.capabilities import Capabilities
    from delegraph.operators.tensor import Tensor

logger = Logger(__name__)


class SimpleDelegate(Delegate):
    """Makes a full :class:`Delegate` from an object that only tells which nodes it supports."""

    def __init__(self, simple: SimpleDelegateInterface) -> None:
        self.simple = simple
        self._rejections: dict[int, Rejection] = {}

    @property
    def flags(self) -> DelegateFlags:
        """Flags of the wrapped delegate.

        Raises:
            DelegateError: the wrapped delegate returned no ``DelegateFlags``.
        """
        flags: object = self.simple.flags()
        if not isinstance(flags, DelegateFlags):
            raise self._error("claim", f"flags() returned {flags!r}, not DelegateFlags")
        return flags

    def name(self) -> str:
        """Name of the wrapped delegate."""
        return self.simple.name()

    @property
    def partition_policy(self) -> PartitionPolicy:
        """Partition policy in the wrapped delegate's ``delegate_options()``."""
        return self._options().partition_policy

    def capabilities(self) -> Capabilities:
        """Capabilities of the wrapped delegate."""
        return claims_of(self.simple)

    def note(self) -> str:
        """Note of the wrapped delegate."""
        return self.simple.note()

    def rejections(self) -> dict[int, Rejection]:
        """Reasons for rejected nodes, by node index, in the last prepared subgraph."""
        return dict(self._rejections)

    def prepare(self, context: DelegateContext) -> None:
        """Ask about every node of the plan and replace the chosen partitions."""
        options = self._options()
        self._initialize(context)
        helper = GraphPartitionHelper(
            context, self.simple.is_node_supported_by_delegate, delegate=self.name()
        )
        helper.partition()
        nodes = helper.get_nodes_within(options)
        self._rejections = helper.rejections
        self.replace(context, nodes)

    def replace(self, context: DelegateContext, nodes: list[int]) -> None:
        """Replace *nodes* by delegate nodes, except in partitions that the delegate rejects."""
        partitions = _Partitions(self, context)
        try:
            accepted = partitions.accepted(nodes)
            self._rejections |= partitions.rejections
            logger.debug("%s delegate: %d nodes delegated", self.name(), len(accepted))
            registration = self._registration(partitions.kernels)
            context.replace_node_subsets_with_delegate_kernels(registration, accepted, self)
        finally:
            partitions.close_unused()

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Call the wrapped delegate's ``copy_from_buffer_handle``."""
        self.simple.copy_from_buffer_handle(context, tensor)

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Call the wrapped delegate's ``copy_to_buffer_handle``."""
        self.simple.copy_to_buffer_handle(context, tensor)

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
        """Call the wrapped delegate's ``free_buffer_handle``."""
        self.simple.free_buffer_handle(context, handle)

    def _options(self) -> DelegateOptions:
        try:
            options: object = self.simple.delegate_options()
        except Exception as error:
            raise self._error("initialize", f"delegate_options(): {in_words(error)}") from error
        if not isinstance(options, DelegateOptions):
            raise self._error(
                "initialize", f"delegate_options() returned {options!r}, not DelegateOptions"
            )
        return options

    def _initialize(self, context: DelegateContext) -> None:
        try:
            self.simple.initialize(context)
        except Exception as error:
            raise self._error("initialize", in_words(error)) from error

    def new_kernel(
        self, context: DelegateContext, params: DelegateParams
    ) -> SimpleDelegateKernelInterface:
        """Return a new kernel that has accepted the partition *params*.

        Raises:
            PartitionRejected: the delegate rejects the partition.
            DelegateError: the kernel could not be made.
        """
        try:
            kernel: object = self.simple.create_delegate_kernel_interface()
        except Exception as error:
            message = f"create_delegate_kernel_interface(): {in_words(error)}"
            raise self.init_error(message, params) from error
        if not isinstance(kernel, SimpleDelegateKernelInterface):
            message = (
                f"create_delegate_kernel_interface() returned {kernel!r}, not a "
                "SimpleDelegateKernelInterface"
            )
            raise self.init_error(message, params)
        try:
            kernel.init(context, params)
        except (PartitionRejected, CallCancelledError):
            close_kernel(kernel)
            raise
        except Exception as error:
            close_kernel(kernel)
            raise self.init_error(in_words(error), params) from error
        return kernel

    def init_error(self, message: str, params: DelegateParams) -> DelegateError:
        """Return the error for the partition *params*, whose kernel could not be made.

        *message* says why.
        """
        nodes = params.nodes_to_replace
        return self._error("init", f"its kernel for nodes {list(nodes)}: {message}", nodes[0])

    def _error(
        self, phase: DelegatePhase, message: str, node_index: int | None = None
    ) -> DelegateError:
        return DelegateError(message, delegate=self.name(), phase=phase, node_index=node_index)

    def _registration(self, kernels: Kernels) -> Registration:
        """Registration that runs the partitions of *kernels*."""

        def init(context: Any, node: Node) -> SimpleDelegateKernelInterface:
            params: DelegateParams = node.options
            return kernels.pop(params.nodes_to_replace, None) or self.new_kernel(context, params)

        return Registration(
            self.name(), self.prepare_node, BuiltinOperator.DELEGATE, init=init, free=close_kernel
        )

    def prepare_node(self, context: Any, node: Node) -> Eval:
        """Prepare the kernel of a delegate node, and return its evaluation."""
        return prepared_kernel(node.user_data, context, node)


Kernels = dict[tuple[int, ...], SimpleDelegateKernelInterface]
"""Mapping from the nodes of a partition to its kernel."""


def _partition_text(nodes: Sequence[int]) -> str:
    from delegraph.delegation.placement import node_numbers  # lazy import: few delegates fail

    return f"asked about the partition of nodes {node_numbers(nodes)}"


class _Partitions:
    """Partitions that a delegate accepts while it is being applied, with a kernel for each.

    Attributes:
        kernels: kernels of the accepted partitions.
        rejections: reasons for rejected nodes, by node index.
    """

    def __init__(self, delegate: SimpleDelegate, context: DelegateContext) -> None:
        self._delegate = delegate
        self._context = context
        self.kernels: Kernels = {}
        self.rejections: dict[int, Rejection] = {}

    def accepted(self, nodes: list[int]) -> list[int]:
        """Return the nodes among *nodes* whose partitions the delegate accepts.

        Without a rejected partition's nodes, the remaining nodes may form new partitions. Then the
        delegate is asked about the new partitions, too.
        """
        while True:
            partitions = self._context.preview_delegate_partitioning(nodes)
            new = [p for p in partitions if p.nodes_to_replace not in self.kernels]
            if not new:
                break
            for params in new:
                self._ask(replace(params, delegate=self._delegate))
            left = [index for index in nodes if index not in self.rejections]
            if len(left) == len(nodes):
                break
            nodes = left
        return nodes

    def _ask(self, params: DelegateParams) -> None:
        raise_if_requested(self._context)
        rejection = self._checked(params)
        if rejection is None:
            rejection = self._initialized(params)
        if rejection is not None:
            self.rejections.update(dict.fromkeys(params.nodes_to_replace, rejection))

    def _checked(self, params: DelegateParams) -> Rejection | None:
        """Return the delegate's rejection of a whole partition; None if the delegate accepts it."""
        delegate, nodes = self._delegate, params.nodes_to_replace
        return answered(
            lambda: delegate.simple.check_partition(self._context, params),
            lambda: _partition_text(nodes),
            delegate.name(),
            nodes[0],
        )

    def _initialized(self, params: DelegateParams) -> Rejection | None:
        """Create the kernel of partition *params*; return its rejection, or None if it is ready."""
        try:
            kernel = self._delegate.new_kernel(self._context, params)
        except PartitionRejected as error:
            return Rejection(error.constraint, str(error))
        except CallCancelledError:
            raise
        except DelegateError as error:
            return self._context.partition_failed(params, error)
        self.kernels[params.nodes_to_replace] = kernel
        return None

    def close_unused(self) -> None:
        """Close the kernels that no node of the graph uses."""
        for kernel in self.kernels.values():
            close_kernel(kernel)
        self.kernels.clear()


def prepared_kernel(kernel: SimpleDelegateKernelInterface, context: Any, node: Node) -> Eval:
    """Prepare a kernel, and return the evaluation that runs it."""
    kernel.prepare(context, node)
    native = kernel.native_eval(context, node)
    step = _evaluation(kernel, context, node) if native is None else NativeEval(native)
    if is_asynchronous(kernel):
        from delegraph.operators.asynchronous import AsyncEval, require_event

        step = AsyncEval(step, lambda: require_event(kernel.eval_async(context, node)))
    if type(kernel).memory_changed is SimpleDelegateKernelInterface.memory_changed:
        return step
    from delegraph.operators.asynchronous import preceded_by  # here: few kernels watch memory

    return preceded_by(_MemoryWatch(kernel, context, node).look, step)


def _evaluation(kernel: SimpleDelegateKernelInterface, context: Any, node: Node) -> Eval:
    """Return a function that calls ``kernel.eval``; its first run checks the outputs."""
    has_run = False

    def run() -> None:
        nonlocal has_run
        if has_run:
            kernel.eval(context, node)
            return
        from delegraph.delegation.node_by_node import NodeByNodeKernel
        from delegraph.delegation.written_outputs import run_first

        if type(kernel).eval is NodeByNodeKernel.eval:  # which checks each of its nodes
            kernel.eval(context, node)
            has_run = True
            return
        inputs, outputs = (
            [context.tensors[index] for index in side if index >= 0]
            for side in (node.inputs, node.outputs)
        )
        what = f"{type(kernel).__name__}.eval"
        run_first(lambda: kernel.eval(context, node), inputs, outputs, what)
        has_run = True

    return run


class _MemoryWatch:
    """Notifies a kernel when inputs or outputs of its node have been moved to other memory."""

    def __init__(self, kernel: SimpleDelegateKernelInterface, context: Any, node: Node) -> None:
        self._kernel = kernel
        self._context = context
        self._node = node
        border = dict.fromkeys((*node.inputs, *node.outputs))
        self._tensors = [context.tensors[index] for index in border if index >= 0]
        self._known: list[object] = [None]  # equal to no list of arrays

    def look(self) -> None:
        """Compare the tensors' arrays with those of the last run; notify the kernel of a change."""
        arrays = [tensor.data for tensor in self._tensors]
        if len(arrays) != len(self._known) or any(map(is_not, arrays, self._known)):
            self._kernel.memory_changed(self._context, self._node)
            self._known = arrays


def close_kernel(kernel: SimpleDelegateKernelInterface) -> None:
    """Close a kernel, and log an error that it raises, since the caller could not handle it."""
    try:
        kernel.close()
    except Exception as error:  # noqa: BLE001 - a plugin's code, and others wait to be closed
        logger.warning("%s failed to close: %s", type(kernel).__name__, in_words(error))
