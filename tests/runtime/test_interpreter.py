from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import (
    ArgumentError,
    MalformedModelError,
    PlacementError,
    StateError,
    UnsupportedModelError,
)
from delegraph.schema.options import AddOptions
from delegraph.schema.stablehlo_options import StablehloCaseOptions
from delegraph.testing import graph_model, subgraphs_model, tensor
from support.by_name import ByName

SINE = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")


@pytest.mark.parametrize(
    ("argument", "choices"),
    [
        ("numerics", "None, 'builtin', 'reference'"),
        ("require", "None, 'full'"),
        ("partition_policy", "'largest', 'measured'"),
    ],
)
def test_an_unknown_choice_lists_those_there_are(argument: str, choices: str) -> None:
    made: Any = {argument: "other"}
    with pytest.raises(ArgumentError, match=f"in {argument}: 'other'; it is one of {choices}"):
        Interpreter(model_content=SINE, **made)


@pytest.mark.parametrize("name", ["table_limit", "depth_limit"])
@pytest.mark.parametrize("limit", [-1, 1.5, True, "9"])
def test_limits_are_counts(name: str, limit: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{name} is an int of at least 0, not"):
        Interpreter(model_content=SINE, **{name: limit})


def test_a_file_holds_as_many_tables_as_the_user_grants() -> None:
    text = r"more tables than the limit of 5; Interpreter\(table_limit=\.\.\.\) sets another"
    with pytest.raises(MalformedModelError, match=text):
        Interpreter(model_content=SINE, table_limit=5)
    Interpreter(model_content=SINE, table_limit=20)


@pytest.fixture
def recursion_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


def nested_calls(depth: int) -> bytes:
    """Return sin(x) within *depth* branches, whichever one is taken."""
    number, x = tensor((), "INT32"), tensor((2,))
    call: list[Any] = []
    for callee in range(1, depth + 1):
        options = StablehloCaseOptions(branch_subgraph_indices=(callee,))
        call.append(([("STABLEHLO_CASE", "i i x", "y", options)], "i x", "y"))
    call.append(([("SIN", "x", "y")], "i x", "y"))
    return subgraphs_model([(*nodes, {"i": number, "x": x, "y": x}) for nodes in call])


@pytest.mark.parametrize("delegates", [[], [ByName("SIN")]])
def test_deep_calls_work_up_to_the_limit(delegates: Any, recursion_limit: None) -> None:
    for depth, limits in ((50, {}), (200, {"depth_limit": 200})):
        model = nested_calls(depth)
        interpreter = Interpreter(model_content=model, delegates=delegates, **limits)
        interpreter.allocate_tensors()
        interpreter.set_tensor(1, np.float32([0, 1]))
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == np.sin(np.float32([0, 1])).tolist()
    with pytest.raises(UnsupportedModelError, match="200 deep, more than the limit of 199"):
        Interpreter(model_content=model, delegates=delegates, depth_limit=199)


def test_it_describes_its_model() -> None:
    sine: Any = ([("SIN", "x", "y")], "x", "y", {})
    interpreter = Interpreter(model_content=subgraphs_model([sine, sine]), numerics="reference")
    assert interpreter.num_subgraphs() == 2
    assert interpreter.numerics == "reference"
    assert interpreter.get_signature_list() == {}


def test_a_view_of_strings_is_a_copy() -> None:
    words = {"x": tensor((1,), "STRING"), "y": tensor((1, 1), "STRING")}
    model = graph_model([("EXPAND_DIMS", "x axis", "y")], inputs="x axis", outputs="y",
                        tensors={**words, "axis": tensor((), "INT32")})  # fmt: skip
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([b"a"], object))
    view = interpreter.tensor(0)()
    view[0] = b"b"
    assert interpreter.get_tensor(0).tolist() == [b"a"]
    interpreter.allocate_tensors()  # which nothing holds back


@pytest.mark.parametrize("call", ["modify_graph_with_delegate", "remove_all_delegates"])
def test_delegates_stay_as_they_are_while_a_view_is_alive(call: str) -> None:
    interpreter = Interpreter(model_content=SINE)
    interpreter.allocate_tensors()
    view = interpreter.tensor(0)()
    arguments = [ByName("SIN")] * (call == "modify_graph_with_delegate")
    with pytest.raises(StateError, match="at least 1 reference to internal data"):
        getattr(interpreter, call)(*arguments)
    del view
    getattr(interpreter, call)(*arguments)


def test_what_is_required_is_checked_before_tensors_get_memory() -> None:
    interpreter = Interpreter(model_content=SINE, require="full")
    with pytest.raises(PlacementError, match="1 node stays behind"):
        interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(ByName("SIN"))
    interpreter.allocate_tensors()


def test_an_interpreter_tells_what_it_is_on_one_line() -> None:
    interpreter = Interpreter(model_content=SINE, delegates=[])
    told = "of 'x' FLOAT32[4] -> 'y' FLOAT32[4], 1 operator,"
    assert repr(interpreter) == f"<Interpreter {told} no delegates, uninvokable>"
    interpreter.modify_graph_with_delegate(ByName("SIN"))
    assert repr(interpreter) == f"<Interpreter {told} by_name, invokable and immutable>"
    assert repr(interpreter.placement) == (
        "<Placement of 1 node: by_name takes 1 in 1 partition, 0 stay with Delegraph's kernels>"
    )
    assert repr(interpreter.session.model).startswith("<Model of 1 subgraph, 1 operator, 0 signa")
    interpreter.close()
    assert repr(interpreter) == "<Interpreter that is closed>"


def test_long_and_many_names_are_shortened() -> None:
    name = "a\x1b" + 90 * "n"
    nodes: list[Any] = [("ADD", f"{name} b", "y", AddOptions()), ("ADD", "y c", "z", AddOptions())]
    interpreter = Interpreter(model_content=graph_model(nodes, inputs=f"{name} b c", outputs="z"))
    assert f"of 'a\\x1b{17 * 'n'}…' FLOAT32[4], 'b' FLOAT32[4], 1 more -> 'z'" in repr(interpreter)
    assert len(repr(interpreter)) < 200


def test_closing_twice_does_no_harm() -> None:
    interpreter = Interpreter(model_content=SINE)
    interpreter.close()
    interpreter.close()
    for use in (interpreter.allocate_tensors, interpreter.get_input_details):
        with pytest.raises(StateError, match="closed"):
            use()


def test_a_subgraph_does_not_run_after_its_interpreter_is_closed() -> None:
    with Interpreter(model_content=SINE) as interpreter:
        interpreter.allocate_tensors()
        subgraph = interpreter.subgraph()
        subgraph.invoke()
    with pytest.raises(StateError, match="not ready"):
        subgraph.invoke()
