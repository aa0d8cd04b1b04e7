"""Kernel of STABLEHLO_COMPOSITE: runs a subgraph in place of the composite operator."""

from __future__ import annotations

from delegraph.kernels.control_flow import callee, node_outputs, size_outputs_like
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor
from delegraph.operators.subgraph_call import Value, give_back


@kernel("STABLEHLO_COMPOSITE")
def prepare_composite(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_COMPOSITE: runs the subgraph that decomposes the operator.

    Source:
        tflite/kernels/stablehlo_composite.cc.
    """
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    outputs = node_outputs(context, node)
    decomposition = callee(context, getattr(node.options, "decomposition_subgraph_index", -1))
    decomposition.check(inputs, len(outputs), "decomposition")
    decomposition.take_shapes([tensor.shape for tensor in inputs])
    size_outputs_like(context, outputs, decomposition.outputs, decomposition.is_dynamic)

    def run() -> None:
        decomposition.take([Value.of(tensor) for tensor in inputs])
        give_back(context, outputs, decomposition.invoke())

    return run
