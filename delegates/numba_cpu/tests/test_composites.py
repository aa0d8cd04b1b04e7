"""STABLEHLO_COMPOSITE: its decomposition is part of the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegated import delegate, delegated, is_taken, levels, run
from delegraph import Interpreter
from delegraph.native import LiteRtInterpreter
from delegraph.schema.array_options import ReducerOptions
from delegraph.schema.layer_options import FullyConnectedOptions
from delegraph.schema.stablehlo_options import StableHLOCompositeOptions
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.outputs import outputs_of
from delegraph.testing.several_ops import NodeText, SubgraphText, subgraphs_model
from support.official import official_outputs

RNG = np.random.default_rng(0)
WIDTH = 32
X = RNG.normal(size=(3, WIDTH)).astype(np.float32)


def composite(inputs: str, outputs: str, index: int = 1, name: str = "odml.rms_norm") -> NodeText:
    options = StableHLOCompositeOptions(
        name=name,
        decomposition_subgraph_index=index,
        composite_attributes=np.frombuffer(flexbuffers.Dumps({}), np.uint8),
    )
    return "STABLEHLO_COMPOSITE", inputs, outputs, options


def norm(x: str = "x", y: str = "y", rows: int = 3) -> SubgraphText:
    """Return a decomposition: *x* by the root of its mean square, times ``gain``."""
    one, whole = tensor((rows, 1)), tensor((rows, WIDTH))
    nodes: list[NodeText] = [
        ("MUL", f"{x} {x}", "square"),
        ("MEAN", "square axis", "mean", ReducerOptions(keep_dims=True)),
        ("ADD", "mean epsilon", "shifted"),
        ("RSQRT", "shifted", "root"),
        ("MUL", f"{x} root", "unit"),
        ("MUL", "unit gain", y),
    ]
    tensors = {
        "axis": constant(np.array([-1], np.int32)),
        "epsilon": constant(np.float32(1e-6)),
        "gain": tensor((WIDTH,)),
        **dict.fromkeys(("mean", "shifted", "root"), one),
        **dict.fromkeys((x, "square", "unit", y), whole),
    }
    return nodes, f"{x} gain", y, tensors


def layer_model(*called: SubgraphText, rows: int = 3) -> bytes:
    """Return a norm, 4-bit weights, a norm by the same decomposition, and a sum."""
    weights = RNG.integers(-7, 8, (WIDTH, WIDTH)).astype(np.int8)
    whole = tensor((rows, WIDTH))
    nodes: list[NodeText] = [
        composite("x gain", "a"),
        ("FULLY_CONNECTED", "a weights -", "b", FullyConnectedOptions()),
        composite("b other_gain", "c"),
        ("ADD", "x c", "y"),
    ]
    tensors = {
        "gain": constant(RNG.uniform(0.5, 1, WIDTH).astype(np.float32)),
        "other_gain": constant(RNG.uniform(0.5, 1, WIDTH).astype(np.float32)),
        "weights": constant(weights, "INT4", scale=RNG.uniform(0.01, 0.1, WIDTH).tolist()),
        **dict.fromkeys("xabcy", whole),
    }
    return subgraphs_model([(nodes, "x", "y", tensors), *(called or [norm(rows=rows)])])


@levels
@pytest.mark.parametrize("threads", [1, 2])
def test_decompositions_are_part_of_the_program(threads: int, level: str) -> None:
    model = layer_model()
    interpreter = delegated(model, level, num_threads=threads)
    interpreter.allocate_tensors()
    assert is_taken(interpreter)
    assert "in 1 partition" in str(interpreter.placement)
    (expected,) = delegraph_outputs(model, [X])
    np.testing.assert_allclose(run(interpreter, X), expected, rtol=0, atol=1e-5)
    (official,) = official_outputs(model, [X])
    np.testing.assert_allclose(run(interpreter, X), official, rtol=0, atol=1e-5)


def test_each_call_has_the_shapes_of_its_operands() -> None:
    """Two calls of one decomposition, by tensors of different shapes, before and after a resize."""
    options = ReducerOptions(keep_dims=True)
    nodes: list[NodeText] = [
        composite("x gain", "a"),
        ("MEAN", "a axis", "b", options),
        composite("b gain", "y"),
    ]
    tensors = {
        "gain": constant(np.ones(WIDTH, np.float32)),
        "axis": constant(np.array([0], np.int32)),
        **dict.fromkeys("xa", tensor((3, WIDTH))),
        **dict.fromkeys("by", tensor((1, WIDTH))),
    }
    model = subgraphs_model([(nodes, "x", "y", tensors), norm()])
    interpreter = delegated(model)
    for rows in (3, 7, 3, 1):
        x = RNG.normal(size=(rows, WIDTH)).astype(np.float32)
        (expected,) = delegraph_outputs(model, [x])
        np.testing.assert_allclose(run(interpreter, x), expected, rtol=0, atol=1e-5)
    assert is_taken(interpreter)


def test_composites_inside_composites_are_taken() -> None:
    whole = dict.fromkeys("vwz", tensor((3, WIDTH))) | {"gain": tensor((WIDTH,))}
    outer = ([composite("v gain", "w", 2), ("ADD", "v w", "z")], "v gain", "z", whole)
    model = layer_model(outer, norm())
    interpreter = delegated(model)
    (expected,) = delegraph_outputs(model, [X])
    np.testing.assert_allclose(run(interpreter, X), expected, rtol=0, atol=1e-5)
    assert "in 1 partition" in str(interpreter.placement)


def rejected(*called: SubgraphText, main: bytes | None = None) -> str:
    """Return why the first composite of a model was left."""
    model = main or layer_model(*called)
    with Interpreter(model_content=model, experimental_delegates=[delegate()]) as found:
        node = found.placement.nodes[0]
        assert node.op == "STABLEHLO_COMPOSITE"
        return str(node.rejections["numba_cpu"])


def test_a_node_without_a_kernel_keeps_the_composite_with_the_host() -> None:
    nodes, *rest = norm()
    changed = [("CUMSUM", "x last", "square"), *nodes[1:]]
    tensors = {**rest[2], "last": constant(np.int32(1))}
    text = rejected((changed, rest[0], rest[1], tensors))
    assert "CUMSUM inside: numba_cpu has no kernel for CUMSUM" in text


def test_an_output_that_is_an_input_keeps_the_composite_with_the_host() -> None:
    tensors = {"x": tensor((3, WIDTH)), "gain": tensor((WIDTH,))}
    assert "no node's own" in rejected(([], "x gain", "x", tensors))


def test_a_value_that_no_earlier_node_computes_keeps_the_composite_with_the_host() -> None:
    nodes, *rest = norm()
    assert "before a node computes it" in rejected(([*nodes[1:], nodes[0]], *rest))
    assert "before a node computes it" in rejected((nodes[1:], *rest))


def test_litert_which_runs_subgraphs_itself_keeps_composites() -> None:
    model = layer_model()
    interpreter = LiteRtInterpreter(model_content=model, delegates=["numba_cpu"])
    (found,) = outputs_of(interpreter, [X])
    (expected,) = official_outputs(model, [X])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_program_with_composites_is_kept(
    tmp_path: Path, keeping: None, lowered: list[object]
) -> None:
    path, found = tmp_path / "model.tflite", []
    path.write_bytes(layer_model())
    for _ in range(2):
        cache = str(tmp_path / "cache")
        with Interpreter(str(path), delegates=["numba_cpu"], cache_dir=cache) as interpreter:
            found.append(run(interpreter, X))
            assert "in 1 partition" in str(interpreter.placement)
    assert len(lowered) == 1
    np.testing.assert_array_equal(*found)
