"""What is told of tensors, nodes and signatures: as the official interpreter tells it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter
from ai_edge_litert.interpreter import OpResolverType as OfficialResolver

from delegraph import Interpreter
from delegraph.runtime.arguments import OpResolverType
from delegraph.schema import tables
from delegraph.schema.enums import DimensionType
from delegraph.schema.options import GatherOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from support.by_name import ByName
from support.corpus import CORPUS, corpus_rows, needs_corpus
from support.detailed_models import convolution, signatures


def strings() -> bytes:
    words = constant(np.array([b"one", b"", b"three"], object), "STRING")
    at = tensor((2,), "INT32", name="at")
    return one_op_model("GATHER", [words, at], [tensor((2,), "STRING")], GatherOptions())


def sparse(block_map: tuple[int, ...] | None = None) -> bytes:
    segments = tables.Int32Vector(values=np.array([0, 1, 3], np.int32))
    indices = tables.Int32Vector(values=np.array([2, 0, 1], np.int32))
    rows = tables.DimensionMetadata(dense_size=2)
    columns = tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR, array_segments=segments, array_indices=indices
    )
    sparsity = tables.SparsityParameters(
        traversal_order=(0, 1), block_map=block_map, dim_metadata=(rows, columns)
    )
    stored = constant(np.array([5, 6, 7], np.float32))
    made = type(stored)((2, 3), stored.type, data=stored.data, sparsity=sparsity)
    return one_op_model("DENSIFY", [made], [tensor((2, 3))])


def empty_block_map() -> bytes:
    return sparse(())


MODELS = {
    model.__name__: model for model in (convolution, strings, sparse, empty_block_map, signatures)
}


def both(content: bytes) -> tuple[Interpreter, Any]:
    ours = Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    official = OfficialInterpreter(
        model_content=content,
        experimental_op_resolver_type=OfficialResolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    return ours, official


def same(ours: Any, official: Any, where: str) -> None:
    """Assert equality of values, types and dtypes, all the way down."""
    if isinstance(official, np.ndarray):
        assert (ours.dtype, ours.shape) == (official.dtype, official.shape), where
        assert ours.tolist() == official.tolist(), where
        return
    assert type(ours) is type(official), where
    if isinstance(official, dict):
        assert ours.keys() == official.keys(), where
        for key, value in official.items():
            same(ours[key], value, f"{where}[{key!r}]")
    elif isinstance(official, list | tuple):
        assert len(ours) == len(official), where
        for position, (one, other) in enumerate(zip(ours, official, strict=True)):
            same(one, other, f"{where}[{position}]")
    else:
        assert ours == official, where


def check(content: bytes) -> None:
    ours, official = both(content)
    for ask in ("get_input_details", "get_output_details", "get_tensor_details"):
        same(getattr(ours, ask)(), getattr(official, ask)(), ask)
    same(ours._get_ops_details(), official._get_ops_details(), "ops")
    same(ours.get_signature_list(), official.get_signature_list(), "signatures")


@pytest.mark.parametrize("name", MODELS)
def test_details_are_the_official_ones(name: str) -> None:
    check(MODELS[name]())


SMALL = [r for r in corpus_rows() if r["expect"] == "ok" and r["size"] < 300_000]


@needs_corpus
@pytest.mark.parametrize("row", SMALL[::9], ids=lambda row: row["name"])
def test_details_of_real_models_are_the_official_ones(row: dict[str, Any]) -> None:
    check((CORPUS / row["file"]).read_bytes())


def test_details_are_copies() -> None:
    interpreter, _ = both(convolution())
    details = interpreter.get_tensor_details()[1]["quantization_parameters"]
    details["scales"][0] = details["zero_points"][0] = 9
    again = interpreter.get_tensor_details()[1]["quantization_parameters"]
    assert (again["scales"][0], again["zero_points"][0]) == (0.5, 0)


def test_a_delegate_node_is_called_delegate() -> None:
    model = graph_model([("SIN", "x", "s"), ("NEG", "s", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model, delegates=[ByName("SIN")])
    names = [(node["index"], node["op_name"]) for node in interpreter._get_ops_details()]
    assert (0, "SIN") in names
    assert (2, "DELEGATE") in names
