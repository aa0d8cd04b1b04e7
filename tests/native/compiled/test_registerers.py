"""``InterpreterWithCustomOps``: operators that registerers of C and of Python provide."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import InterpreterWithCustomOps as Official

from delegraph import Interpreter, InterpreterWithCustomOps, custom_op, unregister_custom_op
from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    NodeError,
    UnresolvedOpError,
    UnsupportedRuntimeError,
)
from delegraph.native.compiled import registerers
from delegraph.testing import graph_model, one_op_model, tensor
from native.compiled.compiled import compile_library, needs_compiler
from support.by_name import ByName

NAME = "TF_TestRegisterer"
SCALE = one_op_model(
    "Scale", [tensor((3,))], [tensor((3,))], custom_options=np.float32(3).tobytes()
)
HALVE = one_op_model("Halve", [tensor((4,))], [tensor((4,))])
PLAIN = one_op_model("NEG", [tensor((3,))], [tensor((3,))])
X = np.float32([1, 2, 3])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = compile_library("registers", tmp_path_factory.mktemp("registers"))
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def computed(interpreter: Any, x: Any = X) -> Any:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(1).tolist()


@needs_compiler
@pytest.mark.parametrize("by", ["name", "function"])
def test_the_operators_of_a_registerer_run_as_in_the_official_class(library: Any, by: str) -> None:
    function = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address_in(library))
    given = [NAME if by == "name" else function]
    for model, x in ((SCALE, X), (HALVE, np.float32([1, 2, 3, 4]))):
        ours = InterpreterWithCustomOps(custom_op_registerers=given, model_content=model)
        theirs = Official(custom_op_registerers=given, model_content=model)
        assert computed(ours, x) == computed(theirs, x)
        assert ours._custom_op_registerers == given
        assert ours._safe_to_run()


def address_in(library: Any) -> int:
    address: Any = ctypes.cast(library.TF_TestRegisterer, ctypes.c_void_p).value
    return int(address)


@needs_compiler
def test_a_registerer_runs_once_and_what_it_allocates_is_freed(library: Any) -> None:
    before, kernels = library.num_registered(), library.num_live_kernels()
    made = InterpreterWithCustomOps([NAME], model_content=SCALE)
    assert library.num_registered() - before == 1
    assert library.num_live_kernels() - kernels == 1
    assert computed(made) == [3, 6, 9]
    made.resize_tensor_input(0, [2])
    assert computed(made, X[:2]) == [3, 6]
    made.close()
    gc.collect()
    assert library.num_live_kernels() == kernels


@needs_compiler
def test_what_its_kernel_says_of_a_node_is_the_error(library: Any) -> None:
    wrong = one_op_model("Scale", [tensor((3,)), tensor((3,))], [tensor((3,))])
    made = InterpreterWithCustomOps([NAME], model_content=wrong)
    with pytest.raises(NodeError, match=r"\(Scale\).*ERROR: Scale has 2 inputs, not 1"):
        made.allocate_tensors()


@needs_compiler
def test_a_delegate_may_take_the_nodes_around_it(library: Any) -> None:
    model = graph_model(
        [("SIN", "x", "s"), ("Scale", "s", "t"), ("SIN", "t", "y")], inputs="x", outputs="y"
    )
    made = InterpreterWithCustomOps([NAME], model_content=model, delegates=[ByName("SIN")])
    made.allocate_tensors()
    made.set_tensor(0, np.zeros(4, np.float32))
    made.invoke()
    assert [node.delegate for node in made.placement.nodes] == ["by_name", None, "by_name"]


@needs_compiler
def test_operators_given_by_name_win(library: Any) -> None:
    @custom_op("Other")
    def tenfold(x: Any) -> Any:
        return 10 * x

    unregister_custom_op("Other")
    made = InterpreterWithCustomOps([NAME], model_content=SCALE, custom_ops={"Scale": tenfold})
    assert computed(made) == [10, 20, 30]


@needs_compiler
def test_without_the_registerer_the_operator_is_nobodys(library: Any) -> None:
    with pytest.raises(UnresolvedOpError, match="Scale"):
        Interpreter(model_content=SCALE).allocate_tensors()


def test_a_function_gets_an_address_and_may_register_operators_of_python() -> None:
    got: list[Any] = []

    @custom_op("Other")
    def twice(x: Any) -> Any:
        return 2 * x

    unregister_custom_op("Other")

    def register(resolver: Any) -> None:
        got.append(resolver)
        resolver.add_custom("Scale", twice)

    made = InterpreterWithCustomOps(custom_op_registerers=[register], model_content=SCALE)
    assert isinstance(got[0], int)
    assert computed(made) == [2, 4, 6]


@pytest.mark.parametrize("given", [None, [], ()])
def test_no_registerers_are_fine(given: Any) -> None:
    made = InterpreterWithCustomOps(given, model_content=PLAIN)
    assert made._custom_op_registerers == []
    assert computed(made) == [-1, -2, -3]


@pytest.mark.parametrize(
    "given",
    [["CompletelyBogus"], "ab", ["pywrap_genai_ops.NoSuchRegisterer"], [3], [lambda _: 1 / 0]],
)
def test_mistakes_raise_the_official_types(given: Any) -> None:
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)) as theirs:
        Official(custom_op_registerers=given, model_content=PLAIN)
    with pytest.raises(theirs.type):
        InterpreterWithCustomOps(custom_op_registerers=given, model_content=PLAIN)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(ArgumentError, match="Looking up symbol 'Bogus' failed with error"):
        InterpreterWithCustomOps(["Bogus"], model_content=PLAIN)
    with pytest.raises(ArgumentTypeError, match="is the name of a C function, or a function, not"):
        InterpreterWithCustomOps([3], model_content=PLAIN)  # type: ignore[list-item]


def test_errors_of_a_function_come_through() -> None:
    def register(resolver: Any) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        InterpreterWithCustomOps([register], model_content=PLAIN)


def test_only_the_registerers_are_positional() -> None:
    with pytest.raises(TypeError, match="positional"):
        InterpreterWithCustomOps(None, "x.tflite")  # type: ignore[misc]
    with pytest.raises(ArgumentError, match="must be specified"):
        InterpreterWithCustomOps()


def test_without_an_official_runtime_functions_of_python_still_register(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(package: str | None = None) -> Any:
        raise UnsupportedRuntimeError("none is installed")

    monkeypatch.setattr(registerers, "interpreter_module", missing)

    @custom_op("Other")
    def twice(x: Any) -> Any:
        return 2 * x

    unregister_custom_op("Other")
    made = InterpreterWithCustomOps(
        [lambda resolver: resolver.add_custom("Scale", twice)], model_content=SCALE
    )
    assert computed(made) == [2, 4, 6]
    with pytest.raises(UnsupportedRuntimeError, match="none is installed"):
        InterpreterWithCustomOps(["Bogus"], model_content=SCALE)


def test_a_resolver_with_another_table_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registerers.OfficialResolver, "slot", lambda self, index: _NONE_FOUND)
    with pytest.raises(UnsupportedRuntimeError, match="not as those known"):
        InterpreterWithCustomOps([lambda _: None], model_content=PLAIN)


_FIND_NOTHING = registerers.FindBuiltin(lambda resolver, op, version: None)
_NONE_FOUND = ctypes.cast(_FIND_NOTHING, ctypes.c_void_p).value


def test_nothing_official_is_loaded_without_registerers() -> None:
    import subprocess

    code = (
        "import sys; from delegraph import InterpreterWithCustomOps as I; "
        f"I(model_path={str(Path('docs/demo/models/sines.tflite'))!r}); "
        "print('ai_edge_litert' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
