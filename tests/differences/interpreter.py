"""Checks of the section Interpreter."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import numpy as np

from delegraph import Interpreter
from delegraph.schema import tables
from delegraph.schema.enums import DimensionType
from delegraph.schema.options import AddOptions, GatherOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from differences.difference import Sides, attempt, both, difference, in_a_child

SUM = one_op_model("ADD", [tensor((4,)), tensor((4,))], [tensor((4,))], AddOptions())
WORD = one_op_model(
    "EXPAND_DIMS", [tensor((), "STRING"), constant(np.int32(0))], [tensor((1,), "STRING")]
)
LITERT = "ai_edge_litert.interpreter"


def words(count: int) -> bytes:
    """Return a model that copies *count* strings."""
    inputs = [tensor((count,), "STRING"), tensor((count,), "INT32")]
    return one_op_model("GATHER", inputs, [tensor((count,), "STRING")], GatherOptions())


def asked(call: str, model: bytes = SUM) -> Sides:
    """Return the value of an expression of the interpreter *i*; LiteRT's from a child process."""
    return answer("delegraph", call, model), in_a_child(answer, LITERT, call, model)


def answer(module: str, call: str, model: bytes) -> Any:
    """Return the result of *call* on an allocated interpreter, or the type of its error."""
    official = import_module(module)
    kernels = official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = official.Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    made.allocate_tensors()
    names = {"i": made, "m": official, "model": model, "np": np, "copy": copy}
    names["other"] = import_module
    return attempt(lambda: eval(call, names))


@difference("a-subgraph-that-is-none")
def _() -> list[Sides]:
    calls = (
        "_get_tensor_details(0, 9)",
        "_interpreter.NumTensors(9)",
        "_interpreter.TensorName(0, 9)",
    )
    return [asked(f"i.{call}") for call in calls]


@difference("constant-inputs-that-nodes-have-read")
def _() -> Sides:
    model = graph_model(
        [("RESHAPE", "x shape", "y")],
        inputs="x shape",
        outputs="y",
        tensors={"x": tensor((2, 3)), "shape": constant(np.int32([3, 2])), "y": tensor((3, 2))},
    )
    values = "i.set_tensor(0, np.ones((2, 3), np.float32)), i.set_tensor(1, np.int32([6, 1]))"
    return asked(f"({values}, i.invoke(), i.get_tensor(2))[-1]", model)


@difference("axis-of-a-list-of-scales")
def _() -> Sides:
    bias = constant(np.ones(3, np.int32), scale=[1.0, 1.0, 1.0], axis=3)
    x = tensor((1, 3), "INT32")
    model = one_op_model("ADD", [x, bias], [tensor((1, 3), "INT32")], AddOptions())
    return both(model, [np.zeros((1, 3), np.int32)])


@difference("base-of-a-view")
def _() -> Sides:
    return asked("i.tensor(0)().base is i._interpreter")


@difference("byte-order")
def _() -> Sides:
    other = "np.arange(4, dtype=np.float32).astype(np.dtype(np.float32).newbyteorder())"
    return asked(f"(i.set_tensor(0, {other}), i.get_tensor(0))[1]")


@difference("copies")
def _() -> Sides:
    return asked("copy.copy(i)._interpreter is i._interpreter")


@difference("delegate-class")
def _() -> Sides:
    return asked("m.Delegate('/no/such/library.so')")


@difference("lists-of-strings")
def _() -> Sides:
    return asked("(i.set_tensor(0, ['a', 'b']), i.get_tensor(0))[1].tolist()", words(2))


@difference("memory-limit")
def _() -> Sides:
    from ai_edge_litert.interpreter import Interpreter as LiteRt

    large = [tensor((1 << 30,), "INT8") for _ in range(2)]
    model = one_op_model("EXPAND_DIMS", [large[0], constant(np.int32(0))], [large[1]])
    sides = Interpreter(model_content=model), LiteRt(model_content=model)
    ours, theirs = (attempt(side.allocate_tensors) for side in sides)
    return ours, theirs


@difference("metrics")
def _() -> Sides:
    return asked("hasattr(i, '_metrics')")


@difference("model-content")
def _() -> list[Sides]:
    return [
        asked(f"m.Interpreter(model_content={kind}(model)).num_subgraphs()")
        for kind in ("bytearray", "memoryview")
    ]


@difference("name-of-no-delegate")
def _() -> Sides:
    return asked("m.load_delegate('no_such_delegate')")


@difference("native-handle")
def _() -> Sides:
    return asked("i._native_handle() < 4096")  # no address is


@difference("negative-number-of-threads")
def _() -> Sides:
    return asked("i._interpreter.SetNumThreads(-2)")


@difference("number-as-an-index")
def _() -> Sides:
    return asked("i.resize_tensor_input(np.float32(1.5), [4])")


@difference("references-to-the-wrapper")
def _() -> list[Sides]:
    calls = "i.allocate_tensors()", "i.invoke()", "i.resize_tensor_input(0, [4])"
    return [asked(f"(lambda held: {call})(i._interpreter)") for call in calls]


@difference("single-strings")
def _() -> list[Sides]:
    values = "np.array('abc')", "np.array(b'abc', object)"
    return [asked(f"(i.set_tensor(0, {x}), i.get_tensor(0).item())[1]", WORD) for x in values]


@difference("strings-nobody-has-set")
def _() -> list[Sides]:
    calls = "i.get_tensor(0)", "i.get_tensor(2)", "i.tensor(0)()", "i.tensor(2)()"
    return [asked(f"{call}.shape", words(count)) for call in calls for count in (2, 0)]


@difference("strings-without-elements")
def _() -> Sides:
    return asked("(i.invoke(), i.get_tensor(2).shape)", words(0))


@difference("type-of-resolver")
def _() -> Sides:
    made = "m.Interpreter(None, model, None, 1, other({!r}).OpResolverType.BUILTIN) is not None"
    ours = answer("delegraph", made.format(LITERT), SUM)
    return ours, in_a_child(answer, LITERT, made.format("delegraph"), SUM)


@difference("view-of-a-sparse-constant")
def _() -> Sides:
    vector = tables.Int32Vector
    rows = tables.DimensionMetadata(dense_size=2)
    columns = tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=vector(values=np.array([0, 1, 3], np.int32)),
        array_indices=vector(values=np.array([2, 0, 1], np.int32)),
    )
    sparsity = tables.SparsityParameters(traversal_order=(0, 1), dim_metadata=(rows, columns))
    stored = constant(np.array([5, 6, 7], np.float32))
    made = type(stored)((2, 3), stored.type, data=stored.data, sparsity=sparsity)
    return asked("i.tensor(0)().shape", one_op_model("DENSIFY", [made], [tensor((2, 3))]))
