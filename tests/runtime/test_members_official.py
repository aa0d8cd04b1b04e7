"""Every call of the official classes, made of both: the same answer, or the same type of error.

Names with an underscore count, too: programs of others use them. What differs on purpose is in
docs/differences.md; what makes the official interpreter crash is asked of ours alone.
"""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import warnings
from enum import Enum
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as official
import numpy as np
import pytest

import delegraph
from delegraph.errors import ArgumentError, ArgumentTypeError, StateError
from delegraph.schema import tables
from delegraph.schema.enums import DimensionType, Padding
from delegraph.schema.options import AddOptions, GatherOptions
from delegraph.testing import constant, one_op_model, subgraphs_model, tensor
from support.detailed_models import convolution, signatures

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""The official ``Delegate`` has a finalizer that fails where its constructor did."""

BYTES = ["b'/no/x.so'"] if sys.version_info < (3, 14) else []
"""A path as bytes, for which the official error is a mistake of ctypes from Python 3.14 on."""

FLAT = np.ones((1, 4), np.float32)
TWO = np.ones(2, np.float32)


def _sum(*shape: int) -> bytes:
    return one_op_model("ADD", [tensor(shape), tensor(shape)], [tensor(shape)], AddOptions())


def _words(count: int, taken: int) -> bytes:
    inputs = [tensor((count,), "STRING"), tensor((taken,), "INT32", name="at")]
    return one_op_model("GATHER", inputs, [tensor((taken,), "STRING")], GatherOptions())


def _blocks() -> bytes:
    """A constant of [4, 2] stored in blocks of [2, 2], the second of which is there."""
    vector = tables.Int32Vector
    dense = tables.DimensionMetadata(dense_size=2)
    rows = tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=vector(values=np.array([0, 1], np.int32)),
        array_indices=vector(values=np.array([1], np.int32)),
    )
    one = tables.DimensionMetadata(dense_size=1)
    sparsity = tables.SparsityParameters(
        traversal_order=(1, 0, 2, 3), block_map=(0, 1), dim_metadata=(one, rows, dense, dense)
    )
    stored = constant(np.array([5, 6, 7, 8], np.float32))
    made = type(stored)((4, 2), stored.type, data=stored.data, sparsity=sparsity)
    return one_op_model("DENSIFY", [made], [tensor((4, 2))])


def _two_subgraphs() -> bytes:
    sine: Any = ([("SIN", "x", "y")], "x", "y", {})
    return subgraphs_model([sine, sine])


MODELS = {
    "sum": _sum(1, 4),
    "number": _sum(),
    "signatures": signatures(),
    "convolution": convolution(),
    "words": _words(3, 2),
    "no words": _words(0, 0),
    "blocks": _blocks(),
    "two subgraphs": _two_subgraphs(),
}

WRONG = ["'x'", "None", "1.5", "[1]", "b'x'", "2**40", "-1", "99"]
"""Indices that are none."""

INDEXED = [
    "ready().set_tensor({}, FLAT)",
    "ready().get_tensor({})",
    "ready().get_tensor(0, {})",
    "ready().tensor({})()",
    "callable(i.tensor({}))",
    "i.resize_tensor_input({}, [1, 4])",
    "i._get_op_details({})",
    "i._get_tensor_details({}, 0)",
    "i.get_tensor_details({})",
]

VALUES = [
    "np.ones((1, 4))",
    "np.ones((1, 4), np.int32)",
    "[[1.0, 2.0, 3.0, 4.0]]",
    "np.ones(4, np.float32)",
    "np.ones((1, 5), np.float32)",
    "np.zeros((0, 4), np.float32)",
    "np.array([['a'] * 4])",
    "np.array([[None] * 4])",
    "np.arange(4, dtype=np.float32).reshape(1, 4)[:, ::-1]",
    "np.asfortranarray(FLAT)",
    "memoryview(FLAT)",
    "np.ma.ones((1, 4), np.float32)",
    "np.ones((1, 4), np.float16)",
    "np.ones((1, 4), np.complex64)",
    "np.ones((1, 4), 'datetime64[s]')",
    "None",
    "1.5",
    "object()",
]

SHAPES = [
    *("[2, 4]", "[0, 4]", "(1, 4)", "[]", "[[1, 4]]", "[-1, 4]", "[1.7, 4]", "['x', 4]"),
    *("'14'", "None", "3", "[2**31, 4]", "np.array([3, 4])"),
]

SUM = [
    *(call.format(index) for call in INDEXED for index in WRONG),
    *(f"ready().set_tensor(0, {value})" for value in VALUES),
    *(f"(ready().set_tensor(0, {value}), i.get_tensor(0))" for value in VALUES),
    *(f"i.resize_tensor_input(0, {shape}, {strict})" for shape in SHAPES for strict in (0, 1)),
    *(f"i.resize_tensor_input(0, [1, 4], {strict})" for strict in ("'x'", "None", "[1]", "3")),
    "(i.resize_tensor_input(0, [2, 4]), i.get_input_details())",
    "(i.resize_tensor_input(0, [2, 4]), i.allocate_tensors(), i.get_output_details())",
    "(i.resize_tensor_input(0, [2, 4]), i.resize_tensor_input(0, [2, 4], True))",
    "(i.resize_tensor_input(0, [2, 4]), i.resize_tensor_input(0, [1, 4], True))",
    "(i.resize_tensor_input(2, [3, 4]), i.get_output_details())",
    "(i.resize_tensor_input(0, [2, 3]), i.allocate_tensors())",
    "(i.resize_tensor_input(0, []), i.allocate_tensors(), i.get_input_details())",
    "(ready(), i.resize_tensor_input(0, [2, 4]), i.invoke())",
    "(ready(), i.resize_tensor_input(0, [2, 4]), i.get_tensor(0))",
    "(ready(), i.resize_tensor_input(0, [2, 4]), i.set_tensor(0, np.ones((2, 4), np.float32)))",
    *("i.allocate_tensors()", "ready().invoke()", "i.invoke()", "i.get_tensor(2)"),
    *("i.set_tensor(0, FLAT)", "i.tensor(0)()", "i.reset_all_variables()"),
    *("i._safe_to_run()", "ready()._safe_to_run()", "i._ensure_safe()", "i._native_handle() > 0"),
    "(lambda view: i._safe_to_run())(ready().tensor(0)())",
    "(lambda view: i._safe_to_run())(ready().tensor(0)()[:, :1])",
    "(lambda function: i._safe_to_run())(ready().tensor(0))",
    "(lambda view: i._ensure_safe())(ready().tensor(0)())",
    "(lambda view: i.invoke())(ready().tensor(0)())",
    "(lambda view: i.allocate_tensors())(ready().tensor(0)())",
    "(lambda view: i.resize_tensor_input(0, [1, 4]))(ready().tensor(0)())",
    "(lambda view: i.get_input_details())(ready().tensor(0)())",
    "(lambda v: (type(v), v.shape, v.flags.writeable, v.flags.owndata))(ready().tensor(0)())",
    *("i._custom_op_registerers", "i._delegates", "i._signature_defs"),
    *("i._model_content", "i.experimental_compress_quantization_zero_points"),
    "i._experimental_compress_quantization_zero_points",
    "setattr(i, 'experimental_compress_quantization_zero_points', 1)",
    *("copy.deepcopy(i)", "pickle.dumps(i)", "pickle.dumps(i._interpreter)"),
    *("copy.copy(i._interpreter)", "i.get_signature_runner()", "m.SignatureRunner()"),
    *("m.SignatureRunner(i)", "m.SignatureRunner(3, 'x')", "m.SignatureRunner(i, 'x')"),
    *("i.nothing", "i._interpreter.nothing", "i.num_subgraphs()", "i.get_signature_list()"),
    *("i._get_ops_details()", "i.get_tensor_details()"),
]

NUMBER = [
    "i.get_input_details()",
    "(lambda v: (type(v), v.shape, v.flags.writeable))(ready().tensor(0)())",
    "(lambda v: i._safe_to_run())(ready().tensor(0)())",
    "(ready().set_tensor(0, np.float32(2)), i.get_tensor(0), i.tensor(0)())",
    "(ready().set_tensor(0, np.array(2, np.float32)), i.get_tensor(0))",
    "ready().set_tensor(0, 2.0)",
]

RUN = "i.get_signature_runner('first')"
FED = [
    *("a=TWO, b=TWO", "a=TWO", "", "a=TWO, c=TWO", "a=TWO, b=TWO, c=TWO", "a=[1.0, 2.0], b=TWO"),
    *("a=1.0, b=TWO", "a=None, b=TWO", "a='x', b=TWO", "a=np.float32(1), b=TWO"),
    *("a=np.ones(2), b=TWO", "a=np.ones(3, np.float32), b=TWO", "a=memoryview(TWO), b=TWO"),
    *("a=np.ones((2, 2), np.float32), b=TWO", "a=FLAT, b=FLAT"),
]

INDEX_CALLS = ["TensorName", "TensorType", "TensorSize", "TensorSizeSignature"]
INDEX_CALLS += ["TensorQuantization", "TensorQuantizationParameters", "TensorSparsityParameters"]
WRAPPER = [
    *("NumTensors(0)", "NumTensors()", "NumSubgraphs()", "InputIndices()", "OutputIndices()"),
    *("NumNodes()", "NodeName(0)", "NodeName(9)", "NodeName(-1)", "NodeName('a')"),
    *("NodeInputs(0)", "NodeInputs(9)", "NodeInputs('a')", "NodeOutputs(0)", "NodeOutputs(-1)"),
    *("GetSignatureDefs()", "GetSubgraphIndexFromSignature('first')"),
    *("GetSubgraphIndexFromSignature('x')", "ResetVariableTensors()", "interpreter() > 0"),
    *("AllocateTensors()", "AllocateTensors(0)", "AllocateTensors(subgraph_index=0)"),
    *("AllocateTensors(7)", "Invoke()", "Invoke(0)", "Invoke(7)", "SetNumThreads(2)"),
    *("SetNumThreads(0)", "SetNumThreads(-1)", "SetNumThreads('a')", "GetTensor(9)"),
    *("GetTensor(0, 9)", "GetTensor('a')", "SetTensor(0, TWO)", "SetTensor(0, TWO, 0)"),
    *("SetTensor(i=0, value=TWO)", "SetTensor(0, TWO, 5)", "SetTensor('a', TWO)"),
    *("tensor(i._interpreter, 9)", "tensor(None, 0, 7)", "tensor(i._interpreter, 'a')"),
    *("ModifyGraphWithDelegate(0)", "ModifyGraphWithDelegate(None)"),
    *(f"{name}({index}, 0)" for name in INDEX_CALLS for index in (0, 1, 2, 9, -1, "'a'", 0.5)),
    *(f"{name}(0)" for name in INDEX_CALLS),
    *(
        f"ResizeInputTensor({arguments})"
        for arguments in (
            *("0, np.int32([3]), False", "0, np.int32([3]), False, 0", "0, [3], False"),
            *("0, np.array([3]), False", "0, np.int32([3])", "0, np.int32([3]), True"),
            *("i=0, value=np.int32([2]), strict=True", "0, np.int32([[3]]), False"),
            *("0, np.int32([3]), False, 8", "9, np.int32([3]), False", "'a', np.int32([3]), False"),
        )
    ),
]

SIGNATURES = [
    *(f"{RUN}({values})" for values in FED),
    *(f"(lambda r: (r({v}), r.get_input_details(), i.get_output_details()))({RUN})" for v in FED),
    *(f"i.get_signature_runner({key})" for key in ("", "'nope'", "''", "None", "5")),
    *(f"{RUN}.{name}" for name in ("_signature_key", "_signature_def", "_inputs")),
    *(f"{RUN}._subgraph_index", f"list({RUN}._outputs)", f"{RUN}(TWO)"),
    *(f"{RUN}._interpreter is i", f"{RUN}._interpreter_wrapper is i._interpreter"),
    *(f"list(i.{name}())" for name in ("get_signature_list", "_get_full_signature_list")),
    *(f"pickle.dumps({RUN})", f"copy.deepcopy({RUN})", f"{RUN}.get_output_details()"),
    *(f"i._interpreter.{call}" for call in WRAPPER),
    *(f"ready()._interpreter.{call}" for call in WRAPPER),
]

TEXTS = [
    "np.array(['a', 'b', 'c'])",
    "np.array([b'a', b'b', b'c'])",
    "np.array(['a', b'b', 'c'], object)",
    "np.array([1, 2, 3])",
    "np.array(['a', 'b'])",
    "np.array('abc')",
    "np.array([], object)",
    "np.array([], 'S1')",
    "np.array([], 'U1')",
    "np.array(['\\u00e9', '', 'x'])",
    "np.array(['a', 1, 'c'], object)",
    "np.array([b'a\\0b', b'', b'c'], object)",
    "np.array([['a', 'b', 'c']])",
]
WORDS = [
    "i.get_input_details()",
    *(f"(ready().set_tensor(0, {value}), i.get_tensor(0))" for value in TEXTS),
]
ALL_WORDS = (
    "(ready().set_tensor(0, np.array(['x', 'yy', 'z'])), i.set_tensor(1, np.int32([2, 0])), "
)

OPEN = [
    *(f"i.resize_tensor_input(0, {shape}, strict=True)" for shape in ("[2, 8, 8, 3]", "[8, 8, 3]")),
    "i.resize_tensor_input(0, [2, 9, 8, 3], strict=True)",
    "i.resize_tensor_input(0, [-1, 8, 8, 3], strict=True)",
    "i.resize_tensor_input(1, [4, 3, 3, 4])",
    "(i.resize_tensor_input(0, [2, 8, 8, 3]), i.allocate_tensors(), i.get_output_details())",
    *(f"i._interpreter.{name}({index}, 0)" for name in INDEX_CALLS for index in range(3)),
]

CASES = {
    "sum": SUM,
    "number": NUMBER,
    "signatures": SIGNATURES,
    "words": [*WORDS, f"{ALL_WORDS} i.invoke(), i.get_tensor(2))"],
    "no words": WORDS,
    "convolution": OPEN,
    "blocks": ["i.get_tensor_details()", "i._interpreter.TensorSparsityParameters(0, 0)"],
    "two subgraphs": [
        *("i.num_subgraphs()", "i.get_tensor_details(1)", "i._get_tensor_details(0, 1)"),
        *("i._interpreter.NumTensors(1)", "i._interpreter.TensorName(1, 1)"),
        "(i._interpreter.AllocateTensors(1), i._interpreter.SetTensor(0, i._interpreter.GetTensor("
        "0, 1), 1), i._interpreter.Invoke(1))",
    ],
}

MADE = [
    *("m.Interpreter()", "m.Interpreter('none.tflite')", "m.Interpreter(b'none.tflite')"),
    *("m.Interpreter(path)", "m.Interpreter(str(path))", "m.Interpreter(bytes(path))"),
    *("m.Interpreter('')", "m.Interpreter(3)", "m.Interpreter(path, model)"),
    "m.Interpreter(path, None, None, 2, m.OpResolverType.AUTO, 0, 0, 0, 1, 0, 0)",
    *(
        f"m.Interpreter(model_content={content})"
        for content in ("5", "b''", "b'short'", "b'wrong_identifier'", "model[:50]")
    ),
    *(
        f"m.Interpreter(model_content=model, {argument})"
        for argument in (
            *(f"num_threads={n}" for n in ("0", "-1", "4.2", "'2'", "True", "False", "2", "2**31")),
            *(f"experimental_op_resolver_type={t}" for t in ("'test'", "77", "1", "None", "[]")),
            *(f"experimental_delegates={d}" for d in ("[]", "()", "0", "[None]", "[3]", "'x'")),
            *(
                f"experimental_preserve_all_tensors=True, "
                f"experimental_op_resolver_type=m.OpResolverType.{kind}"
                for kind in official.OpResolverType.__members__
            ),
            "experimental_preserve_all_tensors=False",
            *(
                f"experimental_{flag}={value}"
                for flag in ("disable_delegate_clustering", "disable_delegate_node_fusion")
                for value in ("True", "None", "3", "'x'", "[]")
            ),
            "experimental_force_delegate_node_profiling='x'",
            "experimental_default_delegate_latest_features=True",
            "nothing=1",
        )
    ),
    *(
        f"m.Interpreter(model_content=model, experimental_compress_quantization_zero_points={yes})"
        ".experimental_compress_quantization_zero_points"
        for yes in ("True", "1")
    ),
    *(
        f"m.load_delegate({library})"
        for library in (
            *("'/no/x.so'", "'no_x.so'", "Path('/no/x.so')", *BYTES, "path"),
            *("'libm.so.6'", "'libm.so.6', {'a': 1}", "5", "{}"),
        )
    ),
    "[(kind.name, kind.value) for kind in m.OpResolverType]",
    *("repr(m.OpResolverType.AUTO)", "str(m.OpResolverType.BUILTIN)", "m.OpResolverType(9)"),
    *("m.OpResolverType(1).name", "m.OpResolverType.AUTO == 0", "m.OpResolverType['BUILTIN_REF']"),
]


def shown(value: Any) -> Any:
    """Return *value* so that ``==`` compares types and dtypes, too."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.shape, value.tolist()
    if isinstance(value, dict):
        return [(key, shown(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [shown(item) for item in value]
    if isinstance(value, int | float | str | bytes | np.generic | type | None):
        return type(value), value
    return type(value).__name__


def asked(module: Any, call: str, **names: Any) -> tuple[Any, Any, list[type]]:
    """Return what a call gives, the exception that it raises, and the types of its warnings."""
    scope = dict(globals(), m=module, **names)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        answer, error = None, None
        try:
            answer = shown(eval(call, scope))
        except Exception as raised:  # noqa: BLE001 - its type is what is compared
            error = raised
    return answer, error, [warning.category for warning in given]


def compare(call: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    expected, mistake, warned = asked(official, call, **theirs)
    answer, error, warned_here = asked(delegraph, call, **ours)
    assert answer == expected
    assert warned_here == warned
    if mistake is None:
        assert error is None
    else:
        kind = next(t for t in type(mistake).__mro__ if t.__module__ == "builtins")
        assert isinstance(error, kind), f"{error!r} instead of {mistake!r}"


def opened(module: Any, model: str) -> dict[str, Any]:
    """Return an interpreter as *i*, and a function that allocates it before it returns it."""
    kernels = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = module.Interpreter(model_content=MODELS[model], experimental_op_resolver_type=kernels)

    def ready() -> Any:
        made.allocate_tensors()
        return made

    return {"i": made, "ready": ready}


@pytest.mark.parametrize(
    ("model", "call"), [(model, call) for model, calls in CASES.items() for call in calls]
)
def test_a_call_answers_as_the_official_one(model: str, call: str) -> None:
    compare(call, opened(delegraph, model), opened(official, model))


@pytest.mark.parametrize("call", MADE)
def test_what_is_made_is_as_the_official_one(call: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(MODELS["sum"])
    names = {"path": path, "model": MODELS["sum"]}
    compare(call, names, names)
    gc.collect()  # so that finalizers of the official class fail here, not in another test


CRASHES = [
    *(f"i._get_tensor_details(0, {index})" for index in (1, -1, 99)),
    *(f"i._interpreter.NumTensors({index})" for index in (1, -1)),
    *(f"i._interpreter.{name}(0, 9)" for name in INDEX_CALLS),
    *("ready().get_tensor(0)", "ready().tensor(0)()", "ready().get_tensor(2)"),
]
"""Calls that read outside of the official interpreter's memory; strings nobody has set, too."""


@pytest.mark.parametrize("call", CRASHES)
def test_a_call_that_crashes_the_official_one_is_an_argument_error(call: str) -> None:
    with pytest.raises(ArgumentError, match=r"subgraph_index is out of range|no data|data is null"):
        eval(call, dict(globals(), **opened(delegraph, "words")))


def test_strings_without_elements_can_be_read_and_need_not_be_set() -> None:
    with delegraph.Interpreter(model_content=MODELS["no words"]) as interpreter:
        for ready in (lambda: None, interpreter.allocate_tensors, interpreter.invoke):
            ready()
            assert [interpreter.get_tensor(i).shape for i in (0, 2)] == [(0,), (0,)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("part", ["i", "i._interpreter"])
def test_nothing_can_be_copied_that_would_share_memory(copied: Any, part: str) -> None:
    subject = eval(part, opened(delegraph, "sum"))
    with pytest.raises(ArgumentTypeError, match="cannot be copied or pickled: it owns memory and"):
        copied(subject)


def test_each_interpreter_has_a_handle_of_its_own_that_is_no_address() -> None:
    handles = [opened(delegraph, "sum")["i"]._native_handle() for _ in range(3)]
    assert len(set(handles)) == 3
    assert max(handles) < 2**31


def test_the_number_of_threads_can_be_set_later() -> None:
    interpreter = opened(delegraph, "sum")["i"]
    set_threads = interpreter._interpreter.SetNumThreads
    for given, kept in ((2, 2), (0, 1), (-1, -1)):
        set_threads(given)
        assert interpreter.session.options.recommended_num_threads == kept
    with pytest.raises(ArgumentError, match="num_threads should be >= -1, not -2"):
        set_threads(-2)


def test_a_closed_interpreter_has_no_wrapper() -> None:
    interpreter = opened(delegraph, "sum")["i"]
    assert interpreter._interpreter.NumNodes() == 1
    interpreter.close()
    with pytest.raises(StateError, match="closed"):
        _ = interpreter._interpreter
    assert interpreter._delegates == []


@pytest.mark.parametrize("name", official.OpResolverType.__members__)
def test_the_official_type_of_resolver_is_taken_by_its_name(name: str) -> None:
    interpreter = delegraph.Interpreter(
        model_content=MODELS["sum"],
        experimental_op_resolver_type=official.OpResolverType[name],
    )
    assert interpreter.numerics == ("reference" if name == "BUILTIN_REF" else "builtin")


@pytest.mark.parametrize("kind", [Padding.SAME, Enum("OpResolverType", "NEWEST")["NEWEST"]])
def test_other_enumerations_are_no_types_of_resolver(kind: Enum) -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"Unrecognized passed in op resolver type: .*; expected"
    ):
        delegraph.Interpreter(model_content=MODELS["sum"], experimental_op_resolver_type=kind)
