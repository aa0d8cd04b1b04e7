"""A delegate with given answers, and kernels that compute nothing."""

from __future__ import annotations

from delegraph import (
    Capabilities,
    DelegateContext,
    Eval,
    Node,
    NodeByNodeKernel,
    NodeCall,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)


class Idle(NodeByNodeKernel):
    """Writes zeros."""

    def prepare_node(self, call: NodeCall) -> Eval:
        y = call.output()
        return lambda: y.data.fill(0)


class Answering(SimpleDelegateInterface):
    """Gives its answers by node index; the last one holds for all further nodes."""

    def __init__(self, *answers: bool | Rejection) -> None:
        self._answers = answers

    def name(self) -> str:
        return "answering"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return self._answers[min(node.index, len(self._answers) - 1)]

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return Idle()


class Claiming(Answering):
    """Takes what its claims cover, features included."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    def capabilities(self) -> Capabilities:
        return self._capabilities

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = self._capabilities.check(registration, node, context)
        return answer and self._capabilities.check_features(registration, node, context)
