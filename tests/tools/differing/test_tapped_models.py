from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from delegraph.operators.memory_limit import LEAST
from delegraph.schema import read_model, tables
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools.differing.tapped_models import (
    copy_setup,
    separated_model,
    tapped_model,
    unit_model,
)
from delegraph.tools.setup import Setup
from support.signatures import two_signatures


def records_of(content: bytes) -> tables.Model:
    return read_model(np.frombuffer(content, np.uint8))


def two_constants() -> tables.Model:
    """y = (x + big) + small; the tensors are big, s, small, x, y in the order of their use."""
    parts = {
        "x": tensor((4096,)),
        "big": constant(np.arange(4096, dtype=np.float32)),
        "s": tensor((4096,)),
        "small": constant(np.float32([7])),
        "y": tensor((4096,)),
    }
    nodes: list[Any] = [("ADD", "x big", "s"), ("ADD", "s small", "y")]
    return records_of(graph_model(nodes, inputs="x", outputs="y", tensors=parts))


def indices(graph: tables.SubGraph) -> dict[str, int]:
    return {tensor.name or "": i for i, tensor in enumerate(graph.tensors or ())}


def test_a_unit_holds_what_its_nodes_use_and_nothing_else() -> None:
    whole = two_constants()
    index = indices(whole.subgraphs[0])  # type: ignore[index]  # it has one
    content, kept = unit_model(whole, 0, [1], [index["s"]], [index["y"]])
    assert len(content) < 4096 < 4 * 4096
    unit = records_of(content)
    (graph,) = unit.subgraphs or ()
    assert [(whole.subgraphs or ())[0].tensors[i].name for i in kept] == [  # type: ignore[index]
        tensor.name for tensor in graph.tensors or ()
    ]
    own = indices(graph)
    assert set(own) == {"s", "small", "y"}
    (operator,) = graph.operators or ()
    assert operator.inputs == (own["s"], own["small"])
    assert (graph.inputs, graph.outputs) == ((own["s"],), (own["y"],))
    data = (unit.buffers or ())[(graph.tensors or ())[own["small"]].buffer].data
    assert data is not None
    assert data.view(np.float32).tolist() == [7]
    (signature,) = unit.signature_defs or ()
    assert [entry.name for entry in signature.inputs or ()] == [f"tensor {index['s']}"]


def test_scales_in_a_tensor_go_along_under_their_new_number() -> None:
    whole = two_constants()
    (graph,) = whole.subgraphs or ()
    index = indices(graph)
    scales = tables.Tensor(name="scales", shape=(4,), type=TensorType.FLOAT16)
    details = tables.BlockwiseQuantization(scales=len(graph.tensors or ()), zero_points=-1)
    tensors = [*(graph.tensors or ()), scales]
    tensors[index["small"]] = tensors[index["small"]].replace(
        quantization=tables.QuantizationParameters(details=details)
    )
    changed = whole.replace(subgraphs=(graph.replace(tensors=tuple(tensors)),))
    content, _ = unit_model(changed, 0, [1], [index["s"]], [index["y"]])
    (cut,) = records_of(content).subgraphs or ()
    own = indices(cut)
    quantization = (cut.tensors or ())[own["small"]].quantization
    assert quantization is not None
    assert isinstance(quantization.details, tables.BlockwiseQuantization)
    assert quantization.details.scales == own["scales"] != len(graph.tensors or ())
    assert quantization.details.zero_points == -1


def test_tapped_tensors_are_outputs_of_the_graph_and_of_its_signatures() -> None:
    whole = records_of(two_signatures())
    graph = (whole.subgraphs or ())[1].replace(outputs=())
    without = whole.replace(subgraphs=((whole.subgraphs or ())[0], graph))
    tapped = records_of(tapped_model(without, 1, [0, 1, 1]))
    first, second = tapped.subgraphs or ()
    assert (first.outputs, second.outputs) == ((1,), (1,))  # 0 is an input
    outputs = {
        s.signature_key: [e.tensor_index for e in s.outputs or ()]
        for s in tapped.signature_defs or ()
    }
    assert outputs == {"negate": [1], "wave": [1, 1]}


def test_a_copy_has_more_room_unless_a_limit_is_given() -> None:
    copy = copy_setup(Setup("m.tflite"), Path("copy.tflite"))
    assert (copy.model, (copy.memory_limit or 0) > LEAST) == ("copy.tflite", True)
    for setup in (Setup("m.tflite", memory_limit=5), Setup("m.tflite", "litert")):
        assert copy_setup(setup, Path("m.tflite")) == setup


def test_inputs_of_separated_nodes_have_the_shapes_of_their_values() -> None:
    """Delegates leave nodes whose file says that their inputs have an unknown shape."""
    parts = {"x": tensor((), shape_signature=(-1, 3)), "y": tensor((2, 3)), "z": tensor((2, 3))}
    nodes: list[Any] = [("SIN", "x", "y"), ("COS", "y", "z")]
    whole = records_of(graph_model(nodes, inputs="x", outputs="z", tensors=parts))
    x, y, _ = range(3)
    content, meant = separated_model(whole, 0, [0, 1], {x: (2, 3), y: (4, 3)})
    (graph,) = records_of(content).subgraphs or ()
    made = [(graph.tensors or ())[i] for i in graph.inputs or ()]
    assert [meant[i] for i in graph.inputs or ()] == [x, y]
    assert [(each.shape, each.shape_signature) for each in made] == [((2, 3), None), ((4, 3), None)]
