"""Float32 convolutions and matrix products, against Delegraph's own kernels and LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import assert_agrees, assert_near, delegated, is_taken, kernels_of, levels, run
from delegraph import Interpreter
from delegraph.arithmetic import Window
from delegraph.errors import DelegateError
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.testing import TensorDef, constant, graph_model, one_op_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.lowering.convolution import conv_fusion
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import Windows, split
from delegraph_numba_cpu.program.builder import ProgramBuilder
from support.convolutions import window

SAME, VALID = Padding.SAME, Padding.VALID


def values(shape: Sequence[int], seed: int = 0) -> NDArray[np.float32]:
    generator = np.random.default_rng([seed, *shape])
    return generator.standard_normal(shape).astype(np.float32)


def conv_model(
    shape: tuple[int, ...],
    outputs: int,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    groups: int = 1,
    **given: Any,
) -> bytes:
    options = o.Conv2DOptions(**window(stride, **given))
    weight = constant(values((outputs, *kernel, shape[3] // groups)))
    inputs = [tensor(shape), weight, constant(values((outputs,)))]
    return one_op_model("CONV_2D", inputs, [tensor((1, 1, 1, outputs))], options)


def depthwise_model(
    shape: tuple[int, ...], multiplier: int = 1, kernel: tuple[int, int] = (3, 3), **given: Any
) -> bytes:
    outputs = shape[3] * multiplier
    options = o.DepthwiseConv2DOptions(depth_multiplier=multiplier, **window(**given))
    weight = constant(values((1, *kernel, outputs)))
    inputs = [tensor(shape), weight, constant(values((outputs,)))]
    return one_op_model("DEPTHWISE_CONV_2D", inputs, [tensor((1, 1, 1, outputs))], options)


def dense_model(shape: tuple[int, ...], outputs: int, has_bias: bool = True, **options) -> bytes:  # type: ignore[no-untyped-def]  # fields of the options
    weight = constant(values((outputs, shape[-1])))
    bias = constant(values((outputs,))) if has_bias else None
    return one_op_model(
        "FULLY_CONNECTED",
        [tensor(shape), weight, bias],
        [tensor((1, outputs))],
        o.FullyConnectedOptions(**options),
    )


CHANNELS = [(1, 1), (3, 5), (5, 17), (17, 33), (33, 3), (8, 24), (16, 40), (4, 64)]


@levels
@pytest.mark.parametrize(("inputs", "outputs"), CHANNELS)
def test_channels_need_not_fill_registers(inputs: int, outputs: int, level: str) -> None:
    shape = (1, 5, 6, inputs)
    assert_agrees(conv_model(shape, outputs), values(shape), level=level)
    assert_agrees(conv_model(shape, outputs, (1, 1)), values(shape), level=level)
    assert_agrees(depthwise_model(shape), values(shape), level=level)


@levels
@pytest.mark.parametrize("outputs", [6, 8, 13, 16, 48])
def test_tiles_of_pixels_in_lines(outputs: int, level: str) -> None:
    for width in (5, 6, 8, 12, 16, 21):
        shape = (2, 5, width, 7)
        assert_agrees(conv_model(shape, outputs), values(shape), level=level)
        assert_agrees(conv_model(shape, outputs, (1, 1)), values(shape), level=level)


WINDOWS = [
    ((1, 1), (1, 1), (1, 1)),
    ((1, 1), (2, 2), (1, 1)),
    ((3, 3), (2, 2), (1, 1)),
    ((3, 3), (1, 1), (2, 2)),
    ((5, 3), (2, 1), (1, 1)),
    ((2, 4), (1, 3), (1, 1)),
    ((3, 3), (1, 1), (3, 1)),
    ((7, 7), (1, 1), (1, 1)),
    ((3, 2), (4, 5), (1, 1)),
]


@levels
@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), WINDOWS)
def test_any_window(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: Padding,
    level: str,
) -> None:
    shape = (2, 9, 11, 3)
    window = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding}
    assert_agrees(conv_model(shape, 18, **window), values(shape), level=level)
    assert_agrees(depthwise_model(shape, **window), values(shape), level=level)


@levels
@pytest.mark.parametrize("outputs", [127, 128, 290])
def test_a_window_may_be_the_whole_image(outputs: int, level: str) -> None:
    for kernel in ((3, 5), (1, 1)):
        shape = (2, *kernel, 6)
        model = conv_model(shape, outputs, kernel, padding=VALID, act=Act.RELU)
        assert_agrees(model, values(shape), level=level)


@pytest.mark.parametrize("activation", [Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
def test_activations_clamp(activation: Act) -> None:
    shape = (1, 4, 4, 8)
    assert_agrees(conv_model(shape, 8, act=activation), 3 * values(shape))
    assert_agrees(depthwise_model(shape, act=activation), 3 * values(shape))
    dense = dense_model((2, 8), 8, fused_activation_function=activation)
    assert_agrees(dense, 3 * values((2, 8)))


@pytest.mark.parametrize("multiplier", [2, 3, 8])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_depth_multipliers(channels: int, multiplier: int) -> None:
    shape = (2, 6, 5, channels)
    assert_agrees(depthwise_model(shape, multiplier), values(shape))


@levels
@pytest.mark.parametrize("rows", [1, 2, 8])
@pytest.mark.parametrize(("depth", "outputs"), [(1, 1), (7, 5), (64, 33), (130, 200)])
def test_fully_connected(rows: int, depth: int, outputs: int, level: str) -> None:
    shape = (rows, depth)
    assert_agrees(dense_model(shape, outputs), values(shape), level=level)


@levels
@pytest.mark.parametrize(("depth", "outputs"), [(1, 1), (10, 24), (9, 47), (33, 97), (70, 130)])
def test_a_row_is_the_same_among_any_number_of_rows(depth: int, outputs: int, level: str) -> None:
    from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter

    x, model = values((33, depth)), dense_model((1, depth), outputs)
    ours = delegated(model, level)
    whole = run(ours, x)
    assert_near(whole, outputs_of(OfficialInterpreter(model_content=model), [x])[0], 1e-3)
    for rows in range(1, len(x)):
        np.testing.assert_array_equal(run(ours, x[:rows]), whole[:rows])


@levels
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2)])
def test_a_pixel_is_the_same_in_rows_of_any_length(kernel: int, stride: int, level: str) -> None:
    x = values((1, 7, 69, 20))
    model = depthwise_model(
        (1, 7, 1, 20), kernel=(kernel, kernel), stride=(stride, stride), padding=VALID
    )
    ours = delegated(model, level)
    whole = run(ours, x)
    for width in (*range(kernel, 40), 66, 67, 68):
        part = run(ours, x[:, :, :width])
        np.testing.assert_array_equal(part, whole[:, :, : part.shape[2]])


CHUNKS = [(1, 4096, 1), (16, 4096, 16), (24, 4096, 24), (33, 4096, 17), (400, 64, 200)]


@levels
@pytest.mark.parametrize(("rows", "depth", "chunk"), CHUNKS)
def test_chunks_of_rows_are_few_and_even(rows: int, depth: int, chunk: int, level: str) -> None:
    one, down = Window(1, 1, 1, 1, 1, 0), Window(rows, 1, 1, 1, rows, 0)
    context: Any = SimpleNamespace(tensors=())
    builder = ProgramBuilder(context, library(LEVELS[level]), 1, True, {})
    assert split(Windows(down, one, 1, 4 * depth, 64), builder, work=1, blocks=1).chunk == chunk


def test_fully_connected_may_keep_dimensions_and_lack_a_bias() -> None:
    shape = (2, 3, 4, 10)
    assert_agrees(dense_model(shape, 6, has_bias=False, keep_num_dims=True), values(shape))
    assert_agrees(dense_model(shape, 6, has_bias=False), values(shape))


def transposed_model(
    shape: tuple[int, ...],
    output: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: Padding,
    has_bias: bool = True,
) -> bytes:
    act = Act.RELU if has_bias else Act.NONE
    options = o.TransposeConvOptions(**window(stride, None, padding, act))
    weight = constant(values((output[3], *kernel, shape[3])))
    inputs = [constant(np.array(output, np.int32)), weight, tensor(shape)]
    if has_bias:
        inputs.append(constant(values((output[3],))))
    return one_op_model("TRANSPOSE_CONV", inputs, [tensor(output)], options, version=3)


TRANSPOSED = [
    ((2, 5, 6, 3), (2, 10, 12, 5), (3, 3), (2, 2), SAME),
    ((2, 5, 6, 3), (2, 9, 11, 5), (3, 3), (2, 2), SAME),
    ((1, 5, 6, 3), (1, 11, 13, 18), (3, 3), (2, 2), VALID),
    ((1, 4, 4, 8), (1, 8, 8, 8), (2, 2), (2, 2), SAME),
    ((1, 4, 4, 8), (1, 4, 4, 8), (3, 5), (1, 1), SAME),
    ((1, 4, 5, 8), (1, 6, 9, 4), (3, 5), (1, 1), VALID),
    ((1, 4, 5, 8), (1, 12, 5, 4), (4, 3), (3, 1), SAME),
    ((1, 3, 3, 40), (1, 12, 12, 33), (9, 7), (4, 4), SAME),
]


@levels
@pytest.mark.parametrize(("shape", "output", "kernel", "stride", "padding"), TRANSPOSED)
def test_transposed_convolutions(  # type: ignore[no-untyped-def]  # as transposed_model
    shape, output, kernel, stride, padding, level: str
) -> None:
    for has_bias in (True, False):
        model = transposed_model(shape, output, kernel, stride, padding, has_bias)
        assert_agrees(model, values(shape), level=level, threads=1 + has_bias)


STACKS = [
    ((5, 7), (7, 9)),
    ((1, 33), (33, 40)),
    ((3, 5, 7), (3, 7, 24)),
    ((2, 3, 5, 7), (2, 3, 7, 33)),
    ((1, 5, 7), (4, 7, 3)),
    ((4, 5, 7), (1, 7, 65)),
    ((4, 5, 7), (7, 3)),
    ((40, 64), (64, 200)),
    ((3, 1, 7), (3, 7, 24)),
    ((1, 1, 33), (4, 33, 40)),
    ((3, 1, 70), (3, 70, 200)),
    ((2, 1, 5, 7), (1, 3, 7, 33)),
    ((2, 3, 1, 7), (3, 7, 24)),
]


@levels
@pytest.mark.parametrize(("left", "right"), STACKS)
def test_batches_of_matrices(left: tuple[int, ...], right: tuple[int, ...], level: str) -> None:
    for adj_x, adj_y in [(False, False), (True, False), (False, True), (True, True)]:
        x, w = values(left), values(right, 1)
        x = np.ascontiguousarray(x.swapaxes(-1, -2)) if adj_x else x
        w = np.ascontiguousarray(w.swapaxes(-1, -2)) if adj_y else w
        options = o.BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y)
        rank = max(len(left), len(right))
        y = tensor((1,) * rank)
        computed = one_op_model("BATCH_MATMUL", [tensor(x.shape), tensor(w.shape)], [y], options)
        assert_agrees(computed, x, w, level=level, threads=1 + adj_x)
        fixed = one_op_model("BATCH_MATMUL", [tensor(x.shape), constant(w)], [y], options)
        assert_agrees(fixed, x, level=level)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_images_are_split_into_tiles(threads: int) -> None:
    shape = (1, 61, 67, 16)
    wide = (1, 5, 5, 64)
    for model, size in [
        (conv_model(shape, 40), shape),
        (conv_model(shape, 40, (1, 1)), shape),
        (depthwise_model(shape, stride=(2, 2)), shape),
        (conv_model(wide, 700, (1, 1)), wide),
        (conv_model(wide, 700), wide),
    ]:
        assert_agrees(model, values(size), threads=threads)


def test_not_a_number_stays() -> None:
    shape = (1, 3, 3, 4)
    x = values(shape)
    x[0, 1, 1, 2] = np.nan
    model = conv_model(shape, 4, (1, 1), act=Act.RELU)
    expected = run(Interpreter(model_content=model), x)
    np.testing.assert_array_equal(np.isnan(run(delegated(model), x)), np.isnan(expected))


def test_batches_can_be_resized() -> None:
    model = conv_model((1, 9, 9, 5), 7, stride=(2, 2))
    ours, core = delegated(model), Interpreter(model_content=model)
    for batch in (3, 1, 4):
        x = values((batch, 9, 9, 5))
        assert_near(run(ours, x), run(core, x), 1e-3)


def test_computed_weights_are_refused() -> None:
    inputs = [tensor((1, 4, 4, 3)), tensor((8, 1, 1, 3)), constant(values((8,)))]
    options = o.Conv2DOptions(stride_h=1, stride_w=1)
    model = one_op_model("CONV_2D", inputs, [tensor((1, 4, 4, 8))], options)
    assert not is_taken(delegated(model))


GROUPS = [(8, 8, 2), (12, 6, 3), (40, 200, 2), (15, 60, 15), (128, 128, 32)]


@levels
@pytest.mark.parametrize(("inputs", "outputs", "groups"), GROUPS)
def test_groups_of_channels(level: str, inputs: int, outputs: int, groups: int) -> None:
    for kernel, stride, batch in (((3, 3), 2, 1), ((1, 1), 1, 1), ((2, 3), 1, 3)):
        shape = (batch, 7, 9, inputs)
        model = conv_model(shape, outputs, kernel, (stride, stride), groups=groups)
        assert_agrees(model, values(shape), level=level)


def test_threads_share_the_work_of_groups() -> None:
    shape = (1, 40, 40, 64)
    model = conv_model(shape, 128, act=Act.RELU6, groups=2)
    assert_agrees(model, values(shape), threads=3)


def test_infinities_stay_in_their_group() -> None:
    x = values((1, 3, 3, 8))
    x[..., 0] = np.inf
    found = run(delegated(conv_model(x.shape, 8, groups=4)), x)
    assert np.isfinite(found[..., 2:]).all()


def layers_model(shape: tuple[int, ...], *layers: str) -> tuple[bytes, tuple[int, ...]]:
    """Return a chain: ``conv 8 3 2`` is outputs, kernel, stride; also ``depthwise 3 1``, ``pad``,
    and ``add`` of what was marked, with zeros after its channels. ``relu`` and the like are nodes.
    """
    nodes, tensors = [], {"t0": tensor(shape)}
    channels, last, marked = shape[3], "t0", "t0"
    for i, layer in enumerate(layers):
        kind, *numbers = layer.split()
        out = f"t{i + 1}"
        if kind == "mark":
            marked = last
            continue
        if kind == "pad":
            sizes = [[0, 0], [int(numbers[0]), 1], [int(numbers[0]), 1], [0, 0]]
            tensors[f"w{i}"] = constant(np.array(sizes, np.int32))
            nodes.append(("PAD", f"{last} w{i}", out))
        elif kind == "add":
            other, missing = marked, channels - (tensors[marked].shape or (0,))[-1]
            if missing:
                other, pads = f"p{i}", [[0, 0], [0, 0], [0, 0], [0, missing]]
                tensors[f"w{i}"] = constant(np.array(pads, np.int32))
                tensors[other] = tensor((1, 1, 1, channels))
                nodes.append(("PAD", f"{marked} w{i}", other))
            activation = o.AddOptions(fused_activation_function=Act(int((numbers or "1")[0])))
            nodes.append(("ADD", f"{last} {other}", out, activation))
        elif kind == "prelu":
            tensors[f"w{i}"] = constant(values((1, 1, channels), i))
            nodes.append(("PRELU", f"{last} w{i}", out))
        elif kind.startswith("relu"):
            nodes.append((kind.upper(), last, out))
        else:
            nodes.append(_layer(tensors, kind, [int(n) for n in numbers], channels, i, last, out))
            channels = int(numbers[0]) if kind != "depthwise" else channels
        last = out
        tensors[out] = tensor((1, 1, 1, channels))
    model = graph_model(nodes, inputs="t0", outputs=last, tensors=tensors)
    return model, shape


def _layer(  # type: ignore[no-untyped-def]  # a node of the graph
    tensors: dict[str, TensorDef], kind: str, n: list[int], channels: int, i: int, x: str, y: str
):
    outputs = n.pop(0) if kind != "depthwise" else channels
    kernel, stride, is_valid = (*n, *(1, 0)[len(n) - 1 :])
    lead, end = (1, outputs) if kind == "depthwise" else (outputs, channels)
    tensors[f"w{i}"] = constant(0.3 * values((lead, kernel, kernel, end), i))
    tensors[f"b{i}"] = constant(values((outputs,), i))
    options = (o.DepthwiseConv2DOptions if kind == "depthwise" else o.Conv2DOptions)(
        **window((stride, stride), (1, 1), (SAME, VALID)[is_valid], (Act.NONE, Act.RELU6)[i % 2])
    )
    op = "DEPTHWISE_CONV_2D" if kind == "depthwise" else "CONV_2D"
    return (op, f"{x} w{i} b{i}", y, options)


CHAINS = [
    ((1, 15, 13, 8), "conv 40 1", "depthwise 3 1", "conv 16 1"),
    ((1, 15, 13, 8), "mark", "conv 24 1", "depthwise 3 1", "conv 8 1", "add"),
    ((2, 14, 14, 8), "conv 33 1", "depthwise 3 2", "conv 5 1"),
    ((2, 30, 28, 3), "conv 17 3 2", "depthwise 5 1", "conv 16 1"),
    ((2, 30, 28, 3), "depthwise 3 2", "conv 16 1"),
    ((1, 9, 9, 16), "mark", "depthwise 5 1", "conv 16 1", "add"),
    ((1, 9, 8, 16), "conv 24 1", "pad 0", "depthwise 3 2 1", "conv 16 1"),
    ((2, 9, 61, 24), "mark", "depthwise 3 1", "conv 24 1", "add"),
    ((1, 9, 63, 20), "pad 1", "depthwise 5 2 1", "conv 8 1"),
    ((1, 9, 8, 3), "pad 0", "conv 16 3 2 1", "depthwise 3 1", "conv 16 1"),
    ((1, 9, 8, 3), "pad 1", "conv 16 3 1 1"),
    ((1, 9, 8, 3), "pad 2", "depthwise 3 2 1"),
    ((1, 9, 8, 12), "mark", "conv 12 3", "add"),
    ((3, 9, 8, 12), "mark", "conv 33 3", "conv 12 1", "add"),
]

ONE_STEP = [
    ((2, 9, 9, 16), "mark", "depthwise 5 1", "conv 24 1", "add 0", "relu"),
    ((2, 9, 9, 28), "mark", "depthwise 3 1", "conv 42 1", "add 0", "relu6"),
    ((1, 9, 8, 12), "mark", "conv 37 3", "add 0", "relu_n1_to_1"),
    ((1, 9, 8, 12), "mark", "conv 40 3", "add 0", "prelu"),
    ((1, 1, 1, 12), "conv 140 1", "prelu"),
    ((1, 9, 8, 12), "conv 12 3", "prelu", "depthwise 3 1", "relu", "conv 20 1", "prelu"),
]
"""Chains that one kernel call computes."""


@levels
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "-".join(chain[1:]).replace(" ", "_"))
@pytest.mark.parametrize("threads", [1, 2])
def test_fused_layers_agree(chain: tuple, threads: int, level: str) -> None:  # type: ignore[type-arg]  # mixed
    model, shape = layers_model(*chain)
    assert_agrees(model, values(shape), level=level, threads=threads)


@levels
@pytest.mark.parametrize("chain", ONE_STEP, ids=lambda chain: "-".join(chain[1:]).replace(" ", "_"))
def test_activations_and_added_channels_need_no_step(chain: tuple, level: str) -> None:  # type: ignore[type-arg]  # mixed
    model, shape = layers_model(*chain)
    assert len(kernels_of(model)) == 1
    assert_agrees(model, values(shape), level=level)


def test_a_residual_of_more_columns_than_the_result_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its tiles would read over the end of the residual."""

    def wider(*given: Any) -> dict[str, Any]:
        return output_words(*given) | {"residual_columns": 6}

    output_words = conv_fusion.output_words
    monkeypatch.setattr(conv_fusion, "output_words", wider)
    model, _ = layers_model((1, 3, 3, 5), "mark", "conv 5 1", "add")
    with pytest.raises(DelegateError, match="a residual has no more columns"):
        delegated(model).allocate_tensors()


def test_values_that_others_read_are_not_fused_away() -> None:
    model, shape = layers_model(
        (1, 8, 8, 8), "conv 8 1", "mark", "depthwise 3 1", "conv 8 1", "add"
    )
    assert_agrees(model, values(shape))
