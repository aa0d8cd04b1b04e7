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
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    PartitionPolicy,
)
from delegraph.delegation.graph_partition_helper import GraphPartitionHelper
from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegateError, DelegatePhase, in_words
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.operators.tensor import Tensor

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

        Called once for every well-formed node of the plan, in order: one that Delegraph's kernels
        take, or that they have no kernel of. A bare ``False`` is recorded as "no reason given".
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

    def note(self) -> str:
        """Return what users should know of the results; see :meth:`Delegate.note`."""
        return ""

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
        return self._options().partition_policy

    def capabilities(self) -> Capabilities:
        """Return what the wrapped object claims."""
        return self.simple.capabilities()

    def note(self) -> str:
        """Return what the wrapped object wants users to know."""
        return self.simple.note()

    def rejections(self) -> dict[int, Rejection]:
        """Return why nodes were left, by node index, for the subgraph prepared last."""
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
        total = helper.num_total_nodes
        logger.debug("%s delegate: %d of %d nodes delegated", self.name(), len(nodes), total)
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

    def _create_kernel(self, context: Any, node: Node) -> SimpleDelegateKernelInterface:
        try:
            kernel: object = self.simple.create_delegate_kernel_interface()
        except Exception as error:
            message = f"create_delegate_kernel_interface(): {in_words(error)}"
            raise self._error("init", message, node.index) from error
        if not isinstance(kernel, SimpleDelegateKernelInterface):
            message = (
                f"create_delegate_kernel_interface() returned {kernel!r}, not a "
                "SimpleDelegateKernelInterface"
            )
            raise self._error("init", message, node.index)
        try:
            kernel.init(context, node.options)
        except Exception as error:
            raise self._error("init", in_words(error), node.index) from error
        return kernel

    def _error(
        self, phase: DelegatePhase, message: str, node_index: int | None = None
    ) -> DelegateError:
        return DelegateError(message, delegate=self.name(), phase=phase, node_index=node_index)

    def _registration(self) -> Registration:
        def prepare(context: Any, node: Node) -> Eval:
            kernel: SimpleDelegateKernelInterface = node.user_data
            kernel.prepare(context, node)
            return lambda: kernel.eval(context, node)

        return Registration(
            self.name(), prepare, BuiltinOperator.DELEGATE, init=self._create_kernel
        )
