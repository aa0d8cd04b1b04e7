from __future__ import annotations

import numpy as np

from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.graph.loader import parse_model
from delegraph.schema import tables
from delegraph.schema.enums import DimensionType, TensorType
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import TensorDef, constant, graph_model, one_op_model, tensor
from delegraph.tools.model_listing import list_tensors
from delegraph.tools.model_summary import OperatorCount, summarize_model


def test_constants_are_counted_in_bytes() -> None:
    weights = constant([[1, 2], [3, 4]], "INT8", scale=[0.5, 0.25], zero_point=[0, 0])
    x = tensor((1, 2), "INT8", scale=0.5)
    y = tensor((1, 2), "INT8", scale=0.5)
    content = one_op_model("FULLY_CONNECTED", [x, weights, None], [y], FullyConnectedOptions())
    summary = summarize_model(parse_model(content))
    assert (summary.constants, summary.constant_bytes) == (1, 4)
    assert summary.bytes == len(content)
    (subgraph,) = summary.subgraphs
    assert (subgraph.inputs[0].scale, subgraph.inputs[0].zero_point) == (0.5, 0)
    assert summary.operators == (OperatorCount("FULLY_CONNECTED", 1, 1, macs=4),)


def test_scales_per_channel_are_counted() -> None:
    y = tensor((2, 2), "INT8", scale=[0.5, 0.25], zero_point=[0, 0])
    summary = summarize_model(parse_model(one_op_model("MyOp", [tensor((1,))], [y])))
    assert summary.subgraphs[0].outputs[0].channels == 2
    (operator,) = summary.operators
    assert (operator.custom, operator.package, operator.installed) == (True, None, False)


def test_parameters_are_learnt_values_and_not_axes_or_indices() -> None:
    inputs = [constant([1.5, 2], "FLOAT32"), constant([[0, 1], [1, 0]], "INT32")]
    summary = summarize_model(parse_model(one_op_model("GATHER", inputs, [tensor((2, 2))])))
    counts = {count.type: (count.parameters, count.bytes) for count in summary.types}
    assert counts == {"FLOAT32": (2, 8), "INT32": (0, 16)}
    assert (summary.parameters, summary.macs, summary.quantization) == (2, 0, "")


def test_what_a_delegate_compiled_is_no_parameters() -> None:
    inputs = [tensor((1,)), constant(np.zeros(9, np.uint8))]
    summary = summarize_model(parse_model(one_op_model(CUSTOM_OP, inputs, [tensor((1,))])))
    assert [(count.parameters, count.bytes) for count in summary.types] == [(0, 9)]
    other = summarize_model(parse_model(one_op_model("MyOp", inputs, [tensor((1,))])))
    assert other.parameters == 9


def test_float16_weights_are_seen_behind_their_dequantize() -> None:
    nodes = [
        ("DEQUANTIZE", "half", "weights"),
        ("FULLY_CONNECTED", "x weights -", "y", FullyConnectedOptions()),
    ]
    tensors = {
        "half": constant(np.ones((3, 2), np.float16)),
        "weights": tensor((3, 2)),
        "x": tensor((1, 2)),
        "y": tensor((1, 3)),
    }
    content = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    (precision,) = summarize_model(parse_model(content)).precisions
    assert (precision.activations, precision.weights, precision.kind) == (
        "FLOAT32",
        "FLOAT16",
        "half",
    )


def test_the_operators_this_runtime_has_run_with_delegraph() -> None:
    content = one_op_model("TFLite_Detection_PostProcess", [tensor((1,))], [tensor((1,))])
    (operator,) = summarize_model(parse_model(content)).operators
    assert (operator.package, operator.installed) == ("delegraph", True)


def test_scales_of_blocks_are_no_parameters() -> None:
    details = tables.BlockwiseQuantization(scales=1, block_size=32)
    weights = TensorDef(
        (2, 32),
        TensorType.INT8,
        tables.QuantizationParameters(details=details),
        np.ones(64, np.uint8),
    )
    inputs = [weights, constant(np.ones((2, 1), np.float16))]
    summary = summarize_model(parse_model(one_op_model("MyOp", inputs, [tensor((1,))])))
    assert (summary.parameters, summary.constants) == (64, 2)


def test_zeros_that_a_sparse_constant_leaves_out_are_told() -> None:
    sparse = tables.SparsityParameters(
        traversal_order=(0, 1),
        dim_metadata=(
            tables.DimensionMetadata(dense_size=2),
            tables.DimensionMetadata(
                format=DimensionType.SPARSE_CSR,
                array_segments=tables.Int32Vector(values=np.array([0, 1, 2], np.int32)),
                array_indices=tables.Int32Vector(values=np.array([3, 0], np.int32)),
            ),
        ),
    )
    data = np.ones(2, np.float32).view(np.uint8)
    weights = TensorDef((2, 4), TensorType.FLOAT32, None, data, sparsity=sparse)
    model = parse_model(one_op_model("DENSIFY", [weights], [tensor((2, 4))]))
    summary = summarize_model(model)
    assert (summary.sparse_constants, summary.sparsity) == (1, 0.75)
    assert [each.sparsity for each in list_tensors(model)] == [0.75, None]
