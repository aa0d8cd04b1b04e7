"""FULLY_CONNECTED."""

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from delegraph import Interpreter, TensorType
from delegraph.errors import NodeError
from delegraph.schema import tables
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat as Format
from delegraph.schema.options import FullyConnectedOptions
from delegraph.schema.writer import write_model
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from delegraph.testing.one_op import one_op_records
from delegraph.testing.operator_cases.quantizing import with_blocks
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.convolutions import KINDS, KINDS_OF_ONE_SCALE, TOLERANCE, assert_kind_agrees, operands
from support.official import official_outputs

KINDS = [*KINDS, *KINDS_OF_ONE_SCALE]


def options(kind="float", act=Act.NONE, **given):
    found = re.match("int16-(int..)-bias", kind)
    bias_type = TensorType[found[1].upper() if found else "FLOAT32"]
    return FullyConnectedOptions(
        fused_activation_function=act, quantized_bias_type=bias_type, **given
    )


def assert_fc_agrees(kind, x_shape, weight_shape, *, bias=True, seed=0, **given):
    case = operands(kind, x_shape, weight_shape, seed=seed)
    inputs = [case.x, case.weight, case.bias if bias else None]
    return assert_kind_agrees("FULLY_CONNECTED", inputs, case.y, options(kind, **given), 9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_rows(kind, rows):
    assert_fc_agrees(kind, (rows, 24), (300, 24))


@pytest.mark.parametrize("kind", KINDS)
def test_without_bias(kind):
    assert_fc_agrees(kind, (4, 50), (70, 50), bias=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("act", [Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
def test_fused_activation(kind, act):
    assert_fc_agrees(kind, (16, 24), (40, 24), act=act)


def test_hybrid_kernels_know_tanh():
    assert_fc_agrees("hybrid", (16, 24), (40, 24), act=Act.TANH)


@pytest.mark.parametrize("kind", ["hybrid", "hybrid-channels"])
def test_asymmetric_inputs(kind):
    assert_fc_agrees(kind, (16, 24), (40, 24), asymmetric_quantize_inputs=True)


@pytest.mark.parametrize(("units", "depth"), [(3, 32), (4, 30), (4, 31), (4, 32), (17, 100)])
def test_int4_weights_for_the_official_4_bit_kernel_have_no_zero_points(units, depth):
    assert_fc_agrees("hybrid-int4", (3, depth), (units, depth), asymmetric_quantize_inputs=True)


@pytest.mark.parametrize("kind", ["hybrid", "hybrid-channels"])
def test_rows_of_zeros(kind):
    case = operands(kind, (2, 24), (40, 24))
    x = fed(np.zeros((2, 24), np.float32))
    args = ("FULLY_CONNECTED", [x, case.weight, case.bias], [case.y], options())
    assert_agrees(*args, version=9, tolerance=TOLERANCE)


def test_the_input_is_flattened_to_rows():
    assert assert_fc_agrees("float", (2, 3, 4, 5), (7, 20)).shape == (6, 7)


def test_dimensions_are_kept_on_request():
    y = assert_fc_agrees("int8-channels", (2, 3, 4, 5), (7, 5), keep_num_dims=True)
    assert y.shape == (2, 3, 4, 7)


@pytest.mark.parametrize("kind", ["int8-channels", "uint8"])
def test_long_sums_stay_exact(kind):
    assert_fc_agrees(kind, (3, 9216), (20, 9216))


@pytest.mark.parametrize("per_channel", [False, True])
def test_int16_weights(per_channel):
    rng = np.random.default_rng(0)
    scale = rng.uniform(1e-6, 2e-6, 40).tolist() if per_channel else 1.5e-6
    x = fed(rng.integers(-32768, 32767, (300, 24)).astype(np.int16), scale=0.01)
    weight = constant(rng.integers(-32767, 32767, (40, 24)).astype(np.int16), scale=scale)
    y = tensor((), "INT16", scale=0.0003)
    args = ("FULLY_CONNECTED", [x, weight, None], [y], FullyConnectedOptions())
    try:
        assert_agrees(*args, version=14)
    except RuntimeError as refused:  # newer than the official release in use
        pytest.skip(str(refused))


def test_uint8_to_int16():
    case = operands("uint8", (100, 24), (40, 24))
    y = tensor((), "INT16", scale=0.005)
    args = ("FULLY_CONNECTED", [case.x, case.weight, case.bias], [y], options())
    assert_agrees(*args, version=4)


def test_weights_that_are_computed():
    rng = np.random.default_rng(1)
    x, weight = (fed(rng.standard_normal(s).astype("f4")) for s in [(5, 8), (6, 8)])
    args = ("FULLY_CONNECTED", [x, weight, None], ["FLOAT32"], options())
    assert_agrees(*args, tolerance=TOLERANCE)


def test_quantized_weights_that_are_computed():
    case = operands("int8", (5, 8), (6, 8))
    rng = np.random.default_rng(1)
    weight = fed(rng.integers(-127, 128, (6, 8)).astype("i1"), scale=0.0151)
    args = ("FULLY_CONNECTED", [case.x, weight, case.bias], [case.y], options())
    assert_agrees(*args, version=4)


@pytest.mark.parametrize("block", [0, 32])
def test_weights_take_no_memory_before_the_first_run(block):
    weight = constant(np.ones((256, 1024), np.int8), "INT4", scale=None if block else 0.5)
    records = one_op_records(
        "FULLY_CONNECTED", [tensor((1, 1024)), weight], [tensor(())], options()
    )
    if block:
        records = with_blocks(records, 1, np.ones((256, 1024 // block), np.float16), block)
    content = write_model(records)
    with Interpreter(model_content=content, delegates=[]) as interpreter:
        interpreter.allocate_tensors()  # imports the kernel
    with Interpreter(model_content=content, delegates=[]) as interpreter:
        tracemalloc.start()
        try:
            interpreter.allocate_tensors()
            assert tracemalloc.get_traced_memory()[1] < weight.data.nbytes * 3
            x = interpreter.get_input_details()[0]["index"]
            interpreter.set_tensor(x, np.ones((1, 1024), np.float32))
            interpreter.invoke()
            assert tracemalloc.get_traced_memory()[1] > weight.data.nbytes * 8
        finally:
            tracemalloc.stop()


def sparse(values, **given):
    """Return dense *values* as a constant whose rows keep only blocks of 16 that are not zero."""
    blocks = values.reshape(len(values), -1, 16)
    kept = [np.flatnonzero(row.any(axis=1)) for row in blocks]
    dense, sparse_kind = tables.DimensionType.DENSE, tables.DimensionType.SPARSE_CSR
    segments = tables.Int32Vector(values=np.cumsum([0, *map(len, kept)], dtype=np.int32))
    indices = tables.Int32Vector(values=np.concatenate(kept).astype(np.int32))
    metadata = (
        tables.DimensionMetadata(format=dense, dense_size=len(values)),
        tables.DimensionMetadata(
            format=sparse_kind, array_segments=segments, array_indices=indices
        ),
        tables.DimensionMetadata(format=dense, dense_size=16),
    )
    stored = np.concatenate([row[places] for row, places in zip(blocks, kept, strict=True)])
    whole = constant(values, **given)
    parameters = tables.SparsityParameters(
        traversal_order=np.array([0, 1, 2], np.int32),
        block_map=np.array([1], np.int32),
        dim_metadata=metadata,
    )
    return replace(whole, data=np.frombuffer(stored.tobytes(), np.uint8), sparsity=parameters)


def sparse_values(seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(-127, 128, (64, 64))
    values.reshape(64, 4, 16)[rng.random((64, 4)) < 0.6] = 0
    return values.astype(np.int8)


def test_sparse_int8_weights():
    case = operands("int8", (200, 64), (64, 64))
    weight = sparse(sparse_values(), scale=0.0151)
    args = ("FULLY_CONNECTED", [case.x, weight, case.bias], [case.y], options())
    assert_agrees(*args, version=8)


def test_sparse_hybrid_weights():
    x = fed(np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32))
    args = ("FULLY_CONNECTED", [x, sparse(sparse_values(), scale=0.1), None], ["FLOAT32"])
    assert_agrees(*args, options(), version=8, tolerance=TOLERANCE)


def refusal(x=(4, 6), weight=(3, 6), bias=(3,), bias_type="f4", y="FLOAT32", **given):
    inputs = [fed(np.zeros(x, "f4")), constant(np.zeros(weight, "f4"))]
    return (
        "FULLY_CONNECTED", [*inputs, constant(np.zeros(bias, bias_type))], [y], options(**given)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (refusal(weight=(3, 2, 3)), "2 dimensions"),
        (refusal(bias=(4,)), r"expected \[3\]"),
        (refusal(bias_type="i4"), "INT32"),
        (refusal(y="INT8"), "INT8"),
        (refusal(act=Act.TANH), "TANH, expected a clamp"),
        (refusal(x=(4, 12), keep_num_dims=True), "expected 6 as last dimension"),
    ],
)
def test_refused_by_both(case, match):
    assert_both_refuse(*case, match=match)


def shuffled(rows, depth, units, *, y_scale=1.0, act=Act.NONE, bias=True, workspace=None):
    """Return a node whose weights are in blocks of 4 rows and 16 columns."""
    rng = np.random.default_rng(rows + depth + units)
    x, weight = (rng.integers(0, 256, n).astype(np.uint8) for n in ((rows, depth), (units, depth)))
    inputs = [
        fed(x, scale=0.5, zero_point=128),
        constant(weight, scale=0.25, zero_point=128),
        constant(rng.integers(-9000, 9000, units).astype("i4"), scale=0.125) if bias else None,
    ]
    outputs = [
        tensor((rows, units), "INT16", scale=y_scale),
        tensor((rows, depth) if workspace is None else workspace, "UINT8"),
    ]
    options = FullyConnectedOptions(
        weights_format=Format.SHUFFLED4x16INT8, fused_activation_function=act
    )
    return "FULLY_CONNECTED", inputs, outputs, options


@pytest.mark.parametrize("numerics", ["builtin", "reference"])
@pytest.mark.parametrize("act", [Act.NONE, Act.RELU])
@pytest.mark.parametrize("y_scale", [0.05, 1.0, 77.0])
@pytest.mark.parametrize("rows", [1, 4])
def test_shuffled_weights_are_exact(rows, y_scale, act, numerics):
    model, arrays = model_and_arrays(*shuffled(rows, 48, 12, y_scale=y_scale, act=act), version=2)
    ours = delegraph_outputs(model, arrays, numerics=numerics)
    for mine, theirs in zip(
        ours, official_outputs(model, arrays, reference=numerics == "reference"), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (shuffled(2, 32, 8), "2 rows by"),
        (shuffled(4, 24, 8), "multiples of 4 and 16"),
        (shuffled(1, 32, 6), "multiples of 4 and 16"),
    ],
)
def test_shuffled_weights_of_other_sizes_are_refused(case, match):
    with pytest.raises(RuntimeError, match=match):
        delegraph_outputs(*model_and_arrays(*case, version=2))


@pytest.mark.parametrize(
    ("rows", "workspace"), [(1, (32,)), (1, (4, 8, 4)), (4, (128,)), (4, (4, 8, 4)), (4, (500,))]
)
def test_a_workspace_that_is_large_enough_keeps_its_shape(rows, workspace):
    model, arrays = model_and_arrays(*shuffled(rows, 32, 8, workspace=workspace), version=2)
    mine, theirs = delegraph_outputs(model, arrays), official_outputs(model, arrays)
    np.testing.assert_array_equal(mine[0], theirs[0])
    assert mine[1].shape == theirs[1].shape == workspace
    used = slice(32 * rows)
    np.testing.assert_array_equal(mine[1].reshape(-1)[used], theirs[1].reshape(-1)[used])


@pytest.mark.parametrize("workspace", [(), (0,), (1,)], ids=str)
@pytest.mark.parametrize("rows", [1, 4])
def test_a_workspace_that_is_too_small_gets_its_size(rows, workspace):
    small, enough = (
        delegraph_outputs(*model_and_arrays(*shuffled(rows, 32, 8, workspace=shape), version=2))
        for shape in (workspace, None)
    )
    for mine, right in zip(small, enough, strict=True):
        np.testing.assert_array_equal(mine, right)


def test_both_refuse_shuffled_weights_of_other_types():
    op, (_, weight, bias), outputs, options = shuffled(1, 32, 8)
    x = fed(np.zeros((1, 32), np.int8), scale=0.5)
    assert_both_refuse(op, [x, weight, bias], outputs, options, match="UINT8", version=2)


@pytest.mark.parametrize("type", ["INT8", "UINT8"])
def test_an_output_scale_of_zero_makes_every_output_the_zero_point(type):
    x = fed(np.full((2, 3), 5, type.lower()), scale=0.5)
    weight = constant(np.ones((4, 3), type.lower()), scale=0.5)
    y = tensor((2, 4), type, scale=0.0, zero_point=3)
    assert_agrees("FULLY_CONNECTED", [x, weight, None], [y], options())


def test_a_bias_may_be_computed_where_weights_have_8_bits() -> None:
    x, bias = np.ones((2, 3), np.float32), np.array([1, -2], np.float32)
    weight = constant(np.arange(6, dtype=np.int8).reshape(2, 3), scale=0.5)
    options = FullyConnectedOptions()
    assert_agrees(
        "FULLY_CONNECTED", [fed(x), weight, fed(bias)], ["FLOAT32"], options, tolerance=1e-6
    )


def test_sparse_weights_with_another_number_of_values_are_refused():
    weight = sparse(sparse_values(), scale=0.1)
    x = tensor((1, 64))
    model = one_op_model(
        "FULLY_CONNECTED", [x, replace(weight, data=weight.data[16:]), None], [tensor(())],
        options(), version=8,
    )  # fmt: skip
    with pytest.raises(NodeError, match="values stored for"):
        Interpreter(model_content=model).allocate_tensors()


@pytest.mark.parametrize(
    ("x", "weight"), [("f4", "f4"), ("f4", "i1"), ("u1", "u1"), ("i1", "i1"), ("i2", "i1")]
)
@pytest.mark.parametrize("taps", [0, 3])
def test_a_layer_may_have_no_outputs(x, weight, taps):
    scales = [None if dtype == "f4" else 0.5 for dtype in (x, weight)]
    given = fed(np.zeros((2, taps), x), scale=scales[0])
    y = tensor((), given.definition.type.name, scale=scales[0])
    inputs = [given, constant(np.zeros((0, taps), weight), scale=scales[1]), None]
    assert_agrees("FULLY_CONNECTED", inputs, [y], options(), version=7)
