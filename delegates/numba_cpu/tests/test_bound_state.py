"""KV caches that stay in one buffer: the copy of DYNAMIC_UPDATE_SLICE is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.schema import read_model, tables, write_model
from delegraph.testing import graph_model, tensor
from delegraph_numba_cpu.program.program import Program
from support.language_models import fed_back, language_model, tokens


def bound(interpreter: Interpreter) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
    runners = {key: interpreter.get_signature_runner(key) for key in ("prefill_8", "decode")}
    caches = runners["decode"].bind_state()
    runners["prefill_8"].bind_state(caches)
    outputs = [runners[key](**inputs) for key, inputs in tokens()]
    return [each["logits"] for each in outputs[1:]], caches


def in_place(interpreter: Interpreter) -> set[tuple[str, ...]]:
    return {state.in_place for state in interpreter.session.bound_states.values()}


@pytest.mark.parametrize("kept", [False, True], ids=["lowered", "kept"])
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_caches_are_written_in_place_with_equal_results(
    weights: str, kept: bool, tmp_path: Any
) -> None:
    content = language_model(weights=weights)
    arguments: Any = {"model_content": content, "cache_dir": tmp_path}
    arguments["delegates"] = ["numba_cpu" if kept else "numba_cpu:kept_programs=false"]
    expected, caches = fed_back(Interpreter(**arguments))
    interpreter = Interpreter(**arguments)
    logits, held = bound(interpreter)
    np.testing.assert_array_equal(logits, expected)
    for name, values in caches.items():
        np.testing.assert_array_equal(held[name], values)
    assert in_place(interpreter) == {tuple(sorted(caches))}


def test_a_failed_step_can_be_done_again() -> None:
    """The core's kernels refuse the token as well; the right one then continues."""
    content = language_model()
    interpreter = Interpreter(model_content=content, delegates=["numba_cpu"])
    expected, _ = fed_back(interpreter)
    runners = {key: interpreter.get_signature_runner(key) for key in ("prefill_8", "decode")}
    caches = runners["decode"].bind_state()
    runners["prefill_8"].bind_state(caches)
    logits = []
    for key, inputs in tokens():
        if key == "decode":
            with pytest.raises(RuntimeError, match="999"):
                runners[key](**{**inputs, "tokens": np.array([[999]], np.int32)})
        logits.append(runners[key](**inputs).get("logits"))
    np.testing.assert_array_equal(logits[1:], expected)


def cached(*more: Any, outputs: str = "new") -> bytes:
    """A cache, and nodes that read it besides."""
    nodes = [("DYNAMIC_UPDATE_SLICE", "old block start", "new"), *more]
    tensors = {
        "old": tensor((64, 4)),
        "block": tensor((1, 4)),
        "start": tensor((2,), "INT32"),
        "new": tensor((64, 4)),
        "other": tensor((64, 4)),
    }
    content = graph_model(nodes, inputs="old block start", outputs=outputs, tensors=tensors)
    records = read_model(np.frombuffer(content, np.uint8))
    (graph,) = records.subgraphs or ()
    number = {str(t.name): i for i, t in enumerate(graph.tensors or ())}

    def named(**names: str) -> tuple[tables.TensorMap, ...]:
        return tuple(tables.TensorMap(name=n, tensor_index=number[t]) for n, t in names.items())

    results = {} if outputs == "new" else {"other": "other"}
    signature = tables.SignatureDef(
        inputs=named(cache="old", block="block", start="start"),
        outputs=named(cache="new", **results),
        signature_key="step",
        subgraph_index=0,
    )
    return write_model(records.replace(signature_defs=(signature,)))


def test_a_cache_that_another_node_reads_is_copied() -> None:
    content = cached(("EXP", "old", "other"), outputs="other new")
    interpreter = Interpreter(model_content=content, delegates=["numba_cpu"])
    step = interpreter.get_signature_runner()
    cache = step.bind_state()["cache"]
    block, start = np.ones((1, 4), np.float32), np.array([3, 0], np.int32)
    assert step(block=block, start=start)["other"].tolist() == [[1] * 4] * 64
    assert (cache.sum(), cache[3].tolist()) == (4, [1] * 4)
    assert in_place(interpreter) == {()}


def test_no_bytes_are_copied_in_place_and_all_of_them_otherwise() -> None:
    interpreter = Interpreter(model_content=cached(), delegates=["numba_cpu"])
    step = interpreter.get_signature_runner()
    block, start = np.ones((1, 4), np.float32), np.array([3, 0], np.int32)

    def copied() -> int:
        (node, _) = interpreter.session.subgraphs[0].steps.nodes[0]
        program: Program = node.user_data.program
        return int(program.record(0)[2])

    step.bind_state()
    step(block=block, start=start)
    assert copied() == 0
    step.bind_state({})
    found = step(cache=np.zeros((64, 4), np.float32), block=block, start=start)["cache"]
    assert (copied(), found.sum()) == (64 * 4 * 4, 4)
