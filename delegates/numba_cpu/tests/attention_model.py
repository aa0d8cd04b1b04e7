"""Models of attention as converters write it, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delegraph.schema.layer_options import BatchMatMulOptions, SoftmaxOptions
from delegraph.schema.stablehlo_options import StableHLOCompositeOptions
from delegraph.testing import constant, tensor
from delegraph.testing.one_op import TensorDef
from delegraph.testing.several_ops import NodeText, SubgraphText, subgraphs_model


@dataclass(frozen=True, slots=True)
class Attention:
    """An attention of ``x``, ``keys`` and ``values``, and a ``mask`` if there is one.

    Attributes:
        batch: leading dimensions of all operands.
        sizes: queries, keys, values of a query, and values of a result.
        scale: MUL or DIV by *factor* after the first product, or no operator.
        factor: its value.
        mask: shape of what is added to the scores; None without an ADD.
        adj_y: whether keys are stored row by row.
        beta: that of the SOFTMAX.
        shared: leading dimensions of keys and values, if not *batch*.
        is_transposed: whether heads, the last leading dimension, come after the rows in memory.
        is_reshaped: whether products have one leading dimension.
    """

    batch: tuple[int, ...] = (2,)
    sizes: tuple[int, int, int, int] = (9, 20, 7, 12)
    scale: str = ""
    factor: float = 0.25
    mask: tuple[int, ...] | None = None
    adj_y: bool = True
    beta: float = 1.0
    shared: tuple[int, ...] | None = None
    is_transposed: bool = False
    is_reshaped: bool = False

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the inputs."""
        queries, keys, depth, columns = self.sizes
        shared = self.batch if self.shared is None else self.shared
        right = (keys, depth) if self.adj_y else (depth, keys)
        shapes = [(*self.batch, queries, depth), (*shared, *right), (*shared, keys, columns)]
        if self.is_transposed:
            shapes = [_turned(shape) for shape in shapes]
        return shapes if self.mask is None else [*shapes, self.mask]

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Return normal values for the inputs."""
        generator = np.random.default_rng(seed)
        return [generator.standard_normal(shape).astype(np.float32) for shape in self.shapes]

    def model(self, outputs: str = "y") -> bytes:
        """Return the model."""
        return subgraphs_model([self.subgraph(outputs)])

    def composite_model(self) -> bytes:
        """Return a model whose only node is a composite with this attention inside."""
        _, inputs, outputs, tensors = inner = self.subgraph()
        options = StableHLOCompositeOptions(
            name="odml.scaled_dot_product_attention", decomposition_subgraph_index=1
        )
        outer = {name: tensors[name] for name in (*inputs.split(), outputs)}
        nodes: list[NodeText] = [("STABLEHLO_COMPOSITE", inputs, outputs, options)]
        return subgraphs_model([(nodes, inputs, outputs, outer), inner])

    def subgraph(self, outputs: str = "y") -> SubgraphText:
        """Return the nodes, inputs, outputs and tensors."""
        queries, keys, _, columns = self.sizes
        names = ["x", "keys", "values", "mask"][: len(self.shapes)]
        tensors = {name: tensor(shape) for name, shape in zip(names, self.shapes, strict=True)}
        nodes: list[NodeText] = []
        x, right, values = (self._operand(nodes, tensors, name) for name in names[:3])
        leading = self.batch if not self.is_reshaped else (int(np.prod(self.batch)),)
        last = "scores"
        tensors[last] = tensor((*leading, queries, keys))
        nodes.append(("BATCH_MATMUL", f"{x} {right}", last, BatchMatMulOptions(adj_y=self.adj_y)))
        whole = (*self.batch, queries, keys)
        last = self._reshaped(nodes, tensors, last, whole)
        if self.scale:
            tensors["factor"] = constant(np.float32(self.factor))
            nodes.append((self.scale, f"{last} factor", "scaled"))
            tensors[last := "scaled"] = tensor(whole)
        if self.mask is not None:
            nodes.append(("ADD", f"{last} mask", "masked"))
            tensors[last := "masked"] = tensor(whole)
        nodes.append(("SOFTMAX", last, "shares", SoftmaxOptions(beta=self.beta)))
        tensors["shares"] = tensor(whole)
        shares = self._reshaped(nodes, tensors, "shares", (*leading, queries, keys))
        nodes.append(("BATCH_MATMUL", f"{shares} {values}", "mixed", BatchMatMulOptions()))
        tensors["mixed"] = tensor((*leading, queries, columns))
        y = self._reshaped(nodes, tensors, "mixed", (*self.batch, queries, columns))
        if self.is_transposed:
            tensors["y"] = tensor(_turned((*self.batch, queries, columns)))
            nodes.append(("TRANSPOSE", f"{y} turn", "y"))
        else:
            nodes.append(("NEG", y, "y"))
            tensors["y"] = tensor((*self.batch, queries, columns))
        return nodes, " ".join(names), outputs, tensors

    def _operand(self, nodes: list[NodeText], tensors: dict[str, TensorDef], name: str) -> str:
        """Write the moves of an input to where a product wants it; return the moved tensor."""
        shape, moved = tensors[name].shape, name
        if self.is_transposed:
            rank = len(shape)
            axes = [*range(rank - 3), rank - 2, rank - 3, rank - 1]
            tensors["turn"] = constant(np.array(axes, np.int32))
            nodes.append(("TRANSPOSE", f"{name} turn", moved := f"{name}_turned"))
            shape = _turned(shape)
            tensors[moved] = tensor(shape)
        return self._reshaped(nodes, tensors, moved, (int(np.prod(shape[:-2])), *shape[-2:]))

    def _reshaped(
        self,
        nodes: list[NodeText],
        tensors: dict[str, TensorDef],
        name: str,
        shape: Sequence[int],
    ) -> str:
        """Write a RESHAPE if products have one leading dimension; return the last tensor."""
        if not self.is_reshaped or tensors[name].shape == tuple(shape):
            return name
        tensors[f"{name}_shape"] = constant(np.array(shape, np.int32))
        tensors[f"{name}_reshaped"] = tensor(tuple(shape))
        nodes.append(("RESHAPE", f"{name} {name}_shape", f"{name}_reshaped"))
        return f"{name}_reshaped"


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with its second and third last dimensions exchanged."""
    *others, rows, heads, columns = shape
    return (*others, heads, rows, columns)
