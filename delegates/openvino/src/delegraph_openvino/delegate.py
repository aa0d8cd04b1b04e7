"""The ``openvino`` delegate: selects nodes for OpenVINO, and compiles and runs each partition."""

from __future__ import annotations

from delegraph import (
    Capabilities,
    DelegateContext,
    DelegateOptions,
    EngineDelegate,
    Node,
    PartitionModel,
    Registration,
    Rejection,
)
from delegraph_openvino import program
from delegraph_openvino.claims import QUANTIZED, capabilities
from delegraph_openvino.magnified import check_magnified, magnified_tensors
from delegraph_openvino.options import OpenvinoOptions
from delegraph_openvino.wrong_results import check_numbers

EIGHT_BITS = "OpenVINO's 8-bit results differ by some units; the option quantized=true takes them"


class OpenvinoDelegate(EngineDelegate):
    """Delegate that claims nodes for which OpenVINO gives TFLite's results, within tolerances."""

    options: OpenvinoOptions
    version = program.VERSION
    _magnified: frozenset[int] = frozenset()

    def name(self) -> str:
        return "openvino"

    def capabilities(self) -> Capabilities:
        return capabilities(self.options.quantized)

    def initialize(self, context: DelegateContext) -> None:
        super().initialize(context)
        exact = not self.options.quantized
        self._magnified = magnified_tensors(context) if exact else frozenset()

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        for index in (*node.inputs, *node.outputs):
            is_8_bit = index >= 0 and context.tensors[index].type.name in QUANTIZED
            if is_8_bit and not self.options.quantized:
                return Rejection("quantized", EIGHT_BITS, tensor=index)
        right = check_numbers(registration, node, context)
        right = right and super().is_node_supported_by_delegate(registration, node, context)
        return right and check_magnified(registration.name, node, self._magnified)

    def delegate_options(self) -> DelegateOptions:
        return DelegateOptions(min_nodes_per_partition=self.options.min_nodes)

    def compile(self, model: PartitionModel) -> bytes:
        content: bytes = program.compiled(model, self.options).export_model().getvalue()
        return content

    def load(self, compiled: bytes, context: DelegateContext) -> program.OpenvinoProgram:
        threads = self.options.num_threads or context.recommended_num_threads
        return program.OpenvinoProgram(compiled, self.options, threads)
