"""A model whose weights are stored as float16, as the official converter writes them."""

from __future__ import annotations

import numpy as np

from delegraph.schema.options import Conv2DOptions, MulOptions
from delegraph.testing import constant, graph_model, tensor

STORED = 8  # bytes of [4] float16


def half_weights() -> bytes:
    """Return a model of f(x) = sin(x * w * v), with DEQUANTIZE nodes for w and v."""
    nodes = [
        ("DEQUANTIZE", "half", "w"),
        ("MUL", "x w", "a", MulOptions()),
        ("DEQUANTIZE", "other_half", "v"),
        ("MUL", "a v", "b", MulOptions()),
        ("SIN", "b", "y"),
    ]
    halves = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float16)
    stored = {"half": constant(halves[0]), "other_half": constant(halves[1])}
    return graph_model(nodes, inputs="x", outputs="y", tensors=stored)


def half_convolution() -> bytes:
    """Return a model of a convolution y of x, ``[1, 2, 2, 3]``, with a DEQUANTIZE node for w."""
    nodes = [
        ("DEQUANTIZE", "half", "w"),
        ("CONV_2D", "x w bias", "y", Conv2DOptions(stride_w=1, stride_h=1)),
    ]
    tensors = {
        "x": tensor((1, 2, 2, 3)),
        "half": constant(np.ones((1, 1, 1, 3), np.float16)),
        "w": tensor((1, 1, 1, 3)),
        "bias": constant(np.ones(1, np.float32)),
        "y": tensor((1, 2, 2, 1)),
    }
    return graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
