"""The interface most delegates implement: say which nodes, then compute partitions.

Source:
    tflite/delegates/utils/simple_delegate.h.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.delegate import (
    NO_REASON,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    PartitionPolicy,
    Rejection,
)
from delegraph.errors import DelegateError
from delegraph.kernels.registration import Eval, Node, Registration
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.kernels.tensor import Tensor

logger = logging.getLogger(__name__)


class SimpleDelegateKernelInterface(ABC):
    """Computes one partition. One object for each delegate node."""

    @abstractmethod
    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Take the partition; called once, before any prepare.

        ``params`` may be kept. Shapes may still change; constants are readable.
        """

    @abstractmethod
    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Get ready for the current shapes; called at each (re)allocation.

        Input shapes are known. Output tensors keep the shapes that the model declares unless this
        resizes them. Arena tensors have no data yet.
        """

    @abstractmethod
    def eval(self, context: DelegateContext, node: Node) -> None:
        """Compute ``node.outputs`` from ``node.inputs``; called at each invoke.

        ``tensor.data`` may be another array than last time.
        """


class SimpleDelegateInterface(ABC):
    """Which nodes a delegate takes, and the kernels that compute them."""

    @abstractmethod
    def name(self) -> str:
        """Return the name that reports and errors show."""

    def initialize(self, context: DelegateContext) -> None:  # noqa: B027 - most need nothing
        """Look at the subgraph before any node is asked about; called once a subgraph."""

    @abstractmethod
    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return whether the delegate takes this node, or a :class:`Rejection` that says why not.

        Called once for every node of the plan, in order. A bare ``False`` is recorded as
        "no reason given".
        """

    @abstractmethod
    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        """Return a new kernel for one partition."""

    def delegate_options(self) -> DelegateOptions:
        """Return the limits on partitions; none by default."""
        return DelegateOptions()

    def flags(self) -> DelegateFlags:
        """Return the delegate's abilities; none by default."""
        return DelegateFlags.NONE

    def capabilities(self) -> Capabilities:
        """Return what the delegate claims to compute, and how exactly; nothing by default."""
        return Capabilities()

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """See :meth:`Delegate.copy_from_buffer_handle`."""
        Delegate.copy_from_buffer_handle(self, context, tensor)  # type: ignore[arg-type]  # name() only

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """See :meth:`Delegate.copy_to_buffer_handle`."""
        Delegate.copy_to_buffer_handle(self, context, tensor)  # type: ignore[arg-type]  # name() only

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:  # noqa: B027 - optional
        """Release the delegate's own buffer; nothing by default."""


class SimpleDelegate(Delegate):
    """Drives a :class:`SimpleDelegateInterface`: ask, partition, choose, replace.

    Source:
        DelegatePrepare, GetDelegateKernelRegistration; tflite/delegates/utils/simple_delegate.cc.
    """

    def __init__(self, simple: SimpleDelegateInterface) -> None:
        self.simple = simple
        self._rejections: dict[int, Rejection] = {}

    @property
    def flags(self) -> DelegateFlags:
        """The wrapped object's flags."""
        return self.simple.flags()

    def name(self) -> str:
        """Return the wrapped object's name."""
        return self.simple.name()

    @property
    def partition_policy(self) -> PartitionPolicy:
        """That of ``delegate_options()``."""
        return self.simple.delegate_options().partition_policy

    def capabilities(self) -> Capabilities:
        """Return what the wrapped object claims."""
        return self.simple.capabilities()

    def rejections(self) -> dict[int, Rejection]:
        """Return why nodes were left, by node index, for the subgraph prepared last."""
        return dict(self._rejections)

    def prepare(self, context: DelegateContext) -> None:
        """Ask about every node of the plan and replace the chosen partitions."""
        options = self.simple.delegate_options()
        self.simple.initialize(context)
        supported = self._supported_nodes(context)
        nodes = self._largest_partitions(context, supported, options)
        plan = context.get_execution_plan()
        logger.info("%s delegate: %d of %d nodes delegated", self.name(), len(nodes), len(plan))
        context.replace_node_subsets_with_delegate_kernels(self._registration(), nodes, self)

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Ask the wrapped object."""
        self.simple.copy_from_buffer_handle(context, tensor)

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Ask the wrapped object."""
        self.simple.copy_to_buffer_handle(context, tensor)

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
        """Ask the wrapped object."""
        self.simple.free_buffer_handle(context, handle)

    def _supported_nodes(self, context: DelegateContext) -> list[int]:
        self._rejections = {}
        supported = []
        for index in context.get_execution_plan():
            node, registration = context.get_node_and_registration(index)
            try:
                answer = self.simple.is_node_supported_by_delegate(registration, node, context)
            except Exception as error:
                raise DelegateError(
                    f"asked about node {index} ({registration.name}): "
                    f"{type(error).__name__}: {error}"
                ) from error
            if answer:
                supported.append(index)
            else:
                self._rejections[index] = answer if isinstance(answer, Rejection) else NO_REASON
        return supported

    def _largest_partitions(
        self, context: DelegateContext, supported: list[int], options: DelegateOptions
    ) -> list[int]:
        """Return the nodes of the partitions that ``options`` let through, largest first.

        Source:
            GraphPartitionHelper::GetNodesOfFirstNLargestPartitions, tflite/delegates/utils.cc.
        """
        limit, minimum = options.max_delegated_partitions, options.min_nodes_per_partition
        if not supported or (limit <= 0 and minimum <= 1):
            return supported
        partitions = context.preview_delegate_partitioning(supported)
        partitions.sort(key=lambda params: -len(params.nodes_to_replace))
        chosen: list[int] = []
        for rank, params in enumerate(partitions):
            size = len(params.nodes_to_replace)
            if limit > 0 and rank >= limit:
                reason = Rejection("max-delegated-partitions", actual=rank + 1, expected=limit)
            elif size < minimum:
                reason = Rejection("min-nodes-per-partition", actual=size, expected=minimum)
            else:
                chosen += params.nodes_to_replace
                continue
            self._rejections.update(dict.fromkeys(params.nodes_to_replace, reason))
        return chosen

    def _registration(self) -> Registration:
        def init(context: Any, node: Node) -> SimpleDelegateKernelInterface:
            kernel = self.simple.create_delegate_kernel_interface()
            kernel.init(context, node.options)
            return kernel

        def prepare(context: Any, node: Node) -> Eval:
            kernel: SimpleDelegateKernelInterface = node.user_data
            kernel.prepare(context, node)
            return lambda: kernel.eval(context, node)

        return Registration(self.name(), prepare, BuiltinOperator.DELEGATE, init=init)
