"""Which nodes become one step: the larger fusion has the word where two want the same nodes."""

from __future__ import annotations

import numpy as np
import pytest

from attention_model import Attention
from delegated import delegated, is_taken, kernels_of
from delegraph import Interpreter
from delegraph.schema.enums import Padding
from delegraph.schema.options import AddOptions, Conv2DOptions, DepthwiseConv2DOptions, SVDFOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.lowering import schedule
from delegraph_numba_cpu.lowering.schedule import FUSERS


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def padded_inverted_residual() -> bytes:
    """Return PAD and the convolution that it is for, a depthwise one, and one of single pixels."""
    conv = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
    depthwise = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    return graph_model(
        [
            ("PAD", "x sizes", "padded"),
            ("CONV_2D", "padded expand wide", "expanded", conv),
            ("DEPTHWISE_CONV_2D", "expanded filter wide", "filtered", depthwise),
            ("CONV_2D", "filtered project narrow", "y", conv),
        ],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((1, 8, 8, 4)),
            "sizes": constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)),
            "expand": constant(zeros(16, 3, 3, 4)),
            "filter": constant(zeros(1, 3, 3, 16)),
            "project": constant(zeros(4, 1, 1, 16)),
            "wide": constant(zeros(16)),
            "narrow": constant(zeros(4)),
            "padded": tensor((1, 10, 10, 4)),
            "expanded": tensor((1, 8, 8, 16)),
            "filtered": tensor((1, 8, 8, 16)),
            "y": tensor((1, 8, 8, 4)),
        },
    )


def test_an_inverted_residual_comes_before_the_layers_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = padded_inverted_residual()
    assert kernels_of(model) == ["inverted_residual"]
    monkeypatch.setattr(schedule, "FUSERS", FUSERS[::-1])
    assert kernels_of(model) == ["conv", "inverted_residual"]


def test_an_attention_has_the_scale_and_the_mask_that_a_chain_would_take() -> None:
    model = Attention(scale="MUL", mask=(20,)).model()
    assert kernels_of(model) == ["attention", "chain"]


@pytest.mark.parametrize("outputs", ["y", "c y"])
def test_a_fused_step_runs_last_and_keeps_what_others_read(outputs: str) -> None:
    generator = np.random.default_rng(5)
    weight = generator.standard_normal((4, 1, 1, 4)).astype(np.float32)
    shape = (1, 3, 3, 4)
    model = graph_model(
        [
            ("CONV_2D", "x w b", "c", Conv2DOptions(stride_h=1, stride_w=1)),
            ("ABS", "x", "between"),
            ("ADD", "c between", "y", AddOptions()),
        ],
        inputs="x",
        outputs=outputs,
        tensors={
            **{name: tensor(shape) for name in ("x", "c", "between", "y")},
            "w": constant(weight),
            "b": constant(zeros(4)),
        },
    )
    x = generator.standard_normal(shape).astype(np.float32)
    results = outputs_of(delegated(model), [x])
    c = np.einsum("nhwi,oi->nhwo", x, weight[:, 0, 0])
    expected = {"c": c, "y": c + np.abs(x)}
    for name, found in zip(outputs.split(), results, strict=True):
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-5)


def test_variables_are_read_before_another_node_writes_them() -> None:
    """A chain runs where its last node is; SVDF writes the state before."""
    generator = np.random.default_rng(0)
    x, values, feature, time = (
        generator.standard_normal(shape).astype(np.float32)
        for shape in ((3, 8), (3, 6), (4, 6), (4, 2))
    )
    nodes = [
        ("ADD", "x state", "sum", AddOptions()),
        ("SVDF", "values feature time - state", "z", SVDFOptions(rank=1)),
        ("TANH", "sum", "y"),
    ]
    tensors = {
        "state": tensor((3, 8), is_variable=True),
        "feature": constant(feature),
        "time": constant(time),
        "values": tensor((3, 6)),
        "z": tensor((3, 4)),
        **dict.fromkeys(("x", "sum", "y"), tensor((3, 8))),
    }
    model = graph_model(nodes, inputs="x values", outputs="y z", tensors=tensors)
    with Interpreter(model_content=model, delegates=[]) as alone, delegated(model) as ours:
        assert is_taken(ours)
        for _ in range(3):
            for mine, right in zip(
                outputs_of(ours, [x, values]), outputs_of(alone, [x, values]), strict=True
            ):
                np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)


def test_a_convolution_of_single_pixels_reads_the_zeros_that_are_padded_after() -> None:
    x, weight = np.full((1, 1, 2, 1), 5, np.float32), np.full((1, 1, 1, 1), 2, np.float32)
    sizes = np.array([[0, 0], [0, 2], [0, 1], [0, 0]], np.int32)
    model = graph_model(
        [
            ("PAD", "x sizes", "padded"),
            ("CONV_2D", "padded weight bias", "y", Conv2DOptions(stride_h=1, stride_w=1)),
        ],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor(x.shape),
            "sizes": constant(sizes),
            "weight": constant(weight),
            "bias": constant(np.ones(1, np.float32)),
            **dict.fromkeys(("padded", "y"), tensor((1, 3, 3, 1))),
        },
    )
    (y,) = outputs_of(delegated(model), [x])
    np.testing.assert_array_equal(y[0, :, :, 0], [[11, 11, 1], [1, 1, 1], [1, 1, 1]])
