"""``delegraph compile --delegate edgetpu``: the same part, in the format of the core."""

from __future__ import annotations

import numpy as np
import pytest

import delegraph_edgetpu
from compiled_models import DIGITS, addition, random_inputs
from delegraph import Interpreter
from delegraph.delegation.compiled_partition import CUSTOM_OP, compiled_partitions
from delegraph.errors import PluginError
from delegraph.graph import parse_model
from delegraph.testing import cases, graph_model, one_op_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph.tools import compile_model
from delegraph_edgetpu.executable import Executable, parse


def operators(model: bytes) -> list[str]:
    return [operator.name for operator in parse_model(model).subgraphs[0].operators]


def executable_in(model: bytes) -> Executable:
    """Return the executable of the model's compiled partition."""
    parsed = parse_model(model)
    ((subgraph, index),) = compiled_partitions(parsed)
    blob = parsed.subgraphs[subgraph].operators[index].inputs[-1]
    data = parsed.subgraphs[subgraph].tensors[blob].data
    assert data is not None
    found = parse(data.tobytes())
    assert isinstance(found, Executable)
    return found


def test_it_takes_the_part_that_edgetpu_compile_takes() -> None:
    model = DIGITS.read_bytes()
    compiled = compile_model(model, ["edgetpu"])
    (expected,) = delegraph_edgetpu.compile(model)
    (partition,) = compiled.partitions
    assert sum(partition.operators.values()) == len(expected.mapped)
    assert operators(compiled.content) == [CUSTOM_OP]
    executable = executable_in(compiled.content)
    for field in ("parameter_bytes", "cached_bytes", "multiply_adds", "runtime_version"):
        assert getattr(executable, field) == getattr(expected.executable, field)


@pytest.mark.parametrize(
    ("shape", "signature", "reason"),
    [
        ((1, 4), (-1, 4), "shapes must be fixed: convert the model with a fixed input shape"),
        (
            (2, 1, 1, 4),
            None,
            "of shapes, only the 3 innermost dimensions may exceed 1: make the first dimension 1 "
            "(no batches)",
        ),
    ],
)
def test_one_reason_about_shapes_holds_for_all_tensors(
    shape: tuple[int, ...], signature: tuple[int, ...] | None, reason: str
) -> None:
    value = tensor(shape, "INT8", scale=1 / 256, zero_point=-128, shape_signature=signature)
    nodes = [("LOGISTIC", "x", "y", None), ("LOGISTIC", "y", "z", None)]
    tensors = dict.fromkeys("xyz", value)
    compiled = compile_model(
        graph_model(nodes, inputs="x", outputs="z", tensors=tensors), ["edgetpu"]
    )
    (refusal,) = compiled.explanation.refusals
    assert (refusal.nodes, refusal.reason) == ((0, 1), reason)


@pytest.mark.parametrize("further", [[], ["numba_cpu"]])
def test_its_note_says_that_no_real_device_runs_the_file(further: list[str]) -> None:
    compiled = compile_model(DIGITS.read_bytes(), ["edgetpu", *further])
    note = compiled.explanation.placement.notes["edgetpu"]
    assert note == "for a simulated device; a real Edge TPU cannot run the file"


def test_what_it_leaves_has_the_rule_that_is_broken() -> None:
    logits = tensor((1, 19200), "INT8", scale=0.1)
    shares = tensor((1, 19200), "INT8", scale=1 / 256, zero_point=-128)
    compiled = compile_model(one_op_model("SOFTMAX", [logits], [shares]), ["edgetpu"])
    assert compiled.partitions == ()
    (node,) = compiled.explanation.placement.nodes
    (rejection,) = node.rejections.values()
    assert (rejection.constraint, str(rejection)) == (
        "softmax-elements",
        "19,200 elements, limit 16,000",
    )


@pytest.mark.parametrize("host", ["delegraph", "litert"])
def test_the_file_runs_by_itself_and_gives_what_the_source_gives(host: str) -> None:
    if host == "litert":
        pytest.importorskip("ai_edge_litert")
        from delegraph.native import LiteRtInterpreter as Host
    else:
        Host = Interpreter  # type: ignore[assignment,misc]  # the same calls
    model = DIGITS.read_bytes()
    interpreter = Host(model_content=compile_model(model, ["edgetpu"]).content)
    plain = Interpreter(model_content=model, delegates=[])
    for seed in range(3):
        inputs = random_inputs(model, seed)
        np.testing.assert_array_equal(outputs_of(interpreter, inputs), outputs_of(plain, inputs))


def test_state_goes_on() -> None:
    case = next(
        case
        for case in cases("UNIDIRECTIONAL_SEQUENCE_LSTM", count=40)
        if case.types()[0] == "INT8" and len(case.steps) > 1
    )
    compiled = compile_model(case.model(), ["edgetpu"])
    assert len(compiled.partitions) == 1
    interpreter = Interpreter(model_content=compiled.content)
    plain = Interpreter(model_content=case.model(), delegates=[])
    for step in case.steps:
        found, expected = (outputs_of(each, list(step)) for each in (interpreter, plain))
        np.testing.assert_array_equal(found, expected)


def test_options_that_the_file_cannot_keep_are_refused() -> None:
    with pytest.raises(PluginError, match="are options for running a model"):
        compile_model(addition(), ["edgetpu:device=:1"])
