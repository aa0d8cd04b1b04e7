"""A one-layer stand-in for Gemma 3 1B: its widths, 4-bit weights, a cache of keys and values.

The model takes one token and returns the logits of the next. Weights are random: their values do
not change how long a step takes. The vocabulary is smaller than Gemma's; the table of tokens is
also the matrix that makes logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from decoder_model import Graph, LayerWriter, with_block_scales
from flatbuffers import flexbuffers

from delegraph.schema.array_options import ConcatenationOptions, SplitOptions
from delegraph.schema.layer_options import FullyConnectedOptions, GeluOptions
from delegraph.schema.stablehlo_options import StableHLOCompositeOptions
from delegraph.testing.one_op import tensor
from delegraph.testing.several_ops import SubgraphText, subgraphs_model

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
    return _Gemma(weights, sizes or Sizes(), composites=composites).model()


class _Gemma(LayerWriter):
    def __init__(self, weights: str, sizes: Sizes, *, composites: bool) -> None:
        super().__init__(weights)
        self._sizes, self._composites = sizes, composites
        self._called: list[SubgraphText] = []

    def model(self) -> bytes:
        sizes = self._sizes
        cache = (1, 1, sizes.length, sizes.head)
        self.graph.tensors |= {
            "token": tensor((1,), "INT32"),
            "position": tensor((1,), "INT32"),
            "mask": tensor((1, 1, 1, sizes.length)),
            "keys_0": tensor(cache),
            "values_0": tensor(cache),
        }
        self.matrix("table", sizes.vocabulary, sizes.width)
        self.add("EMBEDDING_LOOKUP", "token table", "row", (1, sizes.width))
        self.value("table_scale", np.float32(sizes.width**0.5))
        self.add("MUL", "row table_scale", "x", (1, sizes.width))
        self._turns()
        self._attention()
        self._feed_forward()
        self._normed("y", "last", 1, sizes.width)
        self.add(
            "FULLY_CONNECTED", "last table -", "logits", (1, sizes.vocabulary),
            FullyConnectedOptions(),
        )  # fmt: skip
        inputs = "token position mask keys_0 values_0"
        outputs = "logits new_keys_0 new_values_0"
        main = (self.graph.nodes, inputs, outputs, self.graph.tensors)
        content = subgraphs_model([main, *self._called])
        return with_block_scales(content, self.block_scales) if self.block_scales else content

    def _turns(self) -> None:
        """Write the cosines and sines of rotary embeddings."""
        half = self._sizes.head // 2
        self.value("frequencies", (1e6 ** -(np.arange(half) / half)).astype(np.float32))
        self.add("CAST", "position", "place", (1,))
        self.add("MUL", "place frequencies", "angles", (half,))
        self.add("COS", "angles", "cosines", (half,))
        self.add("SIN", "angles", "sines", (half,))

    def _attention(self) -> None:
        sizes = self._sizes
        width, head, heads, length = sizes.width, sizes.head, sizes.heads, sizes.length
        self._normed("x", "normed", 1, width)
        for name, rows in (("query", heads), ("key", 1), ("value", 1)):
            self.product("normed", name, rows * head)
            self.value(f"{name}_shape", np.array([1, 1, rows, head], np.int32))
            self.add("RESHAPE", f"{name} {name}_shape", f"{name}_rows", (1, 1, rows, head))
        for name, rows in (("query", heads), ("key", 1)):
            self._normed(f"{name}_rows", f"{name}_normed", 1, 1, rows, head)
            self._turned(f"{name}_normed", f"{name}_turned", rows)
        self._composite(
            "odml.update_kv_cache", "keys_0 values_0 position key_turned value_rows",
            "new_keys_0 new_values_0", self._update,
        )  # fmt: skip
        self._composite(
            "odml.scaled_dot_product_attention",
            "query_turned new_keys_0 new_values_0 mask", "mixed", self._attended,
        )  # fmt: skip
        self.value("flat", np.array([1, heads * head], np.int32))
        self.add("RESHAPE", "mixed flat", "mixed_row", (1, heads * head))
        self.product("mixed_row", "attended", width)
        self._normed("attended", "attended_normed", 1, width)
        self.add("ADD", "x attended_normed", "middle", (1, width))
        assert length == self.graph.tensors["mask"].shape[-1]

    def _turned(self, x: str, y: str, rows: int) -> None:
        half = self._sizes.head // 2
        part = (1, 1, rows, half)
        self.value("last_axis_number", np.int32(3))
        for name in ("left", "right"):
            self.graph.tensors[f"{y}_{name}"] = tensor(part)
        split = (
            "SPLIT",
            f"last_axis_number {x}",
            f"{y}_left {y}_right",
            SplitOptions(num_splits=2),
        )
        self.graph.nodes.append(split)
        for name, by in (("left", "cosines"), ("right", "sines")):
            self.add("MUL", f"{y}_{name} {by}", f"{y}_{name}_kept", part)
        for name, by in (("left", "sines"), ("right", "cosines")):
            self.add("MUL", f"{y}_{name} {by}", f"{y}_{name}_moved", part)
        self.add("SUB", f"{y}_left_kept {y}_right_kept", f"{y}_first", part)
        self.add("ADD", f"{y}_right_moved {y}_left_moved", f"{y}_second", part)
        whole = (1, 1, rows, 2 * half)
        self.add("CONCATENATION", f"{y}_first {y}_second", y, whole, ConcatenationOptions(axis=3))

    def _update(self) -> None:
        """Write the token's row into both caches."""
        cache = (1, 1, self._sizes.length, self._sizes.head)
        self.start()
        for kind, row in (("keys", "key_turned"), ("values", "value_rows")):
            self.add("DYNAMIC_UPDATE_SLICE", f"{kind}_0 {row} start", f"new_{kind}_0", cache)

    def _attended(self) -> None:
        sizes = self._sizes
        rows, scores = (1, 1, sizes.heads, sizes.head), (1, 1, sizes.heads, sizes.length)
        self.mix("query_turned new_keys_0 new_values_0", "mixed", rows, scores)

    def _feed_forward(self) -> None:
        width, hidden = self._sizes.width, self._sizes.hidden
        self._normed("middle", "middle_normed", 1, width)
        for name in ("gate", "up"):
            self.product("middle_normed", name, hidden)
        self.add("GELU", "gate", "gate_open", (1, hidden), GeluOptions(approximate=True))
        self.add("MUL", "gate_open up", "inner", (1, hidden))
        self.product("inner", "down", width)
        self._normed("down", "down_normed", 1, width)
        self.add("ADD", "middle down_normed", "y", (1, width))

    def _normed(self, x: str, y: str, *shape: int) -> None:
        """Write a normalization with gains of its own."""
        gains = self.rng.uniform(0.5, 1.5, shape[-1]).astype(np.float32)
        self.value(f"{y}_gain", gains)
        self.graph.tensors[y] = tensor(shape)
        write = partial(self.norm, x, y, f"{y}_gain", shape)
        self._composite("odml.rms_norm", f"{x} {y}_gain", y, write)

    def _composite(self, name: str, inputs: str, outputs: str, write: Callable[[], None]) -> None:
        """Write nodes directly, or into a subgraph that a STABLEHLO_COMPOSITE node calls."""
        if not self._composites:
            write()
            return
        outer = self.graph
        given = {each: outer.tensors[each] for each in inputs.split()}
        self.graph = Graph({n: tensor(d.shape, d.type.name) for n, d in given.items()})
        write()
        inner, self.graph = self.graph, outer
        for each in outputs.split():
            outer.tensors[each] = inner.tensors[each]
        self._called.append((inner.nodes, inputs, outputs, inner.tensors))
        options = StableHLOCompositeOptions(
            name=name,
            decomposition_subgraph_index=len(self._called),
            composite_attributes=np.frombuffer(flexbuffers.Dumps({}), np.uint8),
        )
        outer.nodes.append(("STABLEHLO_COMPOSITE", inputs, outputs, options))
