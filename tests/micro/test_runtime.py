"""The Python API of TFLM's wheel; `make tflm-record` wrote down what the wheel does."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import numpy as np
import pytest

from delegraph import custom_op, unregister_custom_op
from delegraph.errors import MalformedModelError, MicroRuntimeError, TensorIndexError
from delegraph.micro import runtime
from delegraph.operators.custom_op import CustomOp
from delegraph.testing import graph_model, one_op_model, tensor
from micro.wheel import facts

SINES = graph_model([("SIN", "x", "s"), ("ADD", "s x", "y")], inputs="x", outputs="y")
PRESERVE = runtime.InterpreterConfig.kPreserveAllTensors


def test_every_call_ends_as_in_the_wheel(capsys):
    theirs = json.loads(facts.KEPT.read_text(encoding="utf-8"))
    mine = json.loads(json.dumps(facts.outcomes(runtime)))
    assert theirs.keys() == mine.keys()
    assert facts.compared(mine, theirs) == {}
    assert len(theirs) > 140


def test_a_path_is_opened(tmp_path):
    (tmp_path / "sines.tflite").write_bytes(SINES)
    interpreter = runtime.Interpreter.from_file(tmp_path / "sines.tflite", arena_size=4096)
    interpreter.set_input(np.zeros(4, np.float32), 0)
    assert interpreter.invoke() == 0
    assert interpreter.get_output(0).tolist() == [0, 0, 0, 0]


def test_an_allocation_that_fails_says_why():
    with pytest.raises(MicroRuntimeError, match="failed to allocate tensors: persistent memory"):
        runtime.Interpreter.from_bytes(SINES, arena_size=100)
    unknown = one_op_model("NoSuch", [tensor((1,))], [tensor((1,))], custom_options=b"")
    with pytest.raises(MicroRuntimeError, match=r"to allocate tensors: .*NoSuch"):
        runtime.Interpreter.from_bytes(unknown, arena_size=4096)


def test_damaged_bytes_are_refused():
    with pytest.raises(MalformedModelError):
        runtime.Interpreter.from_bytes(b"no model")


def test_allocations_are_printed_to_standard_error(capsys):
    runtime.Interpreter.from_bytes(SINES, arena_size=4096).print_allocations()
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) > 4
    assert all(line.startswith("[RecordingMicroAllocator] ") for line in lines)


@pytest.mark.parametrize("place", [(3, 0), (0, 1), (-1, 0)])
def test_a_tensor_that_is_not_there_is_an_index_error(place):
    interpreter = runtime.Interpreter.from_bytes(SINES, None, 1 << 14, PRESERVE)
    with pytest.raises(TensorIndexError, match="Tensor is out of bound"):
        interpreter.GetTensor(*place)


def test_how_many_inputs_there_are_is_said():
    with pytest.raises(TensorIndexError, match=r"out of bound.* \(input 5, there are 1\)"):
        runtime.Interpreter.from_bytes(SINES, arena_size=4096).set_input(np.zeros(4), 5)


def test_big_endian_numbers_keep_their_values():
    interpreter = runtime.Interpreter.from_bytes(SINES, None, 1 << 14, PRESERVE)
    interpreter.set_input(np.array([1, 2, 3, 4], ">f4"), 0)
    interpreter.invoke()
    assert interpreter.GetTensor(0, 0)["tensor_data"].tolist() == [1, 2, 3, 4]


# -- registerers -----------------------------------------------------------------------------------

NEGATE = one_op_model("Negate", [tensor((2,))], [tensor((2,))], custom_options=b"")


@pytest.fixture
def registerers(monkeypatch):
    module = ModuleType("some_registerers")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def negate():
    made = CustomOp("Negate", lambda x: -x)
    made.shape(lambda x: x.shape)
    return made


def test_a_registerer_is_a_function_by_name(registerers):
    registerers.register = lambda resolver: resolver.add_custom("Negate", negate())
    interpreter = runtime.Interpreter.from_bytes(NEGATE, ["some_registerers:register"], 4096)
    interpreter.set_input(np.float32([1, 2]), 0)
    interpreter.invoke()
    assert interpreter.get_output(0).tolist() == [-1, -2]
    with pytest.raises(MicroRuntimeError, match="Negate"):
        runtime.Interpreter.from_bytes(NEGATE, arena_size=4096)


def test_what_the_process_knows_needs_no_registerer():
    custom_op("Negate")(lambda x: -x).shape(lambda x: x.shape)
    try:
        assert runtime.Interpreter.from_bytes(NEGATE, arena_size=4096).invoke() == 0
    finally:
        unregister_custom_op("Negate")


def fail(resolver):
    raise LookupError("no such table")


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("some_registerers:register", lambda resolver: False, "it returned False"),
        ("some_registerers:register", fail, "LookupError: no such table"),
        ("some_registerers:other", None, "has no attribute 'other'; expected the name of a Python"),
        ("no_such_module:register", None, "No module named 'no_such_module'"),
        ("RegisterOps", None, "No module named 'RegisterOps'"),
        ("", None, "Empty module name"),
    ],
)
def test_a_registerer_that_fails_is_named(registerers, name, function, words):
    registerers.register = function
    with pytest.raises(MicroRuntimeError) as raised:
        runtime.Interpreter.from_bytes(NEGATE, [name], 4096)
    assert f"could not register custom op via {name}: " in str(raised.value)
    assert words in str(raised.value)
