"""Custom operators by C kernels of LiteRT's interface, in all three hosts."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Registration
from delegraph.errors import ArgumentTypeError, NodeError
from delegraph.native import LiteRtInterpreter, compiled_model, litert_custom_op
from delegraph.schema.options import AddOptions
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing import constant, graph_model, tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "compiled"))

from compiled import compile_library, needs_compiler

from support.running import result_of

pytest.importorskip("ai_edge_litert.compiled_model")
pytestmark = needs_compiler

X = np.float32([1, 2, 3, 4])


class State(ctypes.Structure):
    _fields_ = (("factor", ctypes.c_int), ("alive", ctypes.c_int), ("runs", ctypes.c_int))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return ctypes.CDLL(str(compile_library("litert_kernel", tmp_path_factory.mktemp("c"))))


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def scale(library: ctypes.CDLL, state: State) -> Registration:
    return litert_custom_op(
        "Scale",
        run=library.ScaleRun,
        get_output_layouts=library.ScaleLayouts,
        init=library.ScaleInit,
        destroy=library.ScaleDestroy,
        user_data=ctypes.addressof(state),
    )


def scales(*factors: int, **tensors: Any) -> bytes:
    """Return a model with a node for each factor, one after the other."""
    names = ["x", *(f"t{i}" for i in range(1, len(factors))), "y"]
    nodes = [("Scale", a, b) for a, b in itertools.pairwise(names)]
    content = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    model = read_model(np.frombuffer(content, np.uint8))
    (subgraph,) = model.subgraphs
    operators = tuple(
        operator.replace(custom_options=np.array([factor], np.uint8))
        for operator, factor in zip(subgraph.operators, factors, strict=True)
    )
    return write_model(model.replace(subgraphs=(subgraph.replace(operators=operators),)))


def in_compiled_model(content: bytes, x: Any, op: Registration) -> Any:
    with compiled_model(content, [], custom_ops={"Scale": op}) as model:
        model.resize_input_tensor(0, x.shape, strict=False)
        (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
        for values in (x + 1, x):  # in the same buffers
            source.write(values)
            model.run_by_index(0, [source], [target])
        return target.read(x.size, np.float32).reshape(x.shape)


def in_interpreter(made: Any, content: bytes, x: Any, op: Registration) -> Any:
    with made(model_content=content, delegates=[], custom_ops={"Scale": op}) as interpreter:
        interpreter.resize_tensor_input(0, x.shape)
        interpreter.allocate_tensors()
        for values in (x + 1, x):
            found = result_of(interpreter, values)
        return found


def in_litert(content: bytes, x: Any, op: Registration) -> Any:
    return in_interpreter(LiteRtInterpreter, content, x, op)


def in_delegraph(content: bytes, x: Any, op: Registration) -> Any:
    return in_interpreter(Interpreter, content, x, op)


all_hosts = pytest.mark.parametrize("run", [in_compiled_model, in_litert, in_delegraph])


@all_hosts
@pytest.mark.parametrize("shape", [(4,), (1,), (3, 5)])
def test_the_kernel_computes_nodes_of_any_shape(
    run: Callable[..., Any], shape: Any, scale: Registration, state: State
) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert np.array_equal(run(scales(2, 2), x, scale), 4 * x)
    assert state.runs == 4
    assert state.alive == 0


@all_hosts
@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (99, r"Node number 0 \(Scale\) failed to invoke: .*Run of the C kernel"),
        (98, r"Node number 0 \(Scale\) failed to prepare: .*GetOutputLayouts of the C kernel"),
    ],
)
def test_a_status_is_an_error(
    run: Callable[..., Any], factor: int, text: str, scale: Registration, state: State
) -> None:
    with pytest.raises(NodeError, match=text):
        run(scales(factor), X, scale)


@all_hosts
def test_nodes_with_other_options_are_refused(
    run: Callable[..., Any], scale: Registration, state: State
) -> None:
    with pytest.raises(Exception, match="nodes of 'Scale' have different options"):
        run(scales(2, 5), X, scale)
    assert np.array_equal(run(scales(2), X, scale), 2 * X)


def test_without_init_options_do_not_matter(library: ctypes.CDLL, state: State) -> None:
    state.factor = 4
    scale = litert_custom_op(
        "Scale",
        run=ctypes.cast(library.ScaleRun, ctypes.c_void_p).value,
        get_output_layouts=library.ScaleLayouts,
        user_data=ctypes.addressof(state),
    )
    assert np.array_equal(in_compiled_model(scales(2, 5), X, scale), 16 * X)


@all_hosts
def test_constants_of_the_file_need_no_alignment(
    run: Callable[..., Any], scale: Registration
) -> None:
    tensors = {name: constant(np.full(4, i, np.float32)) for i, name in enumerate("abc")}
    nodes = [("Scale", f"{name} x", f"{name}2") for name in tensors]
    total = [("ADD", "a2 b2", "d", AddOptions()), ("ADD", "c2 d", "y", AddOptions())]
    content = graph_model([*nodes, *total], inputs="x", outputs="y", tensors=tensors)
    assert np.array_equal(run(content, X, scale), np.full(4, 3, np.float32))


def test_strings_are_refused(scale: Registration) -> None:
    text = tensor((4,), "STRING")
    content, ops = scales(2, x=text, y=text), {"Scale": scale}
    made = Interpreter(model_content=content, delegates=[], custom_ops=ops)
    with pytest.raises(NodeError, match="C kernels take no Tensor"):
        made.allocate_tensors()


@pytest.mark.parametrize("wrong", ["ScaleRun", 0, len, True])
def test_only_c_functions_are_taken(library: ctypes.CDLL, wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="expected one or its address"):
        litert_custom_op("Scale", run=wrong, get_output_layouts=library.ScaleLayouts)
