"""A small decoder with a cache of keys and values, made by Delegraph's own writer.

It takes one token at a time and returns the logits of the next. Weights are random: what they are
does not change how long a step takes. The cache is an input and an output of each layer, as
converters of language models have it, so whoever runs the model hands it on from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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

LARGEST = {"INT8": 127, "INT4": 7}


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


@dataclass
class Graph:
    """A subgraph under construction; constants belong to the subgraph that reads them."""

    tensors: dict[str, TensorDef] = field(default_factory=dict)
    nodes: list[NodeText] = field(default_factory=list)


class LayerWriter:
    """Writes the parts that language models share into a graph; weights are random."""

    def __init__(self, weights: str) -> None:
        self.weights = weights
        self.rng = np.random.default_rng(0)
        self.graph = Graph()
        self.block_scales: dict[str, NDArray[np.float16]] = {}

    def norm(self, x: str, y: str, gain: str, shape: tuple[int, ...]) -> None:
        """Write an RMS normalization with gains."""
        one = (*shape[:-1], 1)
        self.value("last_axis", np.array([-1], np.int32))
        self.value("epsilon", np.float32(1e-6))
        self.add("MUL", f"{x} {x}", f"{y}_square", shape)
        keep = ReducerOptions(keep_dims=True)
        self.add("MEAN", f"{y}_square last_axis", f"{y}_mean", one, keep)
        self.add("ADD", f"{y}_mean epsilon", f"{y}_shifted", one)
        self.add("RSQRT", f"{y}_shifted", f"{y}_root", one)
        self.add("MUL", f"{x} {y}_root", f"{y}_unit", shape)
        self.add("MUL", f"{y}_unit {gain}", y, shape)

    def start(self) -> None:
        """Write the place of the token's row in a cache."""
        self.value("zeros", np.zeros(2, np.int32))
        self.value("zero", np.zeros(1, np.int32))
        self.graph.tensors["start"] = tensor((4,), "INT32")
        start = ("CONCATENATION", "zeros position zero", "start", ConcatenationOptions())
        self.graph.nodes.append(start)

    def mix(
        self, inputs: str, y: str, rows: tuple[int, ...], scores: tuple[int, ...], layer: str = ""
    ) -> None:
        """Write attention.

        Args:
            inputs: names of queries, keys and values.
            y: name of the result.
            rows: shape of queries and result.
            scores: shape of the scores; the mask is added to them.
            layer: end of the names of tensors between.
        """
        query, keys, values = inputs.split()
        self.value("scale", np.float32(rows[-1] ** -0.5))
        self.add("MUL", f"{query} scale", f"scaled{layer}", rows)
        transposed = BatchMatMulOptions(adj_y=True)
        self.add("BATCH_MATMUL", f"scaled{layer} {keys}", f"scores{layer}", scores, transposed)
        self.add("ADD", f"scores{layer} mask", f"masked{layer}", scores)
        softmax = SoftmaxOptions(beta=1.0)
        self.add("SOFTMAX", f"masked{layer}", f"shares{layer}", scores, softmax)
        self.add("BATCH_MATMUL", f"shares{layer} {values}", y, rows, BatchMatMulOptions())

    def product(self, x: str, y: str, outputs: int) -> None:
        """Write a product with a matrix of weights: *y* has *outputs* columns."""
        self.matrix(f"{y}_weights", outputs, self.graph.tensors[x].shape[-1])
        options = FullyConnectedOptions()
        self.add("FULLY_CONNECTED", f"{x} {y}_weights -", y, (1, outputs), options)

    def matrix(self, name: str, rows: int, depth: int) -> None:
        values = self.rng.normal(size=(rows, depth)).astype(np.float32) * depth**-0.5
        if self.weights == "float32":
            self.value(name, values)
            return
        kind, in_blocks, _ = self.weights.upper().partition(" IN BLOCKS")
        blocks = values.reshape(rows, -1, BLOCK if in_blocks else depth)
        scales = np.abs(blocks).max(axis=2, keepdims=True) / LARGEST[kind]
        integers = np.rint(blocks / scales).astype(np.int8).reshape(values.shape)
        if in_blocks:
            self.block_scales[name] = scales[..., 0].astype(np.float16)
            self.graph.tensors[name] = constant(integers, kind)
        else:
            self.graph.tensors[name] = constant(integers, kind, scale=scales[:, 0, 0].tolist())

    def value(self, name: str, value: Any) -> None:
        self.graph.tensors[name] = constant(value)

    def add(
        self,
        op: str,
        inputs: str,
        output: str,
        shape: tuple[int, ...],
        options: Table | None = None,
    ) -> None:
        self.graph.tensors[output] = tensor(shape)
        node = (op, inputs, output) if options is None else (op, inputs, output, options)
        self.graph.nodes.append(node)


class _Decoder(LayerWriter):
    def __init__(self, weights: str, sizes: Sizes) -> None:
        super().__init__(weights)
        self._sizes = sizes

    def model(self) -> bytes:
        sizes = self._sizes
        self._constants()
        caches = [f"{kind}_{i}" for i in range(sizes.layers) for kind in ("keys", "values")]
        for name in caches:
            self.graph.tensors[name] = tensor(sizes.cache_shape)
        self.add("GATHER", "table token", "x_0", (1, sizes.width), GatherOptions())
        self.start()
        for layer in range(sizes.layers):
            self._layer(layer)
        self.norm(f"x_{sizes.layers}", "last", "gain", (1, sizes.width))
        self.product("last", "logits", sizes.vocabulary)
        content = graph_model(
            self.graph.nodes,
            inputs=" ".join(["token", "position", "mask", *caches]),
            outputs=" ".join(["logits", *(f"new_{name}" for name in caches)]),
            tensors=self.graph.tensors,
        )
        return with_block_scales(content, self.block_scales) if self.block_scales else content

    def _constants(self) -> None:
        sizes = self._sizes
        table = self.rng.normal(size=(sizes.vocabulary, sizes.width)).astype(np.float32)
        self.graph.tensors |= {
            "token": tensor((1,), "INT32"),
            "position": tensor((1,), "INT32"),
            "mask": tensor((1, 1, 1, sizes.length)),
            "table": constant(table),
            "gain": constant(np.ones(sizes.width, np.float32)),
            "row": constant(np.array([1, sizes.heads, 1, sizes.cache_shape[-1]], np.int32)),
            "flat": constant(np.array([1, sizes.width], np.int32)),
        }

    def _layer(self, layer: int) -> None:
        width, hidden = self._sizes.width, self._sizes.hidden
        self.norm(f"x_{layer}", f"n_{layer}", "gain", (1, width))
        self._attention(layer, f"n_{layer}", f"a_{layer}")
        self.product(f"a_{layer}", f"o_{layer}", width)
        self.add("ADD", f"x_{layer} o_{layer}", f"m_{layer}", (1, width))
        self.norm(f"m_{layer}", f"p_{layer}", "gain", (1, width))
        for name in ("up", "gate"):
            self.product(f"p_{layer}", f"{name}_{layer}", hidden)
        self.add("LOGISTIC", f"gate_{layer}", f"s_{layer}", (1, hidden))
        self.add("MUL", f"gate_{layer} s_{layer}", f"g_{layer}", (1, hidden))
        self.add("MUL", f"g_{layer} up_{layer}", f"h_{layer}", (1, hidden))
        self.product(f"h_{layer}", f"d_{layer}", width)
        self.add("ADD", f"m_{layer} d_{layer}", f"x_{layer + 1}", (1, width))

    def _attention(self, layer: int, x: str, y: str) -> None:
        shape, width = self._sizes.cache_shape, self._sizes.width
        row, scores = (1, shape[1], 1, shape[3]), (1, shape[1], 1, shape[2])
        for name in ("query", "key", "value"):
            self.product(x, f"{name}_{layer}", width)
            self.add("RESHAPE", f"{name}_{layer} row", f"{name}_row_{layer}", row)
        for name in ("key", "value"):
            words = f"{name}s_{layer} {name}_row_{layer} start"
            self.add("DYNAMIC_UPDATE_SLICE", words, f"new_{name}s_{layer}", shape)
        words = f"query_row_{layer} new_keys_{layer} new_values_{layer}"
        self.mix(words, f"mixed_{layer}", row, scores, f"_{layer}")
        self.add("RESHAPE", f"mixed_{layer} flat", y, (1, width))


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
