"""Delegates that hand whole partitions to an engine, in both hosts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    Capabilities,
    Claim,
    DelegateContext,
    EngineDelegate,
    Interpreter,
    PartitionModel,
)
from delegraph.delegation import engine_delegate
from delegraph.native import LiteRtInterpreter
from delegraph.schema.options import AddOptions, MulOptions, ReshapeOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.testing.conformance.subject import subject_of
from support.by_name import Y, run, sines
from support.chip_plugin import EVENTS, ChipDelegate, ChipOptions, install_chip

HOSTS = pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])

Host = Callable[..., Any]

SQUARES = graph_model(
    [("MUL", "x x", "a", MulOptions()), ("ADD", "a x", "y", AddOptions())], inputs="x", outputs="y"
)


@pytest.fixture(autouse=True)
def installed_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_chip(tmp_path, monkeypatch)


def chip(**options: Any) -> ChipDelegate:
    return ChipDelegate(ChipOptions(**options))


def result(host: Any, size: int) -> bool:
    """Run SQUARES on so many numbers; return whether the result is right."""
    index = host.get_input_details()[0]["index"]
    host.resize_tensor_input(index, [size])
    host.allocate_tensors()
    x = np.arange(size, dtype=np.float32)
    host.set_tensor(index, x)
    host.invoke()
    return np.array_equal(host.get_tensor(host.get_output_details()[0]["index"]), x * x + x)


@HOSTS
def test_a_partition_is_compiled_loaded_bound_run_and_closed(host: Host) -> None:
    with host(model_content=SQUARES, delegates=[chip()]) as made:
        assert result(made, 4)
        made.invoke()
    assert EVENTS == ["compile", "load", "bind", "run", "run", "close"]


@HOSTS
def test_every_partition_has_its_program(host: Host) -> None:
    with host(model_content=sines(), delegates=[chip()]) as made:
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)
    assert EVENTS.count("load") == EVENTS.count("close") == 2


def test_what_was_compiled_is_kept_for_the_same_options_and_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(2):
        Interpreter(model_content=SQUARES, delegates=[chip()])
    assert EVENTS.count("compile") == 1
    Interpreter(model_content=SQUARES, delegates=[chip(level=2)])
    assert EVENTS.count("compile") == 2
    monkeypatch.setattr(ChipDelegate, "version", "1.1")
    Interpreter(model_content=SQUARES, delegates=[chip()])
    assert EVENTS.count("compile") == 3


def test_edited_code_of_a_delegate_compiles_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for state in ("first", "first", "edited"):
        monkeypatch.setattr(engine_delegate, "edited_state", lambda kind, state=state: state)
        Interpreter(model_content=SQUARES, delegates=[chip()])
    assert EVENTS.count("compile") == 2


@HOSTS
def test_a_resize_compiles_for_the_new_shapes(host: Host) -> None:
    for fixed in (True, False):
        with host(model_content=SQUARES, delegates=[chip(fixed=fixed)]) as made:
            assert all(result(made, size) for size in (4, 7, 4))
    assert EVENTS.count("load") == EVENTS.count("close")


@HOSTS
def test_a_program_is_kept_for_each_of_the_last_shapes(host: Host) -> None:
    with host(model_content=SQUARES, delegates=[chip(fixed=False)]) as made:
        assert result(made, 4)
        EVENTS.clear()
        assert result(made, 7)
        assert EVENTS == ["compile", "load", "bind", "run"]
        EVENTS.clear()
        assert result(made, 4)
        assert EVENTS == ["bind", "run"]
        assert all(result(made, size) for size in (5, 6, 8))  # five shapes, and four are kept
        EVENTS.clear()
        assert result(made, 4)
        assert result(made, 7)
        assert EVENTS == ["bind", "run", "close", "load", "bind", "run"]
        EVENTS.clear()
    assert EVENTS == ["close"] * 4


def behind_a_reshape(*nodes: Any) -> bytes:
    """Return a model whose other nodes see a shape that is known only while invoking."""
    reshape = ("RESHAPE", "x shape", "a", ReshapeOptions())
    return graph_model(
        [reshape, *nodes], inputs="x shape", outputs="y", tensors={"shape": tensor([1], "INT32")}
    )


@HOSTS
def test_shapes_known_only_while_invoking_are_compiled_then(host: Host) -> None:
    model = behind_a_reshape(("MUL", "a a", "b", MulOptions()), ("ADD", "b a", "y", AddOptions()))
    with host(model_content=model, delegates=[chip(fixed=False)]) as made:
        for size in (4, 7, 4):
            x = np.arange(size, dtype=np.float32)
            assert np.array_equal(invoked(made, x, np.int32([size])), x * x + x)
    assert EVENTS.count("compile") == EVENTS.count("load") == EVENTS.count("close") == 2
    assert EVENTS.count("run") == 3


def invoked(host: Any, *inputs: Any) -> Any:
    details = host.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        host.resize_tensor_input(detail["index"], value.shape)
    host.allocate_tensors()
    for detail, value in zip(details, inputs, strict=True):
        host.set_tensor(detail["index"], value)
    host.invoke()
    return host.get_tensor(host.get_output_details()[0]["index"])


@HOSTS
def test_shapes_that_the_engine_rejects_are_computed_by_the_kernels(host: Host) -> None:
    with host(model_content=SQUARES, delegates=[chip(fixed=False, longest=5)]) as made:
        assert all(result(made, size) for size in (4, 7, 4))
        assert EVENTS.count("run") == 2
        (incident,) = made.placement.incidents
        assert (incident.phase, incident.error) == ("prepare", "too long")


@HOSTS
def test_shapes_with_features_that_are_not_claimed_are_computed_by_the_kernels(host: Host) -> None:
    model = graph_model([("ADD", "x z", "y", AddOptions())], inputs="x z", outputs="y")
    with host(model_content=model, delegates=[chip(fixed=False)]) as made:
        x, z = np.ones((3, 2), np.float32), np.float32([1, 2])
        assert np.array_equal(invoked(made, x, x), x + x)
        assert EVENTS.count("run") == 1
        assert np.array_equal(invoked(made, x, z), x + z)
        assert EVENTS.count("run") == 1
        assert "broadcast" in made.placement.incidents[0].error


def test_output_shapes_that_depend_on_values_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    types = ["FLOAT32", "INT32", "BOOL", "INT64"]
    claim = Claim(["RESHAPE", "WHERE"], types, "computed-weights", "dynamic-shapes")
    monkeypatch.setattr(ChipDelegate, "capabilities", lambda self: Capabilities([claim]))
    reshape = behind_a_reshape(("ABS", "a", "y"))
    assert refusal(reshape) == "shape decides a shape and is not constant"
    where = one_op_model("WHERE", [tensor([4], "BOOL")], [tensor([4, 1], "INT64")])
    assert refusal(where) == "the output shape of WHERE depends on computed values"


@HOSTS
def test_a_refused_partition_stays_and_the_model_runs(host: Host) -> None:
    with host(model_content=SQUARES, delegates=[chip(room=1)]) as made:
        assert result(made, 4)
        assert EVENTS == ["compile"]
    EVENTS.clear()
    placement = Interpreter(model_content=SQUARES, delegates=[chip(room=1)]).placement
    assert {str(node.rejections["chip"]) for node in placement.nodes} == {"no room"}


def refusal(model: bytes) -> str:
    """Return why the first node is left."""
    placement = Interpreter(model_content=model, delegates=[chip(fixed=False)]).placement
    return str(placement.nodes[0].rejections["chip"])


def test_nodes_are_left_that_are_not_claimed_with_their_features_or_keep_state() -> None:
    broadcast = one_op_model("ADD", [tensor([2, 3]), tensor([3])], [tensor([2, 3])], AddOptions())
    assert "broadcast" in refusal(broadcast)
    state = tensor([2], is_variable=True)
    kept = one_op_model("ADD", [tensor([2]), state], [tensor([2])], AddOptions())
    assert refusal(kept) == "it keeps no state"
    assert "ABS" in refusal(one_op_model("ABS", [tensor([2])], [tensor([2])]))


def test_a_partition_without_inputs_is_left() -> None:
    ones = constant(np.float32([1, 2]))
    model = one_op_model("ADD", [ones, ones], [tensor([2])], AddOptions())
    assert refusal(model) == "its inputs are all constant"


class Doubles(EngineDelegate):
    """Its engine is a function."""

    version = "1"
    refusals = (LookupError,)

    def __init__(self, function: Any) -> None:
        super().__init__()
        self._function = function

    def name(self) -> str:
        return "doubles"

    def capabilities(self) -> Capabilities:
        return Capabilities([Claim("ADD", "FLOAT32", "dynamic-shapes")])

    def compile(self, model: PartitionModel) -> bytes:
        return model.graph().operators[0].name.encode()

    def load(self, compiled: bytes, context: DelegateContext) -> Any:
        if compiled != b"ADD" or self._function is None:
            raise LookupError("no such program")
        return self._function


DOUBLE = one_op_model("ADD", [tensor((2,)), tensor((2,))], [tensor((2,))], AddOptions())


@HOSTS
def test_a_function_is_a_program_too(host: Host) -> None:
    with host(model_content=DOUBLE, delegates=[Doubles(lambda x, y: [x + y])]) as made:
        made.allocate_tensors()
        for detail in made.get_input_details():
            made.set_tensor(detail["index"], np.float32([1, 2]))
        made.invoke()
        (output,) = made.get_output_details()
        assert made.get_tensor(output["index"]).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("results", "found"),
    [
        ([np.zeros(1, np.float32)], "the engine returned 1 array: float32 [1], expected "),
        ([np.zeros(2)], "the engine returned 1 array: float64 [2], expected "),
        ([], "the engine returned 0 arrays, expected "),
        (None, "the engine returned NoneType, expected a list of "),
        (np.zeros(2, np.float32), "the engine returned ndarray, expected a list of "),
    ],
)
def test_results_of_another_type_or_shape_are_told(results: Any, found: str) -> None:
    made = Interpreter(model_content=DOUBLE, delegates=[Doubles(lambda x, y: results)])
    made.allocate_tensors()
    with pytest.raises(RuntimeError, match=re.escape(f"{found}1 array: float32 [2]")):
        made.invoke()


def test_a_method_that_returns_nothing_is_named() -> None:
    class LoadsNone(Doubles):
        def load(self, compiled: bytes, context: DelegateContext) -> Any:
            return None

    class CompilesNone(Doubles):
        version = "other"

        def compile(self, model: PartitionModel) -> Any:
            return None

    for kind, said in (
        (LoadsNone, r"LoadsNone\.load returned NoneType, expected a function of the input arrays"),
        (CompilesNone, r"CompilesNone\.compile returned NoneType, expected bytes"),
    ):
        with pytest.raises(RuntimeError, match=said):
            Interpreter(model_content=DOUBLE, delegates=[kind(lambda x, y: [x + y])])


def test_a_function_cannot_write_its_inputs() -> None:
    def writes(x: Any, y: Any) -> Any:
        x += y
        return [x]

    made = Interpreter(model_content=DOUBLE, delegates=[Doubles(writes)])
    made.allocate_tensors()
    with pytest.raises(RuntimeError, match="read-only"):
        made.invoke()


def test_an_error_of_compile_comes_with_advice_on_refusals() -> None:
    class Fails(Doubles):
        version = "fails"

        def compile(self, model: PartitionModel) -> bytes:
            raise OverflowError("no room")

    said = r"OverflowError: no room; .* write refusals = \(OverflowError,\) in Fails, or raise Part"
    with pytest.raises(RuntimeError, match=said):
        Interpreter(model_content=DOUBLE, delegates=[Fails(lambda x, y: [x + y])])


def test_a_delegate_without_claims_is_told_to_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubles, "capabilities", EngineDelegate.capabilities)
    made = Interpreter(model_content=DOUBLE, delegates=[Doubles(lambda x, y: [x + y])])
    (node,) = made.placement.nodes
    assert str(node.rejections["doubles"]) == "it claims nothing: write capabilities()"


def test_an_attribute_in_place_of_a_method_is_an_error_of_the_class() -> None:
    with pytest.raises(TypeError, match=r"Named\.name is 'chip', expected a method: write def"):
        type("Named", (EngineDelegate,), {"name": "chip"})


def test_a_class_without_version_is_told_to_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Doubles, "version")
    with pytest.raises(RuntimeError, match=r"Doubles has no version: write version = '1' in the"):
        Interpreter(model_content=DOUBLE, delegates=[Doubles(lambda x, y: [x + y])])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("name", lambda self: None, r"Doubles\.name\(\) returned None, expected a text"),
        ("version", 3, r"Doubles\.version is 3, expected a text: write version = '3'"),
        ("refusals", ("x",), r"Doubles\.refusals is \('x',\), expected a tuple of classes"),
        ("refusals", (int,), r"Doubles\.refusals is .*int.*, expected a tuple of classes"),
        ("refusals", OSError, r"Doubles\.refusals is .*, expected a tuple of classes"),
        ("max_programs", 0, r"Doubles\.max_programs is 0, expected a number of at least 1"),
        ("max_programs", -1, r"Doubles\.max_programs is -1, expected"),
        ("max_programs", "4", r"Doubles\.max_programs is '4', expected"),
    ],
)
def test_a_wrong_attribute_is_told_when_the_delegate_is_applied(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any, said: str
) -> None:
    monkeypatch.setattr(Doubles, name, value)
    with pytest.raises(RuntimeError, match=said):
        Interpreter(model_content=DOUBLE, delegates=[Doubles(lambda x, y: [x + y])])


def test_claims_that_are_a_list_are_told_what_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubles, "capabilities", lambda self: [Claim("ADD", "FLOAT32")])
    made = Doubles(lambda x, y: [x + y])
    said = (
        r"Doubles\.capabilities returned list, expected Capabilities: write return Capabilities\("
    )
    with pytest.raises(RuntimeError, match=said):
        Interpreter(model_content=DOUBLE, delegates=[made])
    with pytest.raises(RuntimeError, match=said):
        subject_of(lambda: made)


def test_errors_of_the_engine_that_mean_a_refusal_leave_the_nodes() -> None:
    made = Interpreter(model_content=DOUBLE, delegates=[Doubles(None)])
    (node,) = made.placement.nodes
    assert "no such program" in str(node.rejections["doubles"])
