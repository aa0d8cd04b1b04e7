"""Nodes of one interpreter, each computed from given values."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph import Interpreter, OpResolverType
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import graph_model, tensor
from delegraph.tools.differing.layer_units import Unit, Whole
from delegraph.tools.differing.nodes_in_place import compute_in_place
from delegraph.tools.setup import Setup

NODES: list[Any] = [("ADD", "x x", "a", AddOptions()), ("MUL", "a x", "y", MulOptions())]
MODEL = graph_model(NODES, inputs="x", outputs="y", tensors={n: tensor((2,)) for n in "xay"})


def computed(known: dict[str, list[float]]) -> tuple[dict[str, list[float]], list[tuple[int, ...]]]:
    """Return the results of the nodes by name, and the nodes that were not computed."""
    with Interpreter(
        model_content=MODEL,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    ) as made:
        made.allocate_tensors()
        made.set_tensor(made.get_input_details()[0]["index"], np.float32([9, 9]))
        made.invoke()
        details = {d["name"]: d for d in made.get_tensor_details()}
        subgraph = made.session.subgraph(0)
        whole = Whole(None, subgraph.spec, made.placement)  # type: ignore[arg-type]  # not written
        units = [Unit(whole, (o.index,), o.outputs, Setup("")) for o in subgraph.spec.operators]
        values = {details[n]["index"]: (details[n], np.float32(v)) for n, v in known.items()}
        found: dict[str, list[float]] = {}

        def take(outputs: Any) -> None:
            found.update({entry["name"]: array.tolist() for entry, array in outputs.values()})

        left = compute_in_place(subgraph, units, values, take)
        return found, [unit.nodes for unit in left]


def test_each_node_reads_the_known_values() -> None:
    assert computed({"x": [1, 2], "a": [10, 20]}) == ({"a": [2, 4], "y": [10, 40]}, [])


def test_a_node_without_known_inputs_is_left() -> None:
    assert computed({"x": [1, 2]}) == ({"a": [2, 4]}, [(1,)])


def test_values_of_another_shape_leave_the_node() -> None:
    assert computed({"x": [1, 2], "a": [1, 2, 3]}) == ({"a": [2, 4]}, [(1,)])
