"""Prints the nodes and the tensors of a model file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from delegraph.cli.answers.printing import (
    heading,
    print_omitted,
    print_paragraph,
    print_table,
    size,
)
from delegraph.cli.answers.unknown_shapes import LEAST_MACS, macs_amount, shape_text
from delegraph.quantities import percent

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec
    from delegraph.tools.model_listing import ListedNode, ListedTensor
    from delegraph.tools.model_summary import TensorSummary

_CONSTANT = "*"

_ALWAYS = ("padding",)
"""Options that are shown even if they have the schema's default."""


def print_nodes(out: Console, model: Model) -> None:
    """Print the nodes of each subgraph, with their shapes and the type of their first outputs."""
    columns = (
        *("node", "operator", "inputs", "input shapes", "outputs", "type", "output shape"),
        *("MACs", "constants", "options"),
    )
    less_important = (("options",), ("input shapes",), ("constants",), ("type",), ("MACs",))
    from delegraph.tools.model_listing import list_nodes  # lazy: the help needs no NumPy
    from delegraph.tools.model_summary import summarize_tensors

    nodes = list_nodes(model)
    listed = iter(nodes)
    omitted: list[str] = []
    for subgraph in model.subgraphs:
        heading(out, f"Nodes of subgraph {subgraph.index}")
        tensors = summarize_tensors(subgraph)
        rows = [_node(each, next(listed), subgraph, tensors) for each in subgraph.operators]
        right = ("node", "MACs", "constants")
        how = {"right": right, "optional": less_important, "below": "options"}
        omitted += print_filled(out, columns, rows, **how)
    print_paragraph(out, f"inputs and outputs are numbers of tensors; {_CONSTANT} is a constant")
    if any(node.macs_are_least for node in nodes):
        print_paragraph(out, LEAST_MACS)
    print_omitted(out, omitted)


def _node(
    operator: OperatorSpec,
    listed: ListedNode,
    subgraph: SubgraphSpec,
    tensors: Sequence[TensorSummary],
) -> tuple[object, ...]:
    """Cells of a node; *tensors* summarize those of the *subgraph*."""
    first = [tensors[index] for index in operator.outputs[:1] if index >= 0]
    inputs = (_input(subgraph, index) for index in operator.inputs)
    return (
        operator.index,
        operator.name,
        ", ".join(inputs),
        ", ".join(shape_text(tensors[index].shape) for index in operator.inputs if index >= 0),
        ", ".join(map(str, operator.outputs)),
        *((first[0].type, shape_text(first[0].shape)) if first else ("", "")),
        macs_amount(listed.macs, listed.macs_are_least),
        size(listed.constant_bytes) if listed.constant_bytes else "",
        ", ".join(f"{name}={value}" for name, value in _told_options(operator)),
    )


def _input(subgraph: SubgraphSpec, index: int) -> str:
    if index < 0:
        return "none"
    return f"{index}{_CONSTANT * subgraph.tensors[index].is_constant}"


def _told_options(operator: OperatorSpec) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each option that differs from the schema's default."""
    if operator.options is None:
        return
    from delegraph.tools.model_listing import options_of  # lazy: the help needs no NumPy

    usual = options_of(type(operator.options)())
    for name, value in options_of(operator.options).items():
        if name in _ALWAYS or value != usual.get(name):
            yield name.replace("fused_activation_function", "activation"), value


def print_tensors(out: Console, model: Model) -> None:
    """Print the tensors of each subgraph."""
    columns = ("tensor", "name", "type", "shape", "scale", "zero", "role")
    right = ("tensor", "scale", "zero")
    less_important = (("role",), ("zero", "scale"))
    from delegraph.tools.model_listing import list_tensors  # lazy, too

    omitted: list[str] = []
    for subgraph, group in groupby(list_tensors(model), lambda each: each.subgraph):
        heading(out, f"Tensors of subgraph {subgraph}")
        rows = [
            (
                each.tensor.index,
                each.tensor.name or "-",
                each.tensor.type,
                shape_text(each.tensor.shape),
                *_quantization(each.tensor),
                _role(each),
            )
            for each in group
        ]
        omitted += print_filled(out, columns, rows, right=right, optional=less_important)
    print_omitted(out, omitted)


def _role(listed: ListedTensor) -> str:
    """Return the role of a tensor, with a constant's bytes, and the zeros of a sparse one."""
    stored = [] if listed.bytes is None else [size(listed.bytes)]
    zeros = [] if listed.sparsity is None else [f"sparse: {percent(listed.sparsity)} zeros"]
    return ", ".join(filter(None, (listed.role, *stored, *zeros)))


def print_filled(
    out: Console, columns: Sequence[str], rows: Sequence[Sequence[object]], **how: Any
) -> list[str]:
    """Print a table without the columns that have no text in any row.

    Headings of the columns that are omitted for lack of room are returned.
    """
    kept = [i for i in range(len(columns)) if any(row[i] != "" for row in rows)]
    shown = [[row[i] for i in kept] for row in rows]
    return print_table(out, [columns[i] for i in kept], shown, **how)


def _quantization(tensor: TensorSummary) -> tuple[str, str]:
    if tensor.scale is None:
        return "", ""
    if tensor.channels is not None:
        return f"{tensor.channels} scales", ""
    return f"{tensor.scale:.6g}", str(tensor.zero_point)
