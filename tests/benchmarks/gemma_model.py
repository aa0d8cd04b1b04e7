"""A one-layer stand-in for Gemma 3 1B: its widths, 4-bit weights, a cache of keys and values.

The model takes one token and returns the logits of the next. Weights are random: their values do
not change how long a step takes. The vocabulary is smaller than Gemma's; the table of tokens is
also the matrix that makes logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from decoder_model import BLOCK, with_block_scales
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from delegraph.schema.array_options import ConcatenationOptions, ReducerOptions, SplitOptions
from delegraph.schema.layer_options import (
    BatchMatMulOptions,
    FullyConnectedOptions,
    GeluOptions,
    SoftmaxOptions,
)
from delegraph.schema.stablehlo_options import StableHLOCompositeOptions
from delegraph.schema.table import Table
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.several_ops import NodeText, SubgraphText, subgraphs_model

WEIGHTS = ("int4", "int4 in blocks")
"""How matrices may be stored: a scale for each output, or for each 32 weights of one."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the layer.

    Attributes:
        width: number of values of a token.
        heads: number of query heads; there is one head of keys and values.
        head: number of values of a head; even.
        hidden: number of values inside the feed-forward part.
        length: number of tokens in the cache.
        vocabulary: number of different tokens.
    """

    width: int = 1152
    heads: int = 4
    head: int = 256
    hidden: int = 6912
    length: int = 1024
    vocabulary: int = 8192


@dataclass
class _Graph:
    """A subgraph under construction; constants belong to the subgraph that reads them."""

    tensors: dict[str, TensorDef] = field(default_factory=dict)
    nodes: list[NodeText] = field(default_factory=list)


def gemma_model(weights: str, sizes: Sizes | None = None, *, composites: bool = False) -> bytes:
    """Return the layer as a ``.tflite``.

    Inputs are ``token`` and ``position``, ``[1], int32``; ``mask``, ``[1, 1, 1, length]``, which is
    added to the scores; ``keys_0`` and ``values_0``, ``[1, 1, length, head]``. Outputs are
    ``logits``, ``[1, vocabulary]``, and the caches with the token's row: ``new_keys_0``, ...

    Args:
        weights: one of :data:`WEIGHTS`.
        sizes: those of the layer; the default is Gemma 3 1B with 8192 tokens.
        composites: whether norms, the cache's update and attention are STABLEHLO_COMPOSITE nodes.
    """
    return _Writer(weights, sizes or Sizes(), composites=composites).model()


class _Writer:
    def __init__(self, weights: str, sizes: Sizes, *, composites: bool) -> None:
        self._weights, self._sizes, self._composites = weights, sizes, composites
        self._rng = np.random.default_rng(0)
        self._main = self._graph = _Graph()
        self._called: list[SubgraphText] = []
        self._block_scales: dict[str, NDArray[np.float16]] = {}

    def model(self) -> bytes:
        sizes = self._sizes
        cache = (1, 1, sizes.length, sizes.head)
        self._graph.tensors |= {
            "token": tensor((1,), "INT32"),
            "position": tensor((1,), "INT32"),
            "mask": tensor((1, 1, 1, sizes.length)),
            "keys_0": tensor(cache),
            "values_0": tensor(cache),
        }
        self._matrix("table", sizes.vocabulary, sizes.width)
        self._add("EMBEDDING_LOOKUP", "token table", "row", (1, sizes.width))
        self._value("table_scale", np.float32(sizes.width**0.5))
        self._add("MUL", "row table_scale", "x", (1, sizes.width))
        self._turns()
        self._attention()
        self._feed_forward()
        self._norm("y", "last", sizes.width)
        self._add(
            "FULLY_CONNECTED", "last table -", "logits", (1, sizes.vocabulary),
            FullyConnectedOptions(),
        )  # fmt: skip
        inputs = "token position mask keys_0 values_0"
        outputs = "logits new_keys_0 new_values_0"
        main = (self._main.nodes, inputs, outputs, self._main.tensors)
        content = subgraphs_model([main, *self._called])
        return with_block_scales(content, self._block_scales) if self._block_scales else content

    def _turns(self) -> None:
        """Write the cosines and sines of rotary embeddings."""
        half = self._sizes.head // 2
        self._value("frequencies", (1e6 ** -(np.arange(half) / half)).astype(np.float32))
        self._add("CAST", "position", "place", (1,))
        self._add("MUL", "place frequencies", "angles", (half,))
        self._add("COS", "angles", "cosines", (half,))
        self._add("SIN", "angles", "sines", (half,))

    def _attention(self) -> None:
        sizes = self._sizes
        width, head, heads, length = sizes.width, sizes.head, sizes.heads, sizes.length
        self._norm("x", "normed", width)
        for name, rows in (("query", heads), ("key", 1), ("value", 1)):
            self._product("normed", name, rows * head)
            self._value(f"{name}_shape", np.array([1, 1, rows, head], np.int32))
            self._add("RESHAPE", f"{name} {name}_shape", f"{name}_rows", (1, 1, rows, head))
        for name, rows in (("query", heads), ("key", 1)):
            self._norm(f"{name}_rows", f"{name}_normed", (1, 1, rows, head))
            self._turned(f"{name}_normed", f"{name}_turned", rows)
        self._composite(
            "odml.update_kv_cache", "keys_0 values_0 position key_turned value_rows",
            "new_keys_0 new_values_0", self._update,
        )  # fmt: skip
        self._composite(
            "odml.scaled_dot_product_attention",
            "query_turned new_keys_0 new_values_0 mask", "mixed", self._mix,
        )  # fmt: skip
        self._value("flat", np.array([1, heads * head], np.int32))
        self._add("RESHAPE", "mixed flat", "mixed_row", (1, heads * head))
        self._product("mixed_row", "attended", width)
        self._norm("attended", "attended_normed", width)
        self._add("ADD", "x attended_normed", "middle", (1, width))
        assert length == self._graph.tensors["mask"].shape[-1]

    def _turned(self, x: str, y: str, rows: int) -> None:
        half = self._sizes.head // 2
        part = (1, 1, rows, half)
        self._value("last_axis_number", np.int32(3))
        for name in ("left", "right"):
            self._graph.tensors[f"{y}_{name}"] = tensor(part)
        split = (
            "SPLIT",
            f"last_axis_number {x}",
            f"{y}_left {y}_right",
            SplitOptions(num_splits=2),
        )
        self._graph.nodes.append(split)
        for name, by in (("left", "cosines"), ("right", "sines")):
            self._add("MUL", f"{y}_{name} {by}", f"{y}_{name}_kept", part)
        for name, by in (("left", "sines"), ("right", "cosines")):
            self._add("MUL", f"{y}_{name} {by}", f"{y}_{name}_moved", part)
        self._add("SUB", f"{y}_left_kept {y}_right_kept", f"{y}_first", part)
        self._add("ADD", f"{y}_right_moved {y}_left_moved", f"{y}_second", part)
        whole = (1, 1, rows, 2 * half)
        self._add("CONCATENATION", f"{y}_first {y}_second", y, whole, ConcatenationOptions(axis=3))

    def _update(self) -> None:
        """Write the token's row into both caches."""
        cache = (1, 1, self._sizes.length, self._sizes.head)
        self._value("zeros", np.zeros(2, np.int32))
        self._value("zero", np.zeros(1, np.int32))
        self._graph.tensors["start"] = tensor((4,), "INT32")
        start = ("CONCATENATION", "zeros position zero", "start", ConcatenationOptions())
        self._graph.nodes.append(start)
        for kind, row in (("keys", "key_turned"), ("values", "value_rows")):
            self._add("DYNAMIC_UPDATE_SLICE", f"{kind}_0 {row} start", f"new_{kind}_0", cache)

    def _mix(self) -> None:
        sizes = self._sizes
        rows, scores = (1, 1, sizes.heads, sizes.head), (1, 1, sizes.heads, sizes.length)
        self._value("scale", np.float32(sizes.head**-0.5))
        self._add("MUL", "query_turned scale", "scaled", rows)
        transposed = BatchMatMulOptions(adj_y=True)
        self._add("BATCH_MATMUL", "scaled new_keys_0", "scores", scores, transposed)
        self._add("ADD", "scores mask", "masked", scores)
        self._add("SOFTMAX", "masked", "shares", scores, SoftmaxOptions(beta=1.0))
        self._add("BATCH_MATMUL", "shares new_values_0", "mixed", rows, BatchMatMulOptions())

    def _feed_forward(self) -> None:
        width, hidden = self._sizes.width, self._sizes.hidden
        self._norm("middle", "middle_normed", width)
        for name in ("gate", "up"):
            self._product("middle_normed", name, hidden)
        self._add("GELU", "gate", "gate_open", (1, hidden), GeluOptions(approximate=True))
        self._add("MUL", "gate_open up", "inner", (1, hidden))
        self._product("inner", "down", width)
        self._norm("down", "down_normed", width)
        self._add("ADD", "middle down_normed", "y", (1, width))

    def _norm(self, x: str, y: str, shape: int | tuple[int, ...]) -> None:
        """Write an RMS normalization with gains."""
        whole = (1, shape) if isinstance(shape, int) else shape
        gains = self._rng.uniform(0.5, 1.5, whole[-1]).astype(np.float32)
        self._value(f"{y}_gain", gains)

        def write() -> None:
            self._value("last_axis", np.array([-1], np.int32))
            self._value("epsilon", np.float32(1e-6))
            one = (*whole[:-1], 1)
            keep = ReducerOptions(keep_dims=True)
            self._add("MUL", f"{x} {x}", f"{y}_square", whole)
            self._add("MEAN", f"{y}_square last_axis", f"{y}_mean", one, keep)
            self._add("ADD", f"{y}_mean epsilon", f"{y}_shifted", one)
            self._add("RSQRT", f"{y}_shifted", f"{y}_root", one)
            self._add("MUL", f"{x} {y}_root", f"{y}_unit", whole)
            self._add("MUL", f"{y}_unit {y}_gain", y, whole)

        self._graph.tensors[y] = tensor(whole)
        self._composite("odml.rms_norm", f"{x} {y}_gain", y, write)

    def _composite(self, name: str, inputs: str, outputs: str, write: Callable[[], None]) -> None:
        """Write nodes directly, or into a subgraph that a STABLEHLO_COMPOSITE node calls."""
        if not self._composites:
            write()
            return
        outer = self._graph
        given = {each: outer.tensors[each] for each in inputs.split()}
        self._graph = _Graph({n: tensor(d.shape, d.type.name) for n, d in given.items()})
        write()
        inner, self._graph = self._graph, outer
        for each in outputs.split():
            outer.tensors[each] = inner.tensors[each]
        self._called.append((inner.nodes, inputs, outputs, inner.tensors))
        options = StableHLOCompositeOptions(
            name=name,
            decomposition_subgraph_index=len(self._called),
            composite_attributes=np.frombuffer(flexbuffers.Dumps({}), np.uint8),
        )
        outer.nodes.append(("STABLEHLO_COMPOSITE", inputs, outputs, options))

    def _product(self, x: str, y: str, outputs: int) -> None:
        self._matrix(f"{y}_weights", outputs, self._graph.tensors[x].shape[-1])
        options = FullyConnectedOptions()
        self._add("FULLY_CONNECTED", f"{x} {y}_weights -", y, (1, outputs), options)

    def _matrix(self, name: str, rows: int, depth: int) -> None:
        values = self._rng.normal(size=(rows, depth)).astype(np.float32) * depth**-0.5
        width = BLOCK if self._weights == "int4 in blocks" else depth
        blocks = values.reshape(rows, -1, width)
        scales = np.abs(blocks).max(axis=2, keepdims=True) / 7
        integers = np.rint(blocks / scales).astype(np.int8).reshape(values.shape)
        if width == BLOCK:
            self._block_scales[name] = scales[..., 0].astype(np.float16)
            self._graph.tensors[name] = constant(integers, "INT4")
        else:
            self._graph.tensors[name] = constant(integers, "INT4", scale=scales[:, 0, 0].tolist())

    def _value(self, name: str, value: Any) -> None:
        self._graph.tensors[name] = constant(value)

    def _add(
        self,
        op: str,
        inputs: str,
        output: str,
        shape: tuple[int, ...],
        options: Table | None = None,
    ) -> None:
        self._graph.tensors[output] = tensor(shape)
        node = (op, inputs, output) if options is None else (op, inputs, output, options)
        self._graph.nodes.append(node)
