"""The host's side of a delegate that runs in a separate process."""

from __future__ import annotations

import weakref
from functools import partial

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.delegate import (
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
)
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import DelegateError, DelegateProcessError
from delegraph.json_records import from_json
from delegraph.operators.registration import Node, Registration
from delegraph.runtime.isolation.claims import model_of_nodes, movable_nodes, rejection_from_json
from delegraph.runtime.isolation.kernel import IsolatedKernel, settings_of
from delegraph.runtime.isolation.memory_file import MemoryFile
from delegraph.runtime.isolation.process import IsolatedProcess
from delegraph.runtime.isolation.source import DelegateSource

_NOTE = "in a process of its own"


class IsolatedDelegate(SimpleDelegate):
    """A delegate whose code runs in a separate process.

    The process is started at once, so an unknown name or a wrong option is an error here. If the
    process ends unexpectedly, no error is raised until the delegate is applied. Then the failure
    policy decides.

    Args:
        source: description from which the process loads the delegate.
        timeout: seconds that a kernel may take for an invoke; None for no limit.

    Attributes:
        process: the process in which the delegate runs.

    Raises:
        ArgumentError: this system has no such processes, or there is no such file.
        PluginError: the delegate cannot be created, or its options do not fit.
    """

    is_isolated = True

    def __init__(self, source: DelegateSource, timeout: float | None = None) -> None:
        self.process = IsolatedProcess(source, timeout)
        super().__init__(_Outside(self.process))
        self._loss: DelegateProcessError | None = None
        try:
            self.process.living()
        except DelegateProcessError as error:
            self._loss = error.with_traceback(None)

    @property
    def rank(self) -> int:
        """Rank in the order of delegates, from the delegate's spec."""
        return int(self.process.facts.get("rank", 0))

    def prepare(self, context: DelegateContext) -> None:
        """Ask the process about the nodes, and replace the nodes that it accepts.

        If the process ends unexpectedly, the delegate gets no nodes; or the call fails, if the
        failure policy demands it.
        """
        # The process runs as long as an interpreter that has requested this is open.
        context.shared(("isolated", self.process), partial(_Lease, self.process))
        loss, self._loss = self._loss, None
        try:
            if loss is not None:
                raise loss
            super().prepare(context)
        except DelegateProcessError as error:
            plan = context.get_execution_plan()
            reason = context.partition_failed(DelegateParams(self, plan, (), (), context), error)
            self._rejections = dict.fromkeys(plan, reason)

    def _initialize(self, context: DelegateContext) -> None:
        self.simple.initialize(context)


class _Lease:
    """Use of a delegate's process by one interpreter; after the last use the process ends."""

    def __init__(self, process: IsolatedProcess) -> None:
        weakref.finalize(self, process.rest)


class _Outside(SimpleDelegateInterface):
    """A delegate in another process, as the host sees it: by the simple delegate interface."""

    def __init__(self, process: IsolatedProcess) -> None:
        self.process = process
        self._rejections: dict[int, Rejection] = {}

    def name(self) -> str:
        """The delegate's name, or the user's name for it until the process has sent the name."""
        return self.process.name

    def initialize(self, context: DelegateContext) -> None:
        """Ask the process about all nodes of the plan at once.

        Raises:
            DelegateProcessError: the process ended unexpectedly.
            DelegateError: the delegate failed.
        """
        nodes, self._rejections = movable_nodes(context)
        if not nodes:
            return
        model = model_of_nodes(context, nodes)
        content = MemoryFile.with_content(model.content)
        stop = context.cancellation
        child = self.process.living(stop)
        files, settings = [content.file], settings_of(context)
        try:
            answer = self.process.call(child, "claim", "claim", files, stop, settings=settings)
        except DelegateError as error:
            if error.node_index is None:
                raise
            raise self._asked(context, model.nodes[error.node_index], error) from error
        for position, rejection in answer["rejections"]:
            self._rejections[model.nodes[position]] = rejection_from_json(rejection, model)

    def _asked(self, context: DelegateContext, node: int, error: DelegateError) -> DelegateError:
        """Return *error* with text that says about which node the process was asked."""
        name = context.get_node_and_registration(node)[1].name
        text = f"asked about node {node} ({name}): {error}"
        return DelegateError(text, delegate=self.name(), phase="claim", node_index=node)

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return the answer about *node* that the delegate's process gave in :meth:`initialize`."""
        return self._rejections.get(node.index, True)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        """Return a kernel that sends its work to the delegate's process."""
        return IsolatedKernel(self.process)

    def delegate_options(self) -> DelegateOptions:
        """Return the delegate's limits on partitions."""
        return from_json(DelegateOptions, self.process.facts.get("options", {}))

    def flags(self) -> DelegateFlags:
        """Return only the flag for dynamic tensors; the other flags have no effect in the host."""
        flags = DelegateFlags(self.process.facts.get("flags", 0))
        return flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def capabilities(self) -> Capabilities:
        """Return the delegate's tolerances; its claims remain in its process."""
        tolerance = self.process.facts.get("tolerance", {})
        return Capabilities(tolerance=from_json(dict[str, Tolerance], tolerance))

    def note(self) -> str:
        """Return the delegate's note, with a remark that the delegate is isolated."""
        own = self.process.facts.get("note", "")
        return f"{own}; {_NOTE}" if own else _NOTE
