"""Checks of the section Operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from flatbuffers import flexbuffers

from delegraph import Interpreter
from delegraph.operators.lstm_node import LstmInput
from delegraph.operators.op_table import OP_TABLE
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import BuiltinOperator, FullyConnectedOptionsWeightsFormat
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model
from delegraph.testing import constant, graph_model, one_op_model, subgraphs_model, tensor
from delegraph.testing.one_op import one_op_records
from delegraph.testing.operator_case import Fed, Given, fed, operator_case
from delegraph.testing.operator_cases.quantizing import sparse_rows, with_blocks
from delegraph.testing.recurrent_layers import IntegerLstm, Weights, lstm_weights, state
from delegraph.testing.registered_operators import BUILTIN_VERSIONS
from differences.difference import Sides, attempt, both, difference

RNG = np.random.default_rng(0)


def of_one(
    op: str,
    inputs: Sequence[Given],
    outputs: Sequence[Any],
    options: Table | None = None,
    *,
    numerics: str = "builtin",
    **given: Any,
) -> Sides:
    """Return both results for a model of one operator; arguments as of :func:`operator_case`."""
    case = operator_case(op, inputs, outputs, options, **given)
    return both(case.model(), *case.steps, numerics=numerics)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@difference("rfft2d-of-width-1")
def _() -> Sides:
    inputs = [fed(floats(4, 6)), constant(np.int32([2, 1]))]
    return of_one("RFFT2D", inputs, ["COMPLEX64"], o.Rfft2dOptions())


@difference("an-input-overwritten-in-place")
def _() -> Sides:
    one, two, ten = (constant(np.full(4, value, np.float32)) for value in (1, 2, 10))
    model = graph_model(
        [
            ("ADD", "x one", "a", o.AddOptions()),
            ("MUL", "a two", "b", o.MulOptions()),  # in place of a
            ("RESHAPE", "b shape", "c"),
            ("MUL", "c ten", "d", o.MulOptions()),  # in place of c, and so of b
            ("SUB", "b d", "y", o.SubOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors={"one": one, "two": two, "ten": ten, "shape": constant(np.array([4], np.int32))},
    )
    ours, theirs = both(model, [np.arange(4, dtype=np.float32)])
    np.testing.assert_array_equal(ours[0][0], [-18, -36, -54, -72])
    return ours, theirs


@difference("atan2-of-two-sizes")
def _() -> Sides:
    return of_one("ATAN2", [fed(floats(3, 4)), fed(floats(1, 4))], [tensor((3, 4))])


@difference("depthwise-conv-without-bias")
def _() -> Sides:
    inputs = [fed(floats(1, 5, 5, 3)), constant(floats(1, 3, 3, 3))]
    options = o.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    return of_one("DEPTHWISE_CONV_2D", inputs, ["FLOAT32"], options)


@difference("broadcast-args-that-do-not-fit")
def _() -> Sides:
    return of_one("BROADCAST_ARGS", [fed(np.int32([2])), fed(np.int32([3]))], ["INT32"])


@difference("shift-left-with-too-few-amounts")
def _() -> Sides:
    inputs = [fed(np.ones((2, 6), np.int8)), fed(np.ones(6, np.int8))]
    return of_one("STABLEHLO_SHIFT_LEFT", inputs, ["INT8"])


@difference("reference-sum-of-int8")
def _() -> Sides:
    x = fed(RNG.integers(-128, 128, (3, 8)).astype(np.int8), scale=0.1, zero_point=2)
    y = tensor((3,), "INT8", scale=0.5, zero_point=-29)
    axis = constant(np.int32([1]))
    return of_one("SUM", [x, axis], [y], o.ReducerOptions(), numerics="reference")


@difference("bidirectional-lstm-batch-first")
def _() -> Sides:
    weights, n = Weights(4), 4
    inputs = [tensor((2, 3, 3))]
    inputs += lstm_weights(weights, 3, n, n) + lstm_weights(weights, 3, n, n)
    inputs += [state(2, n) for _ in range(4)] + [None] * 9
    options = o.BidirectionalSequenceLSTMOptions(
        fused_activation_function=Act.TANH, merge_outputs=True, time_major=False
    )
    outputs = [tensor((2, 3, 2 * n))]
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, options)
    return both(model, *weights.inputs((2, 3, 3)))


def bidirectional_rnn(
    *, hybrid: bool, time_major: bool, merge: bool = False, aux: int = 0, cross: bool = False
) -> Sides:
    """Return both results for two RNN layers over 4 times of 2 sequences of 3 numbers.

    Args:
        hybrid: whether weights are int8.
        time_major: whether the input is ``[time, batch, input]``.
        merge: whether both outputs are one.
        aux: numbers of the auxiliary input at a time, 0 for none.
        cross: whether the auxiliary input has weights of its own.
    """
    weights, leading = Weights(3, hybrid=hybrid), (4, 2) if time_major else (2, 4)
    inputs: list[Any] = [tensor((*leading, 3))]
    for units in (5, 6):
        inputs += [weights.matrix(units, 3), weights.matrix(units, units)]
        inputs += [weights.vector(units), state(2, units)]
    inputs.append(tensor((*leading, aux)) if aux else None)
    inputs += [weights.matrix(units, aux) if cross else None for units in (5, 6)]
    options = o.BidirectionalSequenceRNNOptions(
        time_major=time_major, merge_outputs=merge, fused_activation_function=Act.TANH
    )
    outputs = [tensor((*leading, n)) for n in ([11] if merge else [5, 6])]
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, options, version=3)
    steps = weights.inputs((*leading, 3))
    if aux:
        steps = [x + y for x, y in zip(steps, weights.inputs((*leading, aux)), strict=True)]
    return both(model, *steps)


@difference("bidirectional-rnn-short-aux")
def _() -> list[Sides]:
    return [
        bidirectional_rnn(hybrid=hybrid, time_major=not hybrid, aux=2, cross=True)
        for hybrid in (False, True)
    ]


@difference("bidirectional-rnn-hybrid-merged")
def _() -> Sides:
    return bidirectional_rnn(hybrid=True, time_major=True, merge=True)


@difference("conv-weights-of-float16")
def _() -> Sides:
    inputs = [fed(floats(1, 5, 5, 3)), constant(floats(4, 3, 3, 3).astype(np.float16))]
    options = o.Conv2DOptions(stride_w=1, stride_h=1)
    return of_one("CONV_2D", [*inputs, constant(floats(4))], ["FLOAT32"], options)


@difference("conv-int16-with-int32-bias")
def _() -> list[Sides]:
    x = fed(np.full((1, 3, 3, 4), 1000, np.int16), scale=1e-3)
    weight = constant(np.full((2, 3, 3, 4), 5, np.int8), scale=[0.01, 0.01], zero_point=[0, 0])
    flat = constant(np.full((2, 1, 1, 4), 5, np.int8), scale=0.01)
    bias = constant(np.int32([70, 90]), scale=[1e-5, 1e-5])
    y = tensor((), "INT16", scale=1e-3)
    options = o.TransposeConvOptions(stride_w=1, stride_h=1)
    transposed = [constant(np.int32([1, 3, 3, 2])), flat, x, bias]
    return [
        of_one("CONV_2D", [x, weight, bias], [y], o.Conv2DOptions(stride_w=1, stride_h=1)),
        of_one("TRANSPOSE_CONV", transposed, [y], options, version=4),
    ]


@difference("dequantize-with-a-scale-a-block")
def _() -> Sides:
    values = RNG.integers(-8, 8, (2, 64)).astype(np.int8)
    records = one_op_records("DEQUANTIZE", [constant(values, "INT4")], [tensor((2, 64))])
    scales = np.float16([[0.5, 1], [2, 4]])
    return both(write_model(with_blocks(records, 0, scales, 32)), [])


@difference("fully-connected-by-blocks-to-few-outputs")
def _() -> Sides:
    x, weights = floats(2, 64), RNG.integers(-7, 8, (3, 64)).astype(np.int8)
    inputs = [tensor(x.shape), constant(weights, "INT4")]
    records = one_op_records("FULLY_CONNECTED", inputs, [tensor((2, 3))], o.FullyConnectedOptions())
    scales = np.float16([[0.5, 1], [2, 4], [1, 3]])
    return both(write_model(with_blocks(records, 1, scales, 32)), [x])


@difference("lstm-of-a-fine-cell-without-input-gate")
def _() -> Sides:
    lstm = IntegerLstm(cell_log2=-16)
    (x,) = lstm.steps((2, 3, 7), 1)[0]
    case = operator_case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [Fed(x, lstm.input((2, 3, 7))), *lstm.inputs(cifg=True)],
        [lstm.output((2, 3, 8))],
        o.UnidirectionalSequenceLSTMOptions(fused_activation_function=Act.TANH),
        intermediates=lstm.intermediates(),
    )
    return both(case.model(), *case.steps)


def diagonal(dtype: Any) -> list[Sides]:
    x = fed(np.array([[1, 1, 1], [1, 1, 1]], dtype))
    z = fed(np.zeros((2, 3, 3), dtype))
    y = tensor((2, 3, 3), x.definition.type.name)
    return [
        of_one("MATRIX_DIAG", [x], [y], o.MatrixDiagOptions()),
        of_one("MATRIX_SET_DIAG", [z, x], [y], o.MatrixSetDiagOptions()),
    ]


@difference("matrix-diag-of-other-types")
def _() -> list[Sides]:
    types = (np.bool_, np.float16, ml_dtypes.bfloat16, np.uint16, np.uint64, np.complex64)
    return [sides for dtype in types for sides in diagonal(dtype)]


@difference("parsed-operators")
def _() -> list[Sides]:
    from ai_edge_litert.interpreter import Interpreter as LiteRt

    ours = [op for op in OP_TABLE if op in BuiltinOperator.__members__]
    found = []
    for op in sorted(set(ours) - set(BUILTIN_VERSIONS)):
        options = o.OPTIONS_OF_OPERATOR.get(BuiltinOperator[op])
        given = None if options is None else options()
        model = one_op_model(op, [tensor((1,))], [tensor((1,))], given)
        loads = [
            attempt(lambda make=make, model=model: make(model_content=model) is not None)
            for make in (Interpreter, LiteRt)
        ]
        found.append((loads[0], loads[1]))
    return found


def shuffled(rows: int, *, has_bias: bool = True, workspace: int = 32) -> Sides:
    """Return both results for a FULLY_CONNECTED node with shuffled weights, 8 rows of 32."""
    x, weight = (RNG.integers(0, 256, (n, 32)).astype(np.uint8) for n in (rows, 8))
    inputs = [
        fed(x, scale=0.5, zero_point=128),
        constant(weight, scale=0.25, zero_point=128),
        constant(np.arange(8, dtype=np.int32), scale=0.125) if has_bias else None,
    ]
    outputs = [tensor((rows, 8), "INT16", scale=1.0), tensor((rows, workspace), "UINT8")]
    shuffled = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
    options = o.FullyConnectedOptions(weights_format=shuffled)
    return of_one("FULLY_CONNECTED", inputs, outputs, options, version=2)


@difference("shuffled-weights-of-other-sizes")
def _() -> list[Sides]:
    return [shuffled(2), shuffled(4, workspace=1), shuffled(1, has_bias=False)]


@difference("fake-quant-of-other-types")
def _() -> list[Sides]:
    types = (np.float16, np.int32, np.int8, np.int64)
    options = o.FakeQuantOptions(min=-1.0, max=1.0, num_bits=8)
    return [
        of_one("FAKE_QUANT", [fed(np.ones(8, t))], [fed(np.ones(8, t)).definition], options)
        for t in types
    ]


@difference("prelu-int16-alpha")
def _() -> Sides:
    x, alpha = fed(np.int16([-100, 50, -7]), scale=0.5), fed(np.int16([300, 2, 515]), scale=0.5)
    return of_one("PRELU", [x, alpha], [tensor((), "INT16", scale=0.5)])


@difference("parameters-of-other-types")
def _() -> Sides:
    x = fed(floats(4, 2))
    outputs, options = [tensor((2, 2)), tensor((2, 2))], o.SplitOptions(num_splits=2)
    return of_one("SPLIT", [constant(np.int64(0)), x], outputs, options)


@difference("bytes-without-a-scale")
def _() -> list[Sides]:
    x = fed(np.int8([1, -2, 3]))
    words = fed(np.int16([1, -2, 3]))
    return [
        *(of_one(op, [x], [tensor((), "INT8")], version=2) for op in ("RELU", "TANH")),
        of_one("ADD", [words, words], [tensor((), "INT16", scale=0.5)], o.AddOptions(), version=2),
    ]


@difference("batch-matmul-of-fewer-inputs")
def _() -> Sides:
    weights = constant(RNG.integers(-127, 128, (4, 1, 1, 2, 3)).astype(np.int8), scale=0.01)
    options = o.BatchMatMulOptions(adj_y=True, asymmetric_quantize_inputs=True)
    return of_one("BATCH_MATMUL", [fed(floats(1, 3)), weights], ["FLOAT32"], options, version=4)


@difference("comparison-of-bytes-with-a-scale-of-1")
def _() -> list[Sides]:
    a, b = np.int8([1, 2, 3]), np.int8([1, 3, 2])
    return [
        of_one("LESS", [fed(a, scale=scale), fed(b, scale=scale)], ["BOOL"], version=2)
        for scale in (1.0, None)
    ]


@difference("dequantize-of-16-bits-by-channel")
def _() -> list[Sides]:
    values = np.array([[1, 2], [3, 4]])
    return [
        of_one("DEQUANTIZE", [fed(x, scale=[0.5, 2.0], zero_point=[0, 0])], ["FLOAT32"])
        for x in (values.astype(np.int16), values.astype(np.float16))
    ]


@difference("not-equal-of-int16")
def _() -> Sides:
    a, b = fed(np.int16([1, 2, 3])), fed(np.int16([1, 2, 4]))
    return of_one("NOT_EQUAL", [a, b], ["BOOL"])


@difference("reference-fully-connected-with-int32-bias")
def _() -> Sides:
    x = fed(np.full((1, 4), 1000, np.int16), scale=1e-3)
    weight = constant(np.full((2, 4), 5, np.int8), scale=0.01)
    inputs = [x, weight, constant(np.int32([70, 90]), scale=1e-5)]
    y, options = tensor((), "INT16", scale=1e-3), o.FullyConnectedOptions()
    return of_one("FULLY_CONNECTED", inputs, [y], options, numerics="reference")


@difference("reference-versions")
def _() -> Sides:
    inputs, options = [fed(floats(2)), fed(floats(2))], o.AddOptions()
    return of_one("ADD", inputs, ["FLOAT32"], options, version=6, numerics="reference")


@difference("index-that-a-slice-drops")
def _() -> Sides:
    indices = [constant(np.int32([i])) for i in (7, 8, 1)]
    inputs, options = [fed(floats(4)), *indices], o.StridedSliceOptions(shrink_axis_mask=1)
    return of_one("STRIDED_SLICE", inputs, ["FLOAT32"], options)


@difference("biases-of-another-rank")
def _() -> Sides:
    one = constant(np.ones((1, 1), np.float32))
    inputs = [fed(floats(1, 1)), one, one, one, state(1, 1)]
    return of_one("RNN", inputs, ["FLOAT32"], o.RNNOptions(), version=3)


@difference("lengths-beyond-the-dimension")
def _() -> list[Sides]:
    x, options = fed(floats(4)), o.StridedSliceOptions(offset=True)
    rows, masked = fed(floats(4, 2)), o.StridedSliceOptions(offset=True, end_mask=1)
    beyond, inside = ([constant(np.int32([i])) for i in part] for part in ((1, 7, 1), (1, 2, 1)))
    return [
        of_one("STRIDED_SLICE", [x, *beyond], ["FLOAT32"], options, version=8),
        of_one("STRIDED_SLICE", [rows, *inside], ["FLOAT32"], options, version=8),
        of_one("STRIDED_SLICE", [x, *inside], ["FLOAT32"], masked, version=8),
    ]


@difference("dimensions-beyond-int32")
def _() -> Sides:
    inputs = [constant(np.int64([2**32 + 3])), fed(np.float32(1))]
    return of_one("FILL", inputs, ["FLOAT32"], o.FillOptions())


@difference("fake-quant-of-other-bits")
def _() -> list[Sides]:
    x = fed(np.float32([0, 1, 2]))
    options = [o.FakeQuantOptions(min=0.0, max=2.0, num_bits=bits) for bits in (-1, 40)]
    return [of_one("FAKE_QUANT", [x], ["FLOAT32"], given) for given in options]


@difference("quantized-sums-of-nothing")
def _() -> list[Sides]:
    x, axis = fed(np.zeros(0, np.int8), scale=0.5, zero_point=3), constant(np.int32([0]))
    y = tensor((), "INT8", scale=0.5, zero_point=40)
    return [of_one(op, [x, axis], [y], o.ReducerOptions()) for op in ("SUM", "REDUCE_PROD")]


@difference("new-axes-beyond-the-indices")
def _() -> Sides:
    indices = [constant(np.int32([i])) for i in (0, 4, 1)]
    options = o.StridedSliceOptions(new_axis_mask=0b10)
    return of_one("STRIDED_SLICE", [fed(floats(4, 2)), *indices], ["FLOAT32"], options)


@difference("numeric-verify-of-a-constant")
def _() -> Sides:
    inputs = [constant(np.int8([1]), scale=0.5), fed(np.float32([0]))]
    given = bytes(flexbuffers.Dumps({"tolerance": 5.0, "log_if_failed": False}))
    case = operator_case("NumericVerify", inputs, ["FLOAT32"], custom_options=given)
    return both(case.model(), [np.float32([0])], [np.float32([3])])


@difference("numeric-verify-of-another-shape")
def _() -> Sides:
    inputs = [constant(np.int8([[1]]), scale=0.5), fed(floats(2, 2))]
    given = bytes(flexbuffers.Dumps({"tolerance": 5.0, "log_if_failed": False}))
    return of_one("NumericVerify", inputs, ["FLOAT32"], custom_options=given)


@difference("zero-points-of-convolution-weights")
def _() -> list[Sides]:
    found = []
    for type_ in (np.int8, np.int16):
        x = fed(np.full((1, 1, 1, 1), 7, type_), scale=0.5, zero_point=0)
        weight = constant(np.int8([[[[2]]]]), scale=[0.5], zero_point=[5])
        bias = constant(np.zeros(1, np.int32 if type_ is np.int8 else np.int64), scale=[0.25])
        y = tensor((), type_.__name__.upper(), scale=0.5, zero_point=0)
        steps, shape = {"stride_w": 1, "stride_h": 1}, constant(np.int32([1, 1, 1, 1]))
        depthwise = o.DepthwiseConv2DOptions(**steps, depth_multiplier=1)
        inputs = [shape, weight, x, bias]
        found += [
            of_one("DEPTHWISE_CONV_2D", [x, weight, bias], [y], depthwise, version=5),
            of_one("TRANSPOSE_CONV", inputs, [y], o.TransposeConvOptions(**steps), version=4),
        ]
    return found


@difference("constants-that-nodes-write")
def _() -> Sides:
    model = graph_model(
        [("RESHAPE", "x shape", "c")],
        inputs="x shape",
        outputs="c",
        tensors={
            "x": tensor((2, 3)),
            "shape": tensor((1,), "INT32"),
            "c": constant(np.zeros(1, np.float32)),
        },
    )
    return both(model, [floats(2, 3), np.int32([6])])


@difference("int4-weights-of-minus-8")
def _() -> Sides:
    weights = RNG.integers(-8, 8, (4, 32)).astype(np.int8)
    weights[0, 0] = -8
    inputs = [fed(floats(1, 32)), constant(weights, "INT4", scale=0.5)]
    return of_one("FULLY_CONNECTED", inputs, ["FLOAT32"], o.FullyConnectedOptions(), version=9)


@difference("matrix-set-diag-of-another-shape")
def _() -> Sides:
    inputs = [fed(floats(2, 2)), fed(floats(3))]
    return of_one("MATRIX_SET_DIAG", inputs, ["FLOAT32"], o.MatrixSetDiagOptions())


@difference("scales-of-another-count")
def _() -> list[Sides]:
    column = constant(np.ones((2, 3), np.int8), scale=[0.1, 0.2, 0.3], axis=1)
    dense = [fed(floats(1, 3)), column]
    matrix = constant(np.ones((2, 2), np.int8), scale=[0.1, 0.2])
    one = constant(np.ones((2, 2), np.int8), scale=0.1)
    y = tensor((2, 1), "INT8", scale=0.1)
    layer = [fed(floats(1, 2)), matrix, one, constant(floats(2)), state(1, 2)]
    return [
        of_one("FULLY_CONNECTED", dense, ["FLOAT32"], o.FullyConnectedOptions(), version=9),
        of_one("RNN", layer, ["FLOAT32"], o.RNNOptions(), version=3),
        of_one("HARD_SWISH", [fed(np.int8([[1], [2]]), scale=[0.1, 0.2], zero_point=[0, 0])], [y]),
    ]


@difference("scatter-of-other-dimensions")
def _() -> Sides:
    options = o.StablehloScatterOptions(
        update_window_dims=(1, 2),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        update_computation_subgraph_index=1,
    )
    main = [("STABLEHLO_SCATTER", "x i u", "y", options)]
    shapes = {"x": (2, 1), "i": (2, 1), "u": (2, 1, 4), "y": (2, 1)}
    tensors = {name: tensor(shape, "INT32") for name, shape in shapes.items()}
    scalars = {name: tensor((), "INT32") for name in "ab"}
    model = subgraphs_model([(main, "x i u", "y", tensors), ([], "a b", "b", scalars)])
    zeros = np.zeros((2, 1), np.int32)
    return both(model, [zeros, zeros, np.zeros((2, 1, 4), np.int32)])


@difference("strides-of-another-count")
def _() -> Sides:
    indices = [constant(np.int32(values)) for values in ([1], [3], [1, 1])]
    inputs = [fed(floats(4)), *indices]
    return of_one("STRIDED_SLICE", inputs, ["FLOAT32"], o.StridedSliceOptions())


@difference("hadamard-rotation-to-another-shape")
def _() -> Sides:
    given = bytes(flexbuffers.Dumps({"hadamard_size": 2, "random_binary_vector": [1, 1]}))
    x = fed(floats(1, 2))
    return of_one("aeq.hadamard_rotation", [x], [tensor((1, 1))], custom_options=given)


@difference("more-than-32-dimensions")
def _() -> Sides:
    model = graph_model(
        [("FILL", "dims value", "many"), ("RANK", "many", "y")],
        inputs="value",
        outputs="y",
        tensors={
            "dims": constant(np.ones(33, np.int32)),
            "value": tensor(()),
            "many": tensor((1,)),
            "y": tensor((), "INT32"),
        },
    )
    return both(model, [np.float32(1)])


@difference("outputs-that-are-one-tensor")
def _() -> Sides:
    model = graph_model(
        [("SPLIT", "axis x", "y y", o.SplitOptions(num_splits=2))],
        inputs="x",
        outputs="y",
        tensors={"axis": constant(np.int32(0)), "x": tensor((4,)), "y": tensor((2,))},
    )
    return both(model, [floats(4)])


@difference("parameters-of-several-elements")
def _() -> Sides:
    axis = constant(np.int32([1, 0]))
    inputs, outputs = [axis, fed(floats(2, 4))], [tensor((2, 2)), tensor((2, 2))]
    return of_one("SPLIT", inputs, outputs, o.SplitOptions(num_splits=2))


@difference("variables-of-another-shape")
def _() -> Sides:
    model = graph_model(
        [
            ("VAR_HANDLE", "", "h", o.VarHandleOptions(shared_name="v")),
            ("ASSIGN_VARIABLE", "h x", ""),
            ("READ_VARIABLE", "h", "y"),
        ],
        inputs="x",
        outputs="y",
        tensors={"h": tensor((), "RESOURCE"), "x": tensor((2,)), "y": tensor((1,))},
    )
    return both(model, [floats(2)])


@difference("pools-without-a-window")
def _() -> list[Sides]:
    x, y = fed(np.int16([[[[1]]]]), scale=0.5), tensor((), "INT16", scale=0.5)
    options = [o.Pool2DOptions(stride_w=3, stride_h=3, filter_width=width) for width in (0, -1)]
    return [of_one("MAX_POOL_2D", [x], [y], given, version=3) for given in options]


@difference("sequences-longer-than-their-axis")
def _() -> Sides:
    inputs = [fed(np.ones((2, 3), np.float32)), fed(np.int32([2, 4]))]
    return of_one("REVERSE_SEQUENCE", inputs, ["FLOAT32"], o.ReverseSequenceOptions(seq_dim=1))


@difference("sparse-constants-for-dense-ones")
def _() -> Sides:
    x = sparse_rows("FLOAT32", np.eye(3, dtype=bool), np.float32([5, 6, 7]))
    return of_one("NEG", [x], ["FLOAT32"])


@difference("anchors-of-another-shape")
def _() -> Sides:
    scales = dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 1.0)
    counts = dict.fromkeys(("max_detections", "max_classes_per_detection", "num_classes"), 1)
    options = {**scales, **counts, "nms_iou_threshold": 0.5}
    boxes, scores, anchors = (np.ones(s, np.float32) for s in ((1, 1, 4), (1, 1, 1), (2, 4)))
    return of_one(
        "TFLite_Detection_PostProcess",
        [fed(boxes), fed(scores), constant(anchors)],
        ["FLOAT32"] * 4,
        custom_options=bytes(flexbuffers.Dumps(options)),
    )


@difference("inputs-that-constants-make")
def _() -> Sides:
    model = graph_model(
        [("DEQUANTIZE", "halves", "x"), ("NEG", "x", "y")],
        inputs="x",
        outputs="y",
        tensors={"halves": constant(np.float16([1, 2])), "x": tensor((2,)), "y": tensor((2,))},
    )
    return both(model, [floats(2)], [floats(2)])


@difference("computed-weights-of-integer-lstms")
def _() -> Sides:
    lstm = IntegerLstm()
    (x,) = lstm.steps((2, 3, 7), 1)[0]
    inputs = lstm.inputs(peephole=True)
    place = LstmInput.CELL_TO_FORGET_WEIGHTS - 1
    inputs[place] = Fed(np.ones(8, np.int16), replace(inputs[place], data=None))
    case = operator_case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [Fed(x, lstm.input((2, 3, 7))), *inputs],
        [lstm.output((2, 3, 8))],
        o.UnidirectionalSequenceLSTMOptions(fused_activation_function=Act.TANH),
        intermediates=lstm.intermediates(),
    )
    return both(case.model(), *case.steps)


@difference("sparse-weights-of-int16")
def _() -> Sides:
    kept = np.eye(4, dtype=bool)[::-1]
    weight = sparse_rows("INT8", kept, np.int8([100, 20, 30, 40]))
    weight = replace(weight, quantization=constant(np.int8([0]), scale=0.5).quantization)
    x, y = fed(np.int16([[1, 2, 3, 4]]), scale=0.5), tensor((), "INT16", scale=0.5)
    return of_one("FULLY_CONNECTED", [x, weight], [y], o.FullyConnectedOptions(), version=9)


@difference("weights-of-other-types")
def _() -> Sides:
    x, y = fed(np.full((4, 6), -5, np.int8), scale=0.5), tensor((), "INT8", scale=0.5)
    alpha = constant(np.full((4, 6), 3, np.int8), "INT4", scale=0.5)
    return of_one("PRELU", [x, alpha], [y])
