"""What programs read of a loaded delegate, in both hosts: its library, its pointer, its life."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as official
import numpy as np
import pytest

import delegraph
from delegraph.errors import DelegateError
from delegraph.schema.options import AddOptions
from delegraph.testing import one_op_model, tensor
from native.compiled.compiled import compile_library, needs_compiler

pytestmark = needs_compiler
MODEL = one_op_model("ADD", [tensor((2,)), tensor((2,))], [tensor((2,))], AddOptions())
HOSTS = pytest.mark.parametrize("host", [delegraph, official], ids=["delegraph", "litert"])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library("adds", tmp_path_factory.mktemp("adds"))


@HOSTS
def test_an_interpreter_keeps_its_delegate_and_the_library(host: Any, library: Path) -> None:
    interpreter = host.Interpreter(
        model_content=MODEL, experimental_delegates=[host.load_delegate(str(library))]
    )
    functions = interpreter._delegates[0]._library
    assert functions.num_live_delegates() == 1
    del interpreter
    assert functions.num_live_delegates() == 0


@HOSTS
def test_several_interpreters_share_a_delegate(host: Any, library: Path) -> None:
    delegate = host.load_delegate(library)
    functions = delegate._library
    first, second = (
        host.Interpreter(model_content=MODEL, experimental_delegates=[delegate]) for _ in range(2)
    )
    assert first._delegates[0] is second._delegates[0] is delegate
    del delegate, first
    assert functions.num_live_delegates() == 1
    del second
    assert functions.num_live_delegates() == 0


@HOSTS
def test_a_delegate_can_be_applied_by_its_pointer(host: Any, library: Path) -> None:
    delegate = host.load_delegate(str(library))
    kernels = host.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = host.Interpreter(model_content=MODEL, experimental_op_resolver_type=kernels)
    interpreter._interpreter.ModifyGraphWithDelegate(delegate._get_native_delegate_pointer())
    names = [node["op_name"] for node in interpreter._get_ops_details()]
    assert names == ["ADD", "DELEGATE"]
    interpreter.allocate_tensors()
    for index in (0, 1):
        interpreter.set_tensor(index, np.float32([1, 2]))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [2, 4]


def test_no_pointer_is_no_delegate() -> None:
    interpreter = delegraph.Interpreter(model_content=MODEL, delegates=[])
    with pytest.raises(DelegateError, match="Null delegate"):
        interpreter._interpreter.ModifyGraphWithDelegate(0)
