r"""Writes a language model with a KV cache, ``models/language_model.tflite`` unless told otherwise.

    python docs/demo/make_language_model.py
    python docs/demo/make_language_model.py --hidden 1152 --inner 6912 --heads 4 --kv-heads 1 \
        --head-dim 256 --layers 2 --vocabulary 32768 --cache 1024 --prefill 8 128 \
        --weights int8 -o large.tflite

It has the signatures that exports of litert-torch have, and random weights. ``decode`` takes one
token, ``prefill_8`` eight::

    tokens          [1, N], int32                   logits (of decode)  [1, 1, vocabulary]
    input_pos       [N], int32                      kv_cache_k_0        as the input
    kv_cache_k_0    [1, kv heads, cache, head dim]  kv_cache_v_0        as the input
    kv_cache_v_0    [1, kv heads, head dim, cache]  ...
    ...

Each layer writes the keys and values of the new tokens into the caches that it was given, by
DYNAMIC_UPDATE_SLICE, and returns them. The signatures share their weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.schema import read_model, tables, write_model
from delegraph.schema.options import (
    BatchMatMulOptions,
    CastOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    GatherOptions,
    GeluOptions,
    ReducerOptions,
    SoftmaxOptions,
    SplitOptions,
)
from delegraph.testing import TensorDef, constant, subgraphs_model, tensor

MODEL = Path(__file__).parent / "models" / "language_model.tflite"

MASKED = -1e9
EPSILON = 1e-6
WAVELENGTH = 10_000.0

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a language model; the defaults make a tiny one.

    Attributes:
        hidden: values of a token.
        inner: values inside of the feed-forward part.
        layers: number of layers.
        heads: number of heads of attention, a multiple of *kv_heads*.
        kv_heads: number of heads that the caches hold.
        head_dim: values of a head, an even number.
        vocabulary: number of different tokens.
        cache: tokens that the caches hold.
        prefill: tokens of each ``prefill_N`` signature.
        weights: type of the matrices: ``"float32"``, or ``"int8"`` (dynamic range).
    """

    hidden: int = 32
    inner: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    vocabulary: int = 128
    cache: int = 32
    prefill: tuple[int, ...] = (8,)
    weights: str = "float32"

    def caches(self) -> dict[str, Shape]:
        """Return the shape of each cache by the name of its input and output."""
        keys = 1, self.kv_heads, self.cache, self.head_dim
        values = 1, self.kv_heads, self.head_dim, self.cache
        return {
            f"kv_cache_{kind}_{layer}": shape
            for layer in range(self.layers)
            for kind, shape in (("k", keys), ("v", values))
        }


def language_model(sizes: Sizes | None = None) -> bytes:
    """Return a language model as the bytes of a ``.tflite`` file; equal sizes give equal bytes."""
    sizes = Sizes() if sizes is None else sizes
    weights = _Weights(sizes)
    graphs = [_Graph(f"prefill_{count}", count, sizes, weights) for count in sizes.prefill]
    graphs.append(_Graph("decode", 1, sizes, weights))
    content = subgraphs_model(
        [(graph.nodes, graph.inputs, graph.outputs, graph.tensors) for graph in graphs],
        names=[graph.name for graph in graphs],
    )
    return _with_signatures(content)


class _Weights:
    """Weights shared by all signatures, by name; each is made at its first use."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._rng = np.random.default_rng(0)
        self._made: dict[str, TensorDef] = {}

    def matrix(self, name: str, rows: int, depth: int, scales: int) -> TensorDef:
        """Return random weights, ``[rows, depth]``, with one scale a row or *scales* = 1 for all.

        Sums of *depth* products have about the size of one factor.
        """
        if name not in self._made:
            integers = self._rng.integers(-127, 128, (rows, depth), np.int8)
            scale = np.float32(depth**-0.5 / 73)  # 73: the standard deviation of the integers
            self._made[name] = (
                constant(integers, scale=[float(scale)] * scales)
                if self._sizes.weights == "int8"
                else constant(integers * scale)
            )
        return self._made[name]

    def table(self) -> TensorDef:
        """Return the embedding of each token, ``[vocabulary, hidden]``."""
        return self.matrix("embedding", self._sizes.vocabulary, self._sizes.hidden, scales=1)


class _Graph:
    """The nodes of one signature, which takes *count* tokens."""

    def __init__(self, name: str, count: int, sizes: Sizes, weights: _Weights) -> None:
        self.name, self.count, self.sizes, self.weights = name, count, sizes, weights
        self.nodes: list[Any] = []
        self.tensors: dict[str, TensorDef] = {}
        self.is_decode = name == "decode"
        caches = sizes.caches()
        given = {"tokens": tensor((1, count), "INT32"), "input_pos": tensor((count,), "INT32")}
        given |= {cache: tensor(shape) for cache, shape in caches.items()}
        self.tensors |= {self._input(each): definition for each, definition in given.items()}
        self.inputs = " ".join(map(self._input, given))
        results = [*(["logits"] if self.is_decode else []), *caches]
        self.outputs = " ".join(map(self._output, results))
        self._model()

    def _input(self, name: str) -> str:
        return f"{self.name}_{name}:0"

    def _output(self, name: str) -> str:
        return f"{self.name}_{name}:1"

    def _add(
        self, op: str, inputs: str, output: str, shape: Shape, options: Any = None, type: str = ""
    ) -> str:
        self.tensors[output] = tensor(shape, type or "FLOAT32")
        node = (op, inputs, output)
        self.nodes.append(node if options is None else (*node, options))
        return output

    def _constant(self, name: str, values: Any, dtype: Any) -> str:
        self.tensors[name] = constant(np.array(values, dtype))
        return name

    def _ints(self, *values: int) -> str:
        return self._constant("ints_" + "_".join(map(str, values)), values, np.int32)

    def _float(self, name: str, value: float) -> str:
        return self._constant(name, value, np.float32)

    def _reshape(self, x: str, shape: Shape, y: str, type: str = "") -> str:
        return self._add("RESHAPE", f"{x} {self._ints(*shape)}", y, shape, type=type)

    # -- the model -----------------------------------------------------------------------------

    def _model(self) -> None:
        sizes, count = self.sizes, self.count
        self._positions()
        x, shape = "x_0", (1, count, sizes.hidden)
        self.tensors["embedding"] = table = self.weights.table()
        words = f"embedding {self._input('tokens')}"
        if table.quantization is None:
            self._add("GATHER", words, x, shape, GatherOptions())
        else:
            self._add("GATHER", words, "x_int8", shape, GatherOptions(), "INT8")
            self.tensors["x_int8"] = tensor(
                shape, "INT8", scale=np.asarray(table.quantization.scale).tolist()
            )
            self._add("DEQUANTIZE", "x_int8", x, shape)
        for layer in range(sizes.layers):
            is_last = layer == sizes.layers - 1
            x = self._layer(layer, x, only_caches=is_last and not self.is_decode)
        if self.is_decode:
            last = self._norm(x, "last", shape)
            self._product(last, "head", self._output("logits"), sizes.vocabulary)

    def _positions(self) -> None:
        """Add the tensors that depend on ``input_pos``: cache positions, mask and rotations."""
        sizes, count, given = self.sizes, self.count, self._input("input_pos")
        words = f"{given} {self._ints(0)} {self._ints(1)}"
        self._add("SLICE", words, "first", (1,), type="INT32")
        zero, two, three = self._ints(0), self._ints(0, 0), self._ints(0, 0, 0)
        options = ConcatenationOptions()
        self._add("CONCATENATION", f"{two} first {zero}", "k_start", (4,), options, "INT32")
        self._add("CONCATENATION", f"{three} first", "v_start", (4,), options, "INT32")

        column = self._reshape(given, (count, 1), "column", "INT32")
        places = self._constant("places", np.arange(sizes.cache)[None], np.int32)
        shape = count, sizes.cache
        self._add("GREATER", f"{places} {column}", "is_later", shape, type="BOOL")
        words = f"is_later {self._float('masked', MASKED)} {self._float('nothing', 0)}"
        self._add("SELECT_V2", words, "mask", shape)

        half = sizes.head_dim // 2
        frequencies = WAVELENGTH ** (-np.arange(half) / half)
        row = self._reshape(given, (1, count, 1, 1), "row", "INT32")
        cast = CastOptions(
            in_data_type=self.tensors[row].type, out_data_type=self.tensors["mask"].type
        )
        self._add("CAST", row, "row_float", (1, count, 1, 1), cast)
        words = f"row_float {self._constant('frequencies', frequencies, np.float32)}"
        self._add("MUL", words, "angles", (1, count, 1, half))
        self._add("COS", "angles", "cos", (1, count, 1, half))
        self._add("SIN", "angles", "sin", (1, count, 1, half))

    def _layer(self, layer: int, x: str, *, only_caches: bool) -> str:
        """Add a layer and return its result.

        With *only_caches*, update its caches and return *x*.
        """
        sizes, shape = self.sizes, (1, self.count, self.sizes.hidden)
        at = f"layer_{layer}"
        y = self._norm(x, f"{at}_attention", shape)
        keys = self._heads(y, f"{at}_key", sizes.kv_heads, is_rotated=True)
        values = self._heads(y, f"{at}_value", sizes.kv_heads, is_rotated=False)
        keys = self._cached(f"kv_cache_k_{layer}", keys, "k_start")
        values = self._cached(f"kv_cache_v_{layer}", values, "v_start")
        if only_caches:
            return x
        query = self._heads(y, f"{at}_query", sizes.heads, is_rotated=True)
        mixed = self._attention(at, query, keys, values)
        out = self._product(mixed, f"{at}_out", f"{at}_out", sizes.hidden)
        x = self._add("ADD", f"{x} {out}", f"{at}_middle", shape)

        y = self._norm(x, f"{at}_feed", shape)
        gate, up = (
            self._product(y, f"{at}_{name}", f"{at}_{name}", sizes.inner) for name in ("gate", "up")
        )
        inner = (1, self.count, sizes.inner)
        self._add("GELU", gate, f"{at}_gelu", inner, GeluOptions(approximate=True))
        self._add("MUL", f"{at}_gelu {up}", f"{at}_gated", inner)
        down = self._product(f"{at}_gated", f"{at}_down", f"{at}_down", sizes.hidden)
        return self._add("ADD", f"{x} {down}", f"x_{layer + 1}", shape)

    def _heads(self, x: str, name: str, heads: int, *, is_rotated: bool) -> str:
        """Add a projection; return it as ``[1, heads, N, D]``, values as ``[1, heads, D, N]``."""
        count, depth = self.count, self.sizes.head_dim
        y = self._product(x, name, name, heads * depth)
        y = self._reshape(y, (1, count, heads, depth), f"{name}_rows")
        if is_rotated:
            y = self._rotated(y, name, heads)
            shape, order = (1, heads, count, depth), self._ints(0, 2, 1, 3)
        else:
            shape, order = (1, heads, depth, count), self._ints(0, 2, 3, 1)
        return self._add("TRANSPOSE", f"{y} {order}", f"{name}_heads", shape)

    def _rotated(self, x: str, name: str, heads: int) -> str:
        """Add the rotation of each pair of values by the angle of the token's position."""
        whole = (1, self.count, heads, self.sizes.head_dim)
        half = (*whole[:3], whole[3] // 2)
        a, b = f"{name}_a", f"{name}_b"
        self.tensors |= {a: tensor(half), b: tensor(half)}
        axis = self._constant("last_axis", 3, np.int32)
        self.nodes.append(("SPLIT", f"{axis} {x}", f"{a} {b}", SplitOptions(num_splits=2)))
        products = {
            f"{name}_{one}_{by}": f"{name}_{one} {by}" for one in "ab" for by in ("cos", "sin")
        }
        for product, words in products.items():
            self._add("MUL", words, product, half)
        self._add("SUB", f"{a}_cos {b}_sin", f"{name}_left", half)
        self._add("ADD", f"{b}_cos {a}_sin", f"{name}_right", half)
        words, options = f"{name}_left {name}_right", ConcatenationOptions(axis=3)
        return self._add("CONCATENATION", words, f"{name}_rotated", whole, options)

    def _cached(self, cache: str, block: str, start: str) -> str:
        """Add the update of a cache with the new tokens' block."""
        words = f"{self._input(cache)} {block} {start}"
        shape = self.sizes.caches()[cache]
        return self._add("DYNAMIC_UPDATE_SLICE", words, self._output(cache), shape)

    def _attention(self, at: str, query: str, keys: str, values: str) -> str:
        sizes, count = self.sizes, self.count
        rows = sizes.heads // sizes.kv_heads * count
        grouped = (1, sizes.kv_heads, rows, sizes.head_dim)
        split = (1, sizes.heads, count, sizes.head_dim)
        scores, apart = (1, sizes.kv_heads, rows, sizes.cache), (1, sizes.heads, count, sizes.cache)
        words = f"{query} {self._float('scale', sizes.head_dim**-0.5)}"
        self._add("MUL", words, f"{at}_scaled", split)
        self._reshape(f"{at}_scaled", grouped, f"{at}_grouped")
        by_rows = BatchMatMulOptions(adj_y=True)
        self._add("BATCH_MATMUL", f"{at}_grouped {keys}", f"{at}_scores", scores, by_rows)
        self._reshape(f"{at}_scores", apart, f"{at}_apart")
        self._add("ADD", f"{at}_apart mask", f"{at}_masked", apart)
        self._add("SOFTMAX", f"{at}_masked", f"{at}_shares", apart, SoftmaxOptions(beta=1.0))
        self._reshape(f"{at}_shares", scores, f"{at}_weights")
        self._add("BATCH_MATMUL", f"{at}_weights {values}", f"{at}_mixed", grouped, by_rows)
        self._reshape(f"{at}_mixed", split, f"{at}_split")
        back = (1, count, sizes.heads, sizes.head_dim)
        words = f"{at}_split {self._ints(0, 2, 1, 3)}"
        self._add("TRANSPOSE", words, f"{at}_back", back)
        return self._reshape(f"{at}_back", (1, count, sizes.heads * sizes.head_dim), f"{at}_all")

    def _norm(self, x: str, y: str, shape: Shape) -> str:
        """Add an RMS normalization."""
        one = (*shape[:-1], 1)
        self._add("MUL", f"{x} {x}", f"{y}_square", shape)
        words, keep = f"{y}_square {self._ints(2)}", ReducerOptions(keep_dims=True)
        self._add("MEAN", words, f"{y}_mean", one, keep)
        self._add("ADD", f"{y}_mean {self._float('epsilon', EPSILON)}", f"{y}_shifted", one)
        self._add("RSQRT", f"{y}_shifted", f"{y}_root", one)
        return self._add("MUL", f"{x} {y}_root", f"{y}_norm", shape)

    def _product(self, x: str, weights: str, y: str, outputs: int) -> str:
        shape, name = self.tensors[x].shape, f"{weights}_weights"
        self.tensors[name] = self.weights.matrix(weights, outputs, shape[-1], scales=outputs)
        options = FullyConnectedOptions(keep_num_dims=True)
        return self._add("FULLY_CONNECTED", f"{x} {name} -", y, (*shape[:-1], outputs), options)


def _with_signatures(content: bytes) -> bytes:
    """Return a model whose equal constants share a buffer, with a signature for each subgraph."""
    records = read_model(np.frombuffer(content, np.uint8))
    buffers: list[tables.Buffer] = []
    numbers: dict[bytes, int] = {}
    moved = []
    for buffer in records.buffers or ():
        data = b"" if buffer.data is None else np.asarray(buffer.data).tobytes()
        if data not in numbers:
            numbers[data] = len(buffers)
            buffers.append(buffer)
        moved.append(numbers[data])
    graphs = [
        graph.replace(tensors=tuple(t.replace(buffer=moved[t.buffer]) for t in graph.tensors or ()))
        for graph in records.subgraphs or ()
    ]
    return write_model(
        records.replace(
            subgraphs=tuple(graphs),
            buffers=tuple(buffers),
            signature_defs=tuple(_signature(number, graph) for number, graph in enumerate(graphs)),
            description="a language model with random weights",
        )
    )


def _signature(number: int, graph: tables.SubGraph) -> tables.SignatureDef:
    key = str(graph.name)

    def named(indices: NDArray[np.int32] | Sequence[int]) -> tuple[tables.TensorMap, ...]:
        names = [str((graph.tensors or ())[index].name) for index in indices]
        short = (name.removeprefix(f"{key}_").split(":")[0] for name in names)
        pairs = zip(short, indices, strict=True)
        return tuple(tables.TensorMap(name=n, tensor_index=int(i)) for n, i in pairs)

    return tables.SignatureDef(
        inputs=named(graph.inputs or ()),
        outputs=named(graph.outputs or ()),
        signature_key=key,
        subgraph_index=number,
    )


def main() -> None:
    """Write the model that the options describe."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    defaults = Sizes()
    for name in ("hidden", "inner", "layers", "heads", "kv_heads", "head_dim", "vocabulary"):
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=int, default=getattr(defaults, name), metavar="COUNT")
    parser.add_argument("--cache", type=int, default=defaults.cache, metavar="TOKENS")
    parser.add_argument(
        "--prefill", type=int, nargs="*", default=defaults.prefill, metavar="TOKENS"
    )
    parser.add_argument("--weights", choices=["float32", "int8"], default=defaults.weights)
    parser.add_argument("-o", "--output", type=Path, default=MODEL, metavar="FILE")
    options = vars(parser.parse_args())
    output = options.pop("output")
    options["prefill"] = tuple(options["prefill"])
    output.write_bytes(language_model(Sizes(**options)))


if __name__ == "__main__":
    main()
