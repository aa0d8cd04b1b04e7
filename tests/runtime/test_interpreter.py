from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Limits, PlacementPolicy, PlacementRule
from delegraph.errors import (
    ArgumentError,
    MalformedModelError,
    PlacementError,
    StateError,
    UnsupportedModelError,
)
from delegraph.runtime.options import PLACES
from delegraph.schema.options import AddOptions
from delegraph.schema.stablehlo_options import StablehloCaseOptions
from delegraph.testing import graph_model, subgraphs_model, tensor
from support.by_name import ByName

SINE = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")


@pytest.mark.parametrize(
    ("argument", "choices", "made"),
    [
        ("numerics", "None, 'builtin', 'reference'", partial(Interpreter, model_content=SINE)),
        ("require", "None, 'full'", PlacementPolicy),
        ("partitions", "'largest', 'measured'", PlacementPolicy),
    ],
)
def test_an_unknown_choice_lists_those_there_are(argument: str, choices: str, made: Any) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is 'other', expected one of: {choices}"):
        made(**{argument: "other"})


@pytest.mark.parametrize("name", ["memory", "tables", "depth"])
@pytest.mark.parametrize("limit", [-1, 1.5, True, "9"])
def test_limits_are_counts(name: str, limit: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"Limits\.{name} is an int of at least 0, not"):
        Limits(**{name: limit})


def test_a_size_as_text_is_told_that_memory_is_a_number_of_bytes() -> None:
    with pytest.raises(ArgumentError, match=r"not '2G'; it is a number of bytes"):
        Limits(memory="2G")  # type: ignore[arg-type]  # wrong on purpose


OLD = {
    "rules": [PlacementRule("exclude", operators="SIN")],
    "require": "full",
    "partition_policy": "measured",
    "memory_limit": 1 << 20,
    "time_limit": 60.0,
    "table_limit": 100,
    "depth_limit": 9,
    "weights_dir": "folder",
    "cancellation": Interpreter(model_content=SINE).session.cancellation,
    "on_failure": "fallback",
    "validate": True,
    "shadow_share": 0.5,
    "isolate": "none",
    "timeout": 3.0,
}
"""Values of the keywords that became fields of groups, as far as they go together."""


@pytest.mark.parametrize("name", PLACES)
def test_each_old_keyword_works_and_warns(name: str) -> None:
    old: Any = {name: OLD[name]}
    group, field = PLACES[name]
    text = rf"Interpreter\({name}=\.\.\.\) is deprecated and goes in 0\.3; use {group}="
    with pytest.warns(DeprecationWarning, match=text) as given:
        made = Interpreter(model_content=SINE, delegates=[], **old)
    assert given[0].filename == __file__
    assert getattr(getattr(made.session.options, group), field) == OLD[name]


def test_an_unknown_keyword_is_an_error() -> None:
    unknown: Any = {"memory": 1}
    with pytest.raises(TypeError, match="unexpected keyword argument 'memory'"):
        Interpreter(model_content=SINE, **unknown)


def test_a_file_holds_as_many_tables_as_the_user_grants() -> None:
    text = r"more tables than the limit of 5; .*Limits\(tables=\.\.\.\)\) sets another"
    with pytest.raises(MalformedModelError, match=text):
        Interpreter(model_content=SINE, limits=Limits(tables=5))
    Interpreter(model_content=SINE, limits=Limits(tables=20))


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
    for depth, limits in ((50, None), (200, Limits(depth=200))):
        model = nested_calls(depth)
        interpreter = Interpreter(model_content=model, delegates=delegates, limits=limits)
        interpreter.allocate_tensors()
        interpreter.set_tensor(1, np.float32([0, 1]))
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == np.sin(np.float32([0, 1])).tolist()
    with pytest.raises(UnsupportedModelError, match="200 deep, more than the limit of 199"):
        Interpreter(model_content=model, delegates=delegates, limits=Limits(depth=199))


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
    interpreter = Interpreter(model_content=SINE, placement=PlacementPolicy(require="full"))
    with pytest.raises(PlacementError, match="none is named"):
        interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(ByName("SIN"))
    interpreter.allocate_tensors()


def test_an_interpreter_tells_what_it_is_on_one_line() -> None:
    interpreter = Interpreter(model_content=SINE, delegates=[])
    told = "of 'x' FLOAT32[4] -> 'y' FLOAT32[4], 1 operator,"
    assert repr(interpreter) == f"<Interpreter {told} no delegates, uninvokable>"
    interpreter.modify_graph_with_delegate(ByName("SIN"))
    assert repr(interpreter) == f"<Interpreter {told} by_name, invokable and immutable>"
    assert repr(interpreter.placement) == ("<Placement of 1 node: by_name takes 1 in 1 partition>")
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


def test_a_misspelt_keyword_is_told_a_similar_one() -> None:
    text = r"^Interpreter.__init__\(\) got an unexpected keyword argument 'num_thread' \(did you "
    with pytest.raises(TypeError, match=text + r"mean 'num_threads'\?\)$"):
        Interpreter(model_content=SINE, num_thread=2)
    with pytest.raises(TypeError, match=r"argument 'zzz'$"):
        Interpreter(model_content=SINE, zzz=2)
