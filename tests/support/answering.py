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
    """Computes nothing."""

    def prepare_node(self, call: NodeCall) -> Eval:
        return lambda: None


class Answering(SimpleDelegateInterface):
    """Delegate that answers the support question from a list by node index.

    The last answer repeats.
    """

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
    """Delegate that takes the nodes covered by its claims, ``features`` included."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    def capabilities(self) -> Capabilities:
        return self._capabilities

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = self._capabilities.check(registration, node, context)
        return answer and self._capabilities.check_features(registration, node, context)
