"""A small decoder with a cache of keys and values, made by Delegraph's own writer.

It takes one token at a time and returns the logits of the next. Weights are random: what they are
does not change how long a step takes. The cache is an input and an output of each layer, as
converters of language models have it, so whoever runs the model hands it on from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.schema import tables
from delegraph.schema.array_options import ConcatenationOptions, GatherOptions, ReducerOptions
from delegraph.schema.layer_options import BatchMatMulOptions, FullyConnectedOptions, SoftmaxOptions
from delegraph.schema.reader import read_model
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.several_ops import NodeText, graph_model

WEIGHTS = ("float32", "int8", "int4", "int4 in blocks")
"""How the matrices of :func:`decoder_model` may be stored."""

BLOCK = 32
"""Weights that share a scale, where they come in blocks."""

LARGEST = {"int8": 127, "int4": 7, "int4 in blocks": 7}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a decoder.

    Attributes:
        layers: how many.
        width: values of a token.
        heads: of attention; they share *width*.
        hidden: values inside the feed-forward part.
        length: tokens that the cache holds.
        vocabulary: different tokens.
    """

    layers: int = 4
    width: int = 512
    heads: int = 8
    hidden: int = 2048
    length: int = 128
    vocabulary: int = 4096

    @property
    def cache_shape(self) -> tuple[int, int, int, int]:
        """Shape of the caches of keys and values: ``[1, heads, length, width / heads]``."""
        return 1, self.heads, self.length, self.width // self.heads


def decoder_model(weights: str, sizes: Sizes | None = None) -> bytes:
    """Return a decoder as a ``.tflite``.

    Inputs are ``token`` and ``position``, ``[1], int32``; ``mask``, ``[1, 1, 1, length]``, which is
    added to the scores; and ``keys_0``, ``values_0``, ... of :attr:`Sizes.cache_shape`. Outputs are
    ``logits``, ``[1, vocabulary]``, and the caches with the token's row, ``new_keys_0``, ...

    Args:
        weights: one of :data:`WEIGHTS`.
        sizes: how large; the default is four layers of 512.
    """
    return _Decoder(weights, sizes or Sizes()).model()


class _Decoder:
    def __init__(self, weights: str, sizes: Sizes) -> None:
        self._weights, self._sizes = weights, sizes
        self._rng = np.random.default_rng(0)
        self._nodes: list[NodeText] = []
        self._tensors: dict[str, TensorDef] = {}
        self._block_scales: dict[str, NDArray[np.float16]] = {}

    def model(self) -> bytes:
        sizes = self._sizes
        self._constants()
        caches = [f"{kind}_{i}" for i in range(sizes.layers) for kind in ("keys", "values")]
        for name in caches:
            self._tensors[name] = tensor(sizes.cache_shape)
        self._add("GATHER", "table token", "x_0", (1, sizes.width), GatherOptions())
        start = ("CONCATENATION", "zeros position zero", "start", ConcatenationOptions())
        self._nodes.append(start)
        for layer in range(sizes.layers):
            self._layer(layer)
        self._norm(f"x_{sizes.layers}", "last")
        self._product("last", "logits", sizes.vocabulary)
        content = graph_model(
            self._nodes,
            inputs=" ".join(["token", "position", "mask", *caches]),
            outputs=" ".join(["logits", *(f"new_{name}" for name in caches)]),
            tensors=self._tensors,
        )
        return with_block_scales(content, self._block_scales) if self._block_scales else content

    def _constants(self) -> None:
        sizes = self._sizes
        table = self._rng.normal(size=(sizes.vocabulary, sizes.width)).astype(np.float32)
        self._tensors |= {
            "token": tensor((1,), "INT32"),
            "position": tensor((1,), "INT32"),
            "start": tensor((4,), "INT32"),
            "mask": tensor((1, 1, 1, sizes.length)),
            "table": constant(table),
            "zeros": constant(np.zeros(2, np.int32)),
            "zero": constant(np.zeros(1, np.int32)),
            "last_axis": constant(np.array([-1], np.int32)),
            "epsilon": constant(np.float32(1e-6)),
            "gain": constant(np.ones(sizes.width, np.float32)),
            "scale": constant(np.float32(sizes.cache_shape[-1] ** -0.5)),
            "row": constant(np.array([1, sizes.heads, 1, sizes.cache_shape[-1]], np.int32)),
            "flat": constant(np.array([1, sizes.width], np.int32)),
        }

    def _layer(self, layer: int) -> None:
        width, hidden = self._sizes.width, self._sizes.hidden
        self._norm(f"x_{layer}", f"n_{layer}")
        self._attention(layer, f"n_{layer}", f"a_{layer}")
        self._product(f"a_{layer}", f"o_{layer}", width)
        self._add("ADD", f"x_{layer} o_{layer}", f"m_{layer}", (1, width))
        self._norm(f"m_{layer}", f"p_{layer}")
        for name in ("up", "gate"):
            self._product(f"p_{layer}", f"{name}_{layer}", hidden)
        self._add("LOGISTIC", f"gate_{layer}", f"s_{layer}", (1, hidden))
        self._add("MUL", f"gate_{layer} s_{layer}", f"g_{layer}", (1, hidden))
        self._add("MUL", f"g_{layer} up_{layer}", f"h_{layer}", (1, hidden))
        self._product(f"h_{layer}", f"d_{layer}", width)
        self._add("ADD", f"m_{layer} d_{layer}", f"x_{layer + 1}", (1, width))

    def _attention(self, layer: int, x: str, y: str) -> None:
        shape, width = self._sizes.cache_shape, self._sizes.width
        row, scores = (1, shape[1], 1, shape[3]), (1, shape[1], 1, shape[2])
        for name in ("query", "key", "value"):
            self._product(x, f"{name}_{layer}", width)
            self._add("RESHAPE", f"{name}_{layer} row", f"{name}_row_{layer}", row)
        for name in ("key", "value"):
            words = f"{name}s_{layer} {name}_row_{layer} start"
            self._add("DYNAMIC_UPDATE_SLICE", words, f"new_{name}s_{layer}", shape)
        self._add("MUL", f"query_row_{layer} scale", f"scaled_{layer}", row)
        transposed = BatchMatMulOptions(adj_y=True)
        words = f"scaled_{layer} new_keys_{layer}"
        self._add("BATCH_MATMUL", words, f"scores_{layer}", scores, transposed)
        self._add("ADD", f"scores_{layer} mask", f"masked_{layer}", scores)
        softmax = SoftmaxOptions(beta=1.0)
        self._add("SOFTMAX", f"masked_{layer}", f"share_{layer}", scores, softmax)
        words = f"share_{layer} new_values_{layer}"
        self._add("BATCH_MATMUL", words, f"mixed_{layer}", row, BatchMatMulOptions())
        self._add("RESHAPE", f"mixed_{layer} flat", y, (1, width))

    def _norm(self, x: str, y: str) -> None:
        """Add an RMS normalization."""
        width = self._sizes.width
        self._add("MUL", f"{x} {x}", f"{y}_square", (1, width))
        keep = ReducerOptions(keep_dims=True)
        self._add("MEAN", f"{y}_square last_axis", f"{y}_mean", (1, 1), keep)
        self._add("ADD", f"{y}_mean epsilon", f"{y}_shifted", (1, 1))
        self._add("RSQRT", f"{y}_shifted", f"{y}_root", (1, 1))
        self._add("MUL", f"{x} {y}_root", f"{y}_unit", (1, width))
        self._add("MUL", f"{y}_unit gain", y, (1, width))

    def _product(self, x: str, y: str, outputs: int) -> None:
        depth = self._tensors[x].shape[-1]
        values = self._rng.normal(size=(outputs, depth)) * depth**-0.5
        name = f"{y}_weights"
        self._tensors[name] = self._stored(name, values.astype(np.float32))
        self._add("FULLY_CONNECTED", f"{x} {name} -", y, (1, outputs), FullyConnectedOptions())

    def _stored(self, name: str, values: NDArray[np.float32]) -> TensorDef:
        if self._weights == "float32":
            return constant(values)
        width = BLOCK if self._weights == "int4 in blocks" else values.shape[1]
        blocks = values.reshape(len(values), -1, width)
        scales = np.abs(blocks).max(axis=2, keepdims=True) / LARGEST[self._weights]
        integers = np.rint(blocks / scales).astype(np.int8).reshape(values.shape)
        kind = "INT8" if self._weights == "int8" else "INT4"
        if width == BLOCK:
            self._block_scales[name] = scales[..., 0].astype(np.float16)
            return constant(integers, kind)
        return constant(integers, kind, scale=scales[:, 0, 0].tolist())

    def _add(
        self,
        op: str,
        inputs: str,
        output: str,
        shape: tuple[int, ...],
        options: Table | None = None,
    ) -> None:
        self._tensors[output] = tensor(shape)
        node = (op, inputs, output) if options is None else (op, inputs, output, options)
        self._nodes.append(node)


def with_block_scales(content: bytes, scales: dict[str, NDArray[Any]]) -> bytes:
    """Return a model whose main tensors with these names have scales, ``[rows, blocks]``."""
    records = read_model(np.frombuffer(content, np.uint8))
    (graph, *called), buffers = records.subgraphs or (), list(records.buffers or ())
    tensors = list(graph.tensors or ())
    for index, record in enumerate(tuple(tensors)):
        own = scales.get(record.name or "")
        if own is None:
            continue
        blocks = tables.BlockwiseQuantization(scales=len(tensors), zero_points=-1, block_size=BLOCK)
        quantization = tables.QuantizationParameters(details=blocks)
        tensors[index] = record.replace(quantization=quantization)
        stored = constant(own)
        place = {"buffer": len(buffers), "name": f"{record.name}_scales"}
        tensors.append(tables.Tensor(shape=stored.shape, type=stored.type, **place))
        buffers.append(tables.Buffer(data=stored.data))
    graph = graph.replace(tensors=tuple(tensors))
    return write_model(records.replace(buffers=tuple(buffers), subgraphs=(graph, *called)))
