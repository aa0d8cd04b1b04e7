"""The ``openvino`` delegate: which nodes OpenVINO is given, and why it is not given others."""

from __future__ import annotations

from delegraph import (
    Capabilities,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph_openvino.claims import QUANTIZED, capabilities
from delegraph_openvino.kernel import OpenvinoKernel
from delegraph_openvino.options import OpenvinoOptions
from delegraph_openvino.wrong_results import check_numbers


class OpenvinoDelegate(SimpleDelegateInterface):
    """Takes what OpenVINO computes as TFLite does, and compiles each partition as a whole.

    Args:
        options: what the user wants.
    """

    def __init__(self, options: OpenvinoOptions = OpenvinoOptions()) -> None:  # noqa: B008 - frozen
        self.options = options

    def name(self) -> str:
        return "openvino"

    def capabilities(self) -> Capabilities:
        return capabilities(self.options.quantized)

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        tensors = [context.tensors[i] for i in (*node.inputs, *node.outputs) if i >= 0]
        for tensor in tensors:
            if tensor.type.name in QUANTIZED and not self.options.quantized:
                return Rejection(
                    "quantized",
                    "OpenVINO's 8-bit results differ by some units; the option quantized=true "
                    "takes them",
                    tensor=tensor.index,
                )
            if tensor.is_variable:
                return Rejection("variable", "OpenVINO keeps no state here", tensor=tensor.index)
        claimed = self.capabilities()
        for answer in (
            check_numbers(registration, node, context),
            claimed.check(registration, node, context),
            claimed.check_features(registration, node, context),
        ):
            if not answer:
                return answer
        return True

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        if all(context.tensors[index].is_constant for index in params.input_tensors):
            return Rejection("inputs", "OpenVINO compiles no partition without inputs")
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return OpenvinoKernel(self.options)

    def delegate_options(self) -> DelegateOptions:
        return DelegateOptions(min_nodes_per_partition=self.options.min_nodes)

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS
