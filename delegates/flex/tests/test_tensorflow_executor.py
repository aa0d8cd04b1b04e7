"""The TensorFlow executor: attributes, memory, state and functions."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import FlexNode, FunctionSignature, NodeEnvironment, Unsupported
from delegraph_flex.node_def import AttrValue, Function, NodeDef

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tensorflow.python.eager import context as eager_context  # noqa: E402

from delegraph_flex.tensorflow_executor import eager_call  # noqa: E402 - needs TensorFlow
from delegraph_flex.tensorflow_executor import executor as executor_module  # noqa: E402
from delegraph_flex.tensorflow_executor.executor import BORROWED_BYTES, TensorFlowExecutor  # noqa: E402
from delegraph_flex.tensorflow_executor.interpreter_state import sweep  # noqa: E402

F32, I32, I64, STRING = TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.STRING
BOOL, RESOURCE, VARIANT = TensorType.BOOL, TensorType.RESOURCE, TensorType.VARIANT
EXECUTOR = TensorFlowExecutor()
tf.constant(0)  # starts TensorFlow, as binding a node does


def step(
    op: str,
    inputs: Sequence[TensorType],
    outputs: Sequence[TensorType],
    around: NodeEnvironment | None = None,
    **attrs: AttrValue,
) -> Any:
    """Return the bound step of a node."""
    node_def = NodeDef(op, attrs, len(inputs))
    return EXECUTOR.bind(
        FlexNode(0, node_def, tuple(inputs), tuple(outputs), around or NodeEnvironment({}))
    )


def leave(result: Any, *types: TensorType) -> Any:
    if len(types) == 1:
        return EXECUTOR.leave(result, types[0])
    return [EXECUTOR.leave(value, type) for value, type in zip(result, types, strict=True)]


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray[Any]:
    """Return zeros in memory that TensorFlow can use in place, within a larger buffer."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 128, np.uint8)
    start = -buffer.__array_interface__["data"][0] % 64
    return buffer[start : start + size].view(dtype).reshape(shape)


@pytest.mark.parametrize("type", ["BOOL", "BFLOAT16", "FLOAT16", "COMPLEX64", "UINT32", "INT8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (200, 300)])
def test_values_of_every_type_and_size_come_back(type: str, shape: tuple[int, ...]) -> None:
    dtype = DataType[type].dtype
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    back = EXECUTOR.leave(EXECUTOR.enter(array, TensorType[type]), TensorType[type])
    assert (back.dtype, back.shape) == (dtype, shape)
    assert np.array_equal(back.astype(np.complex64), array.astype(np.complex64))


@pytest.mark.parametrize("array", [np.array(b"a\0b", object), np.array([[b"", b"\xff\0"]], object)])
def test_strings_are_bytes(array: NDArray[Any]) -> None:
    back = EXECUTOR.leave(EXECUTOR.enter(array, STRING), STRING)
    assert back.shape == array.shape
    assert back.tolist() == array.tolist()


def test_another_thread_may_run_the_interpreter() -> None:
    double = step("AddV2", [F32, F32], [F32], T=DataType.FLOAT32)

    def run(number: float) -> float:
        x = EXECUTOR.enter(np.full(50000, number, np.float32), F32)
        return float(leave(double(x, x), F32)[-1])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(20))) == [2.0 * x for x in range(20)]


def test_graph_mode_of_the_program_around_does_not_matter() -> None:
    upper = step("StringUpper", [STRING], [STRING], encoding=b"")
    with tf.Graph().as_default():
        x = EXECUTOR.enter(np.array([b"a"], object), STRING)
        assert leave(upper(x), STRING).tolist() == [b"A"]


def test_strided_and_read_only_arrays_enter() -> None:
    array = np.arange(40000, dtype=np.float32).reshape(200, 200).T
    array.flags.writeable = False
    assert np.array_equal(EXECUTOR.leave(EXECUTOR.enter(array, F32), F32), array)


def test_small_arrays_are_copied_and_large_ones_borrowed() -> None:
    small, large = aligned((4,)), aligned((BORROWED_BYTES,))
    values = EXECUTOR.enter(small, F32), EXECUTOR.enter(large, F32)
    small[0] = large[0] = 7
    assert [float(value[0]) for value in values] == [0, 7]


def test_what_leaves_is_never_borrowed_memory() -> None:
    large = aligned((BORROWED_BYTES,))
    result = step("Identity", [F32], [F32], T=DataType.FLOAT32)(EXECUTOR.enter(large, F32))
    left = EXECUTOR.leave(result, F32)
    large[0] = 7
    assert left[0] == 0


def test_a_part_of_borrowed_memory_is_copied_before_a_variable_keeps_it() -> None:
    around, large = NodeEnvironment({}), aligned((4, BORROWED_BYTES))
    make = step("VarHandleOp", [], [RESOURCE], around, dtype=DataType.FLOAT32, shape=None)
    split = step("Unpack", [F32], [F32] * 4, T=DataType.FLOAT32, num=4, axis=0)
    assign = step("AssignVariableOp", [RESOURCE, F32], [], around, dtype=DataType.FLOAT32)
    read = step("ReadVariableOp", [RESOURCE], [F32], around, dtype=DataType.FLOAT32)
    parts = split(EXECUTOR.enter(large, F32))
    assign(make(), parts[1])
    large[:] = 7
    assert leave(read(make()), F32).max() == 0


def test_a_list_keeps_its_elements_when_the_interpreter_reuses_their_memory() -> None:
    large = aligned((2, BORROWED_BYTES))
    types = {"element_dtype": DataType.FLOAT32, "shape_type": DataType.INT32}
    shape = EXECUTOR.enter(np.array([BORROWED_BYTES], np.int32), I32)
    make = step("TensorListFromTensor", [F32, I32], [VARIANT], **types)
    get = step("TensorListGetItem", [VARIANT, I32, I32], [F32], element_dtype=DataType.FLOAT32)
    made = make(EXECUTOR.enter(large, F32), shape)
    crossing = EXECUTOR.leave(made, VARIANT)
    assert crossing.shape == ()
    large[:] = 7
    index = EXECUTOR.enter(np.array(1, np.int32), I32)
    assert leave(get(EXECUTOR.enter(crossing, VARIANT), index, shape), F32).max() == 0


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"T": b"x"}, r"attribute 'T' is b'x', of kind string, TensorFlow expects kind type"),
        ({"T": DataType.STRING}, r"attribute 'T' is STRING, TensorFlow expects BFLOAT16 or "),
        ({"N": 2.0}, r"attribute 'N' is 2.0, of kind float, TensorFlow expects kind int"),
        ({"N": True}, r"of kind bool, TensorFlow expects kind int"),
        ({"N": 0}, r"attribute 'N': 0 is its value, TensorFlow expects at least 1"),
        ({"N": 3}, r"AddN has 2 inputs here, TensorFlow expects 3"),
        ({"T": DataType.INT32}, r"input 0 of AddN is FLOAT32, its attributes say INT32"),
    ],
)
def test_attributes_of_the_wrong_kind_are_refused(attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        step("AddN", [F32, F32], [F32], **{"T": DataType.FLOAT32, "N": 2, **attrs})


def test_lists_are_checked_element_by_element() -> None:
    with pytest.raises(
        Unsupported, match=r"of kind list\(float\), TensorFlow expects kind list\(in"
    ):
        step("Squeeze", [F32], [F32], T=DataType.FLOAT32, squeeze_dims=[1.0])
    with pytest.raises(Unsupported, match=r"of kind int, TensorFlow expects kind list\(int\)"):
        step("Squeeze", [F32], [F32], T=DataType.FLOAT32, squeeze_dims=1)


def test_a_missing_attribute_is_named() -> None:
    with pytest.raises(Unsupported, match=r"attribute 'padding' \(string\) is missing, and Conv2D"):
        step("Conv2D", [F32, F32], [F32], T=DataType.FLOAT32, strides=[1, 1, 1, 1])


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"TensorFlow \S+ does not have NoSuchOperator"):
        step("NoSuchOperator", [F32], [F32])


def test_unknown_attributes_are_passed_over_and_missing_ones_have_defaults() -> None:
    squeeze = step(
        "Squeeze", [F32], [F32], T=DataType.FLOAT32, squeeze_dims=[], brand_new=b"attribute"
    )
    assert leave(squeeze(EXECUTOR.enter(np.ones((1, 2, 1), np.float32), F32)), F32).shape == (2,)
    squeeze = step("Squeeze", [F32], [F32], T=DataType.FLOAT32)
    assert leave(squeeze(EXECUTOR.enter(np.ones((1, 2, 1), np.float32), F32)), F32).shape == (2,)


def test_an_attribute_may_be_a_tensor() -> None:
    constant = np.array([1, 2, 3], np.int64)
    make = step("Const", [], [I64], dtype=DataType.INT64, value=constant)
    assert leave(make(), I64).tolist() == [1, 2, 3]


def test_shapes_and_lists_of_shapes() -> None:
    fill = step("EnsureShape", [F32], [F32], T=DataType.FLOAT32, shape=(-1, 2))
    assert leave(fill(EXECUTOR.enter(np.ones((3, 2), np.float32), F32)), F32).shape == (3, 2)
    with pytest.raises(ValueError, match=r"Shape of tensor .*\[3,1\]"):
        fill(EXECUTOR.enter(np.ones((3, 1), np.float32), F32))


def test_quantised_types_are_stored_as_integers() -> None:
    dequantise = step(
        "Dequantize",
        [TensorType.UINT8, F32, F32],
        [F32],
        T=DataType.QUINT8,
        mode=b"MIN_COMBINED",
        dtype=DataType.FLOAT32,
    )
    values = [
        EXECUTOR.enter(array, type)
        for array, type in (
            (np.array([0, 255], np.uint8), TensorType.UINT8),
            (np.float32(-1), F32),
            (np.float32(1), F32),
        )
    ]
    assert leave(dequantise(*values), F32).tolist() == [-1, 1]


def test_errors_are_in_plain_words() -> None:
    multiply = step(
        "MatMul", [F32, F32], [F32], T=DataType.FLOAT32, transpose_a=False, transpose_b=False
    )
    x, y = (EXECUTOR.enter(np.ones(s, np.float32), F32) for s in ((1, 1), (2, 1)))
    with pytest.raises(
        ValueError, match=r"^Matrix size-incompatible: In\[0\]: \[1,1\], .*\[2,1\]$"
    ):
        multiply(x, y)


def test_tensorflow_without_its_private_entry_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_call, "pywrap_tfe", None)
    monkeypatch.setattr(executor_module, "EagerTensor", None)
    x = EXECUTOR.enter(np.array([[3, 1, 2]], np.float32), F32)
    top = step("TopKV2", [F32, I32], [F32, I32], T=DataType.FLOAT32, sorted=True)
    result = top(x, EXECUTOR.enter(np.array(2, np.int32), I32))
    assert [array.tolist() for array in leave(result, F32, I32)] == [[[3, 2]], [[0, 2]]]
    concat = step("ConcatV2", [F32, F32, I32], [F32], T=DataType.FLOAT32, N=2, Tidx=DataType.INT32)
    assert leave(concat(x, x, EXECUTOR.enter(np.array(0, np.int32), I32)), F32).shape == (2, 3)
    total = step("Sum", [F32, I32], [F32], T=DataType.FLOAT32, Tidx=DataType.INT32, keep_dims=True)
    assert leave(total(x, EXECUTOR.enter(np.array([1], np.int32), I32)), F32).tolist() == [[6]]


TABLE = {"key_dtype": DataType.STRING, "value_dtype": DataType.FLOAT32}
KEYS = {"Tin": DataType.STRING, "Tout": DataType.FLOAT32}


def table(around: NodeEnvironment, op: str = "HashTableV2", **attrs: AttrValue) -> Any:
    return step(op, [], [RESOURCE], around, **TABLE, **attrs)


def insert(around: NodeEnvironment, op: str, handle: Any, key: bytes, value: float) -> None:
    put = step(op, [RESOURCE, STRING, F32], [], around, **KEYS)
    put(
        handle,
        EXECUTOR.enter(np.array([key], object), STRING),
        EXECUTOR.enter(np.array([value], np.float32), F32),
    )


def found(around: NodeEnvironment, handle: Any, key: bytes) -> float:
    find = step("LookupTableFindV2", [RESOURCE, STRING, F32], [F32], around, **KEYS)
    result = find(
        handle, EXECUTOR.enter(np.array([key], object), STRING), EXECUTOR.enter(np.float32(-1), F32)
    )
    return float(leave(result, F32)[0])


def test_tables_of_one_name_are_one_table_in_an_interpreter_and_two_in_two() -> None:
    first, second = NodeEnvironment({}), NodeEnvironment({})
    handle = table(first, shared_name=b"t")()
    insert(first, "LookupTableImportV2", handle, b"a", 5)
    same = table(first, shared_name=b"t")()
    assert found(first, same, b"a") == 5
    other = table(second, shared_name=b"t")()
    with pytest.raises(ValueError, match=r"^Table not initialized\.$"):
        found(second, other, b"a")


def test_a_table_without_a_name_is_the_nodes_own_and_keeps_its_contents() -> None:
    around = NodeEnvironment({})
    make, other = (table(around, "MutableHashTableV2") for _ in range(2))
    insert(around, "LookupTableInsertV2", make(), b"a", 5)
    assert found(around, make(), b"a") == 5
    assert found(around, other(), b"a") == -1


def test_resources_go_with_their_interpreter() -> None:
    around = NodeEnvironment({})
    handle = table(around, "MutableHashTableV2", shared_name=b"t")()
    insert(around, "LookupTableInsertV2", handle, b"a", 5)
    around.resources.clear()
    gc.collect()
    with pytest.raises(ValueError, match=r"does not exist|not found"):
        found(NodeEnvironment({}), handle, b"a")


def test_a_handle_crosses_partitions_as_an_object() -> None:
    around = NodeEnvironment({})
    handle = table(around, "MutableHashTableV2", shared_name=b"t")()
    array = EXECUTOR.leave(handle, RESOURCE)
    assert (array.dtype, array.shape) == (object, ())
    insert(around, "LookupTableInsertV2", EXECUTOR.enter(array, RESOURCE), b"a", 5)
    assert found(around, EXECUTOR.enter(array.copy(), RESOURCE), b"a") == 5


def test_a_seeded_generator_has_its_state_for_itself() -> None:
    attrs: dict[str, AttrValue] = {"seed": 3, "seed2": 4, "dtype": DataType.FLOAT32}
    shape = EXECUTOR.enter(np.array([3], np.int32), I32)
    steps = [step("RandomUniform", [I32], [F32], T=DataType.INT32, **attrs) for _ in range(2)]
    first = [leave(steps[0](shape), F32).tolist() for _ in range(3)]
    second = [leave(steps[1](shape), F32).tolist() for _ in range(3)]
    assert first == second
    assert first[0] != first[1]


def doubling(around_type: TensorType = I64) -> NodeEnvironment:
    """Return node_environment with a function ``f`` that doubles its argument and adds another."""

    def call(name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        assert name == "f"
        if arrays[0] == 13:
            raise RuntimeError("thirteen brings bad luck")
        return [2 * arrays[0] + arrays[1]]

    def functions(name: str) -> FunctionSignature:
        return {"f": FunctionSignature((I64, I64), ((), ()), (I64,), ((),))}[name]

    return NodeEnvironment({}, call, functions)


def call_through(around: NodeEnvironment, value: int) -> Any:
    run = step(
        "StatefulPartitionedCall",
        [I64, I64],
        [I64],
        around,
        f=Function("f"),
        Tin=[DataType.INT64] * 2,
        Tout=[DataType.INT64],
    )
    return leave(run(*(EXECUTOR.enter(np.int64(x), I64) for x in (value, 1))), I64)


def test_a_function_attribute_runs_the_subgraph_of_that_name() -> None:
    assert call_through(doubling(), 4) == 9


def test_functions_of_one_name_in_two_models_do_not_meet() -> None:
    first, second = doubling(), doubling()
    second = NodeEnvironment({}, lambda name, arrays: [arrays[0]], first.functions)
    assert [int(call_through(around, 4)) for around in (first, second, first)] == [9, 4, 9]


def test_what_a_function_raises_comes_out_as_it_is() -> None:
    around = doubling()
    with pytest.raises(RuntimeError, match=r"^thirteen brings bad luck$"):
        call_through(around, 13)
    assert call_through(around, 4) == 9


def test_a_function_that_the_model_lacks_is_named() -> None:
    with pytest.raises(Unsupported, match=r"function 'g': the model has no subgraph of that name"):
        step("PartitionedCall", [], [], doubling(), f=Function("g"), Tin=[], Tout=[])


def test_a_dataset_maps_a_function_with_captured_values() -> None:
    around = doubling()
    shapes: dict[str, AttrValue] = {"output_types": [DataType.INT64], "output_shapes": [()]}
    numbers = step("RangeDataset", [I64] * 3, [VARIANT], **shapes)
    dataset = numbers(*(EXECUTOR.enter(np.int64(x), I64) for x in (0, 4, 1)))
    mapped = step(
        "MapDataset", [VARIANT, I64], [VARIANT], around, f=Function("f"),
        Targuments=[DataType.INT64], use_inter_op_parallelism=True, **shapes,
    )  # fmt: skip
    dataset = mapped(dataset, EXECUTOR.enter(np.int64(1), I64))
    add = step(
        "ReduceDataset", [VARIANT, I64], [I64], around, f=Function("f"), Targuments=[],
        Tstate=[DataType.INT64], use_inter_op_parallelism=False, **shapes,
    )  # fmt: skip
    # 0, then 2 * s + x for x in 1, 3, 5, 7
    assert leave(add(dataset, EXECUTOR.enter(np.int64(0), I64)), I64) == 37


def test_a_function_may_call_another_while_a_dataset_calls_it_from_several_threads() -> None:
    around: NodeEnvironment
    shapes: dict[str, AttrValue] = {"output_types": [DataType.INT64], "output_shapes": [()]}
    running: list[str] = []

    def call(name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        assert name not in running
        running.append(name)
        if name == "outer":
            result = inner(EXECUTOR.enter(arrays[0], I64))
            arrays = [leave(result, I64)]
        running.remove(name)
        return [arrays[0] + 1]

    around = NodeEnvironment({}, call, lambda _: FunctionSignature((I64,), ((),), (I64,), ((),)))
    types: dict[str, AttrValue] = {"Tin": [DataType.INT64], "Tout": [DataType.INT64]}
    inner = step("StatefulPartitionedCall", [I64], [I64], around, f=Function("inner"), **types)
    numbers = step("RangeDataset", [I64] * 3, [VARIANT], **shapes)
    dataset = numbers(*(EXECUTOR.enter(np.int64(x), I64) for x in (0, 20, 1)))
    mapped = step(
        "ParallelMapDatasetV2", [VARIANT, I64], [VARIANT], around, f=Function("outer"),
        Targuments=[], **shapes,
    )(dataset, EXECUTOR.enter(np.int64(4), I64))  # fmt: skip
    last = step(
        "BatchDatasetV2", [VARIANT, I64, TensorType.BOOL], [VARIANT],
        output_types=[DataType.INT64], output_shapes=[(-1,)],
    )(mapped, EXECUTOR.enter(np.int64(20), I64), EXECUTOR.enter(np.True_, BOOL))  # fmt: skip
    single = step(
        "DatasetToSingleElement", [VARIANT], [I64],
        output_types=[DataType.INT64], output_shapes=[(-1,)],
    )  # fmt: skip
    assert leave(single(last), I64).tolist() == list(range(2, 22))


def test_control_flow_operators_run_functions() -> None:
    signatures = {
        "is_small": FunctionSignature((I64,), ((),), (BOOL,), ((),)),
        "double": FunctionSignature((I64,), ((),), (I64,), ((),)),
        "negate": FunctionSignature((I64,), ((),), (I64,), ((),)),
    }
    bodies = {"is_small": lambda x: x < 100, "double": lambda x: 2 * x, "negate": lambda x: -x}
    around = NodeEnvironment(
        {}, lambda name, arrays: [np.asarray(bodies[name](arrays[0]))], signatures.__getitem__
    )
    loop = step(
        "StatelessWhile", [I64], [I64], around, T=[DataType.INT64], cond=Function("is_small"),
        body=Function("double"), output_shapes=[()], parallel_iterations=10,
    )  # fmt: skip
    assert leave(loop(EXECUTOR.enter(np.int64(3), I64)), I64) == 192
    branch = step(
        "If", [BOOL, I64], [I64], around, Tcond=DataType.BOOL, Tin=[DataType.INT64],
        Tout=[DataType.INT64], then_branch=Function("double"), else_branch=Function("negate"),
    )  # fmt: skip
    x = EXECUTOR.enter(np.int64(3), I64)
    flags = (EXECUTOR.enter(np.bool_(flag), BOOL) for flag in (True, False))
    assert [int(leave(branch(flag, x), I64)) for flag in flags] == [6, -3]


def test_a_function_takes_and_gives_handles() -> None:
    def call(name: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        values = [EXECUTOR.enter(arrays[0], RESOURCE), EXECUTOR.enter(arrays[1], VARIANT)]
        insert(around, "LookupTableInsertV2", values[0], b"from inside", 3)
        return [EXECUTOR.leave(values[1], VARIANT)]

    signature = FunctionSignature((RESOURCE, VARIANT), ((), ()), (VARIANT,), ((),))
    around = NodeEnvironment({}, call, lambda _: signature)
    handle = table(around, "MutableHashTableV2", shared_name=b"t")()
    types = {"element_dtype": DataType.FLOAT32, "shape_type": DataType.INT32}
    scalar = EXECUTOR.enter(np.array([], np.int32), I32)
    empty = step("EmptyTensorList", [I32, I32], [VARIANT], **types)
    tensors = empty(scalar, EXECUTOR.enter(np.int32(9), I32))
    run = step(
        "PartitionedCall", [RESOURCE, VARIANT], [VARIANT], around, f=Function("f"),
        Tin=[DataType.RESOURCE, DataType.VARIANT], Tout=[DataType.VARIANT],
    )  # fmt: skip
    length = step("TensorListLength", [VARIANT], [I32])
    assert leave(length(run(handle, tensors)), I32) == 0
    assert found(around, handle, b"from inside") == 3


def test_an_attribute_may_list_functions() -> None:
    around = NodeEnvironment(
        {},
        lambda name, arrays: [arrays[0] + int(name[-1])],
        lambda _: FunctionSignature((I64,), ((),), (I64,), ((),)),
    )
    case = step(
        "StatelessCase", [I32, I64], [I64], around, Tin=[DataType.INT64], Tout=[DataType.INT64],
        branches=[Function("add1"), Function("add2")], output_shapes=[()],
    )  # fmt: skip
    x = EXECUTOR.enter(np.int64(10), I64)
    chosen = (EXECUTOR.enter(np.int32(i), I32) for i in (0, 1))
    assert [int(leave(case(i, x), I64)) for i in chosen] == [11, 12]


def test_threads_of_a_program_that_uses_tensorflow_stay_as_they_are() -> None:
    before = tf.config.threading.get_intra_op_parallelism_threads()
    step("Neg", [F32], [F32], NodeEnvironment({}, num_threads=3), T=DataType.FLOAT32)
    assert tf.config.threading.get_intra_op_parallelism_threads() == before


def test_functions_do_not_keep_their_interpreter() -> None:
    around = doubling()
    assert call_through(around, 4) == 9
    state = weakref.ref(around.resources["flex.tensorflow"])
    names = state().function_names.copy()
    del around
    gc.collect()
    assert state() is None
    sweep()
    assert not any(eager_context.context().has_function(name) for name in names)
