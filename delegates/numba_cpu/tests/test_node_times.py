"""While a profile is taken, a program runs node by node, gives the same, and tells of each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.errors import CallCancelledError
from delegraph.native import LiteRtInterpreter
from delegraph.schema.options import AddOptions, FullyConnectedOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.program.node_times import TimedProgram

WEIGHTS = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)


def layers() -> bytes:
    """FULLY_CONNECTED and TANH, twice, and their sum: some of it can be fused."""
    dense = FullyConnectedOptions()
    return graph_model(
        [
            ("FULLY_CONNECTED", "x w b", "a", dense),
            ("TANH", "a", "c"),
            ("FULLY_CONNECTED", "c w b", "d", dense),
            ("TANH", "d", "e"),
            ("ADD", "c e", "y", AddOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors={
            **{name: tensor((4, 8)) for name in "xacdey"},
            "w": constant(WEIGHTS),
            "b": constant(np.zeros(8, np.float32)),
        },
    )


@pytest.fixture(params=[Interpreter, LiteRtInterpreter], ids=["delegraph", "litert"])
def interpreter(request: pytest.FixtureRequest) -> Interpreter:
    made = request.param(model_content=layers(), delegates=["numba_cpu"])
    made.allocate_tensors()
    made.set_tensor(made.get_input_details()[0]["index"], X)
    return made


def output(interpreter: Interpreter) -> NDArray[np.float32]:
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def split(events: list[Any]) -> tuple[list[Any], Any]:
    """Return the events of nodes, and that of the partition."""
    (whole,) = [event for event in events if event.name == "numba_cpu"]
    return [event for event in events if event is not whole], whole


def test_every_node_is_in_one_event_within_that_of_the_partition(interpreter: Interpreter) -> None:
    with interpreter.profile(whole_partitions=True) as profile:
        output(interpreter)
    nodes, whole = split(profile.events)
    assert sorted(i for event in nodes for i in (event.node_index, *event.fused)) == [*range(5)]
    ops = ["FULLY_CONNECTED", "TANH", "FULLY_CONNECTED", "TANH", "ADD"]
    for event in nodes:
        names = [ops[i] for i in (event.node_index, *event.fused)]
        assert (event.name, event.delegate) == ("+".join(names), "numba_cpu")
        assert event.start >= whole.start
        assert event.start + event.duration <= whole.start + whole.duration
    assert all(a.start + a.duration <= b.start for a, b in pairwise(nodes))


def test_values_are_those_of_a_run_without_a_profile(interpreter: Interpreter) -> None:
    expected = output(interpreter)
    for _ in range(2):
        with interpreter.profile():
            np.testing.assert_array_equal(output(interpreter), expected)
    np.testing.assert_array_equal(output(interpreter), expected)


def test_a_resize_between_profiles_is_followed() -> None:
    interpreter = Interpreter(model_content=layers(), delegates=["numba_cpu"])
    index = interpreter.get_input_details()[0]["index"]
    for rows in (4, 7, 2):
        interpreter.resize_tensor_input(index, (rows, 8))
        interpreter.allocate_tensors()
        x = np.resize(X, (rows, 8))
        interpreter.set_tensor(index, x)
        with interpreter.profile() as profile:
            found = output(interpreter)
        np.testing.assert_array_equal(found, output(interpreter))
        assert [event.name for event in profile.events].count("numba_cpu") == 0


def test_a_run_is_stopped_while_a_profile_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = Interpreter(model_content=layers(), delegates=["numba_cpu"])
    interpreter.allocate_tensors()
    run = TimedProgram.run

    def stopped(program: TimedProgram, *arguments: Any) -> bool:
        interpreter.cancel()
        return run(program, *arguments)

    monkeypatch.setattr(TimedProgram, "run", stopped)
    with interpreter.profile() as profile, pytest.raises(CallCancelledError):
        interpreter.invoke()
    assert profile.events == []
