"""Products of float32 activations and 8-bit weights, against Delegraph's own kernels."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import assert_agrees, assert_near, delegated, is_taken, levels, run
from delegraph import Interpreter
from delegraph.schema import options as o
from delegraph.schema import read_model, write_model
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding, TensorType
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.testing.operator_cases.quantizing import with_blocks
from support.official import official_outputs

SAME, VALID = Padding.SAME, Padding.VALID


def floats(shape: Sequence[int], seed: int = 0) -> NDArray[np.float32]:
    """Return values of uneven ends, so that zero points are not 0."""
    generator = np.random.default_rng([seed, *shape])
    return (generator.standard_normal(shape) + 0.7).astype(np.float32)


def weights(shape: Sequence[int], is_per_channel: bool, kind: str = "INT8", axis: int = 0) -> Any:
    """Return constant weights of the type's whole range but its lowest value."""
    limit = 127 if kind == "INT8" else 7
    values = np.random.default_rng([1, *shape]).integers(-limit, limit + 1, shape)
    count = shape[axis] if is_per_channel else 1
    scale = [0.01 * (1 + i % 5) for i in range(count)]
    return constant(values.astype(np.int8), kind, scale=scale, axis=axis)


def conv_model(
    shape: tuple[int, ...],
    outputs: int,
    kernel: tuple[int, int] = (3, 3),
    *,
    is_per_channel: bool = True,
    kind: str = "INT8",
    groups: int = 1,
    **options: Any,
) -> bytes:
    weight = weights((outputs, *kernel, shape[3] // groups), is_per_channel, kind)
    inputs = [tensor(shape), weight, constant(floats((outputs,)))]
    given = {"padding": SAME, "stride_h": 1, "stride_w": 1, **options}
    return one_op_model("CONV_2D", inputs, [tensor((1, 1, 1, outputs))], o.Conv2DOptions(**given))


def depthwise_model(
    shape: tuple[int, ...], multiplier: int = 1, kernel: tuple[int, int] = (3, 3), **options: Any
) -> bytes:
    outputs = shape[3] * multiplier
    weight = weights((1, *kernel, outputs), is_per_channel=True, axis=3)
    inputs = [tensor(shape), weight, constant(floats((outputs,)))]
    given = {"padding": SAME, "stride_h": 1, "stride_w": 1, **options}
    return one_op_model(
        "DEPTHWISE_CONV_2D",
        inputs,
        [tensor((1, 1, 1, outputs))],
        o.DepthwiseConv2DOptions(depth_multiplier=multiplier, **given),
    )


def dense_model(
    shape: tuple[int, ...],
    outputs: int,
    *,
    is_per_channel: bool = False,
    kind: str = "INT8",
    has_bias: bool = True,
    **options: Any,
) -> bytes:
    inputs = [tensor(shape), weights((outputs, shape[-1]), is_per_channel, kind)]
    if has_bias:
        inputs.append(constant(floats((outputs,))))
    return one_op_model(
        "FULLY_CONNECTED", inputs, [tensor((1, outputs))], o.FullyConnectedOptions(**options)
    )


@levels
@pytest.mark.parametrize("is_per_channel", [False, True])
@pytest.mark.parametrize("outputs", [1, 15, 16, 17, 33, 48, 64, 83])
def test_convolutions_have_any_number_of_outputs(
    level: str, is_per_channel: bool, outputs: int
) -> None:
    shape = (2, 6, 5, 7)
    model = conv_model(shape, outputs, is_per_channel=is_per_channel)
    assert_agrees(model, floats(shape), level=level)


@levels
@pytest.mark.parametrize("channels", [3, 64])
@pytest.mark.parametrize("is_per_channel", [False, True])
def test_pointwise_convolutions(level: str, channels: int, is_per_channel: bool) -> None:
    shape = (3, 5, 5, channels)
    model = conv_model(shape, 64, (1, 1), is_per_channel=is_per_channel)
    assert_agrees(model, floats(shape), level=level)


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_borders_hold_the_zero_point_of_their_image(
    padding: Padding, stride: int, dilation: int
) -> None:
    shape = (3, 9, 8, 4)
    model = conv_model(
        shape, 20, padding=padding, stride_h=stride, stride_w=stride,
        dilation_h_factor=dilation, dilation_w_factor=dilation,
    )  # fmt: skip
    images = floats(shape) * np.array([1, -3, 0], np.float32).reshape(3, 1, 1, 1)
    assert_agrees(model, images, threads=2)


def test_windows_as_large_as_each_image() -> None:
    shape = (5, 3, 3, 6)
    assert_agrees(conv_model(shape, 21, padding=VALID), floats(shape))


@levels
@pytest.mark.parametrize("rows", [1, 2, 4, 6, 9, 13, 17, 31])
@pytest.mark.parametrize("outputs", [3, 16, 40, 80])
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_each_row_of_a_matrix_has_a_scale(
    level: str, rows: int, outputs: int, is_asymmetric: bool
) -> None:
    shape = (rows, 37)
    model = dense_model(shape, outputs, asymmetric_quantize_inputs=is_asymmetric)
    x = floats(shape) * np.linspace(-2, 3, rows, dtype=np.float32)[:, np.newaxis]
    assert_agrees(model, x, level=level)


@levels
@pytest.mark.parametrize("channels", [1, 15, 16, 40])
@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_convolutions(level: str, channels: int, multiplier: int) -> None:
    shape = (3, 7, 6, channels)
    images = floats(shape) * np.array([1, -3, 0], np.float32).reshape(3, 1, 1, 1)
    assert_agrees(depthwise_model(shape, multiplier), images, level=level)


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("threads", [1, 2])
def test_depthwise_convolutions_of_large_images(padding: Padding, threads: int) -> None:
    shape = (2, 60, 60, 24)
    model = depthwise_model(
        shape, kernel=(5, 3), padding=padding, stride_h=2, fused_activation_function=Act.RELU6
    )
    assert_agrees(model, floats(shape), threads=threads)


@pytest.mark.parametrize("act", [Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
def test_results_are_clamped(act: Act) -> None:
    assert_agrees(conv_model((1, 4, 4, 8), 8, fused_activation_function=act), floats((1, 4, 4, 8)))
    assert_agrees(dense_model((4, 8), 8, fused_activation_function=act), floats((4, 8)))


def test_four_bit_weights() -> None:
    assert_agrees(conv_model((1, 5, 5, 8), 20, kind="INT4"), floats((1, 5, 5, 8)))
    assert_agrees(dense_model((3, 16), 20, kind="INT4"), floats((3, 16)))


@levels
@pytest.mark.parametrize("rows", [1, 2, 13])
@pytest.mark.parametrize("outputs", [3, 16, 40, 150])
@pytest.mark.parametrize("depth", [5, 37, 64])
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_two_weights_of_a_matrix_share_a_byte(
    level: str, rows: int, outputs: int, depth: int, is_asymmetric: bool
) -> None:
    model = dense_model(
        (rows, depth), outputs, is_per_channel=True, kind="INT4",
        asymmetric_quantize_inputs=is_asymmetric, fused_activation_function=Act.RELU,
    )  # fmt: skip
    x = floats((rows, depth)) * np.linspace(-2, 3, rows, dtype=np.float32)[:, np.newaxis]
    assert_agrees(model, x, level=level)


def blocks_model(rows: int, depth: int, outputs: int, size: int, kind: str = "INT4") -> bytes:
    """Return a matrix product whose weights have a scale for each block of *size* inputs."""
    scales = np.random.default_rng(2).uniform(0.01, 0.2, (outputs, depth // size))
    model = dense_model(
        (rows, depth), outputs, kind=kind, fused_activation_function=Act.RELU,
        asymmetric_quantize_inputs=True,
    )  # fmt: skip
    records = read_model(np.frombuffer(model, np.uint8))
    return write_model(with_blocks(records, 1, scales.astype(np.float16), size))


@levels
@pytest.mark.parametrize("rows", [1, 2, 13])
@pytest.mark.parametrize(("outputs", "depth", "size"), [(3, 8, 8), (40, 96, 32), (150, 192, 64)])
def test_blocks_of_weights_have_scales(
    level: str, rows: int, outputs: int, depth: int, size: int
) -> None:
    x = floats((rows, depth)) * np.linspace(-2, 3, rows, dtype=np.float32)[:, np.newaxis]
    assert_agrees(blocks_model(rows, depth, outputs, size), x, level=level)


@pytest.mark.parametrize("threads", [1, 2])
def test_products_with_blocks_are_those_of_the_official_kernel(threads: int) -> None:
    model, x = blocks_model(2, 256, 520, 32), floats((2, 256))
    (expected,) = official_outputs(model, [x])
    assert_near(run(delegated(model, num_threads=threads), x), expected)


def test_scales_of_blocks_that_are_no_float16_are_left_to_the_host() -> None:
    model = dense_model((2, 64), 8, kind="INT4", asymmetric_quantize_inputs=True)
    records = read_model(np.frombuffer(model, np.uint8))
    content = write_model(with_blocks(records, 1, np.ones((8, 2), np.float32), 32))
    assert not is_taken(delegated(content))


@pytest.mark.parametrize("size", [0, 32])
def test_a_part_of_the_weights_is_unpacked_at_a_time(size: int) -> None:
    outputs, depth = 4096, 1024
    model = (
        blocks_model(1, depth, outputs, size)
        if size
        else dense_model((1, depth), outputs, kind="INT4", is_per_channel=True)
    )
    with delegated(model, kept_programs=False) as interpreter:
        tracemalloc.start()
        try:
            interpreter.allocate_tensors()
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert most < 2 * outputs * depth  # bytes, of which half are the packed weights


def test_a_bias_is_not_needed_and_scales_may_differ() -> None:
    model = dense_model((5, 24), 30, is_per_channel=True, has_bias=False)
    assert_agrees(model, floats((5, 24)))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_images_are_quantised_in_pieces(threads: int) -> None:
    shape = (2, 60, 60, 8)
    assert_agrees(conv_model(shape, 72), floats(shape), threads=threads)
    assert_agrees(dense_model((1, 50_003), 70), floats((1, 50_003)), threads=threads)


@levels
@pytest.mark.parametrize("sign", [1, -1])
def test_halves_round_away_from_zero(level: str, sign: int) -> None:
    row = sign * (np.arange(-126, 128, dtype=np.float32) / 2)
    row[-1] = 127  # a scale of 1
    eye = constant(np.eye(len(row), dtype=np.int8), scale=[1.0], axis=0)
    model = one_op_model(
        "FULLY_CONNECTED", [tensor((1, len(row))), eye], [tensor((1, len(row)))],
        o.FullyConnectedOptions(),
    )  # fmt: skip
    halves = np.trunc(row + np.copysign(np.float32(0.5), row))
    np.testing.assert_array_equal(run(delegated(model, level), row[np.newaxis])[0], halves)


@pytest.mark.parametrize(
    ("model", "constraint"),
    [
        (dense_model((2, 8), 4, fused_activation_function=Act.TANH), "activation"),
        (dense_model((1, 150_000), 2), "depth"),
        (conv_model((1, 4, 4, 8), 4, groups=2), "groups"),
        (conv_model((1, 4, 4, 8), 4), None),
    ],
)
def test_what_is_not_covered_has_a_reason(model: bytes, constraint: str | None) -> None:
    (node,) = delegated(model).placement.nodes
    assert [r.constraint for r in node.rejections.values()] == ([constraint] if constraint else [])


def test_neighbours_are_not_fused_as_those_of_float_weights_are() -> None:
    shape = (1, 6, 6, 16)
    valid = o.Conv2DOptions(padding=VALID, stride_h=1, stride_w=1)
    depthwise = o.DepthwiseConv2DOptions(padding=SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    model = graph_model(
        [
            ("PAD", "x pads", "padded"),
            ("CONV_2D", "padded weight bias", "a", valid),
            ("ADD", "a x", "sum", o.AddOptions()),
            ("CONV_2D", "sum point bias", "b", valid),
            ("DEPTHWISE_CONV_2D", "b taps bias", "c", depthwise),
            ("CONV_2D", "c point bias", "y", valid),
        ],
        inputs="x",
        outputs="y",
        tensors={
            **{name: tensor(shape) for name in ("x", "a", "sum", "b", "c", "y")},
            "padded": tensor((1, 8, 8, 16)),
            "pads": constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)),
            "weight": weights((16, 3, 3, 16), is_per_channel=True),
            "point": weights((16, 1, 1, 16), is_per_channel=False),
            "bias": constant(floats((16,))),
            "taps": constant(floats((1, 3, 3, 16))),
        },
    )
    assert_agrees(model, floats(shape))


RESIZES = ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")


def resized_conv_model(resize: str, is_per_channel: bool) -> bytes:
    """Return a convolution of what is resized to twice the input's size, worked out as it runs."""
    numbers = {
        name: constant(np.array(values, np.int32))
        for name, values in (("first", [1]), ("end", [3]), ("step", [1]), ("two", [2, 2]))
    }
    tensors = {
        "x": tensor((1, 8, 8, 4), shape_signature=(-1, -1, -1, 4)),
        "shape": tensor((4,), "INT32"),
        "sides": tensor((2,), "INT32"),
        "size": tensor((2,), "INT32"),
        "large": tensor((1, 1, 1, 4), shape_signature=(-1, -1, -1, 4)),
        "weight": weights((6, 3, 3, 4), is_per_channel),
        "bias": constant(floats((6,))),
        "y": tensor((1, 1, 1, 6), shape_signature=(-1, -1, -1, 6)),
        **numbers,
    }
    sizes = o.ResizeBilinearOptions if resize == RESIZES[1] else o.ResizeNearestNeighborOptions
    nodes = [
        ("SHAPE", "x", "shape", o.ShapeOptions(out_type=TensorType.INT32)),
        ("STRIDED_SLICE", "shape first end step", "sides", o.StridedSliceOptions()),
        ("MUL", "sides two", "size", o.MulOptions()),
        (resize, "x size", "large", sizes(half_pixel_centers=True)),
        (
            "CONV_2D",
            "large weight bias",
            "y",
            o.Conv2DOptions(padding=SAME, stride_h=1, stride_w=1),
        ),
    ]
    return graph_model(nodes, inputs="x", outputs="y", tensors=tensors)


@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize("is_per_channel", [False, True])
def test_convolutions_of_pictures_that_are_resized_again_and_again(
    resize: str, is_per_channel: bool
) -> None:
    model = resized_conv_model(resize, is_per_channel)
    ours, theirs = delegated(model), Interpreter(model_content=model)
    for height, width in ((8, 8), (2, 2), (3, 3), (5, 5), (1, 1), (7, 7), (2, 5), (8, 8)):
        x = floats((2, height, width, 4), seed=height)
        x[1] *= 1e-3  # each picture of a batch is quantised by itself
        found, expected = (run(interpreter, x) for interpreter in (ours, theirs))
        assert found.shape == (2, 2 * height, 2 * width, 6)
        for mine, official in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, official, rtol=0, atol=1e-5 * np.abs(official).max())


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
def test_a_resize_may_make_groups_of_channels(kernel: tuple[int, int]) -> None:
    model = conv_model((2, 5, 6, 4), 24, kernel)
    ours, theirs = delegated(model), Interpreter(model_content=model)
    for channels in (4, 12, 32, 4):
        x = floats((2, 5, 6, channels))
        found, expected = (run(interpreter, x) for interpreter in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
