"""Reading and writing tensors as the official Python interpreter does."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter

from delegraph import Interpreter
from delegraph.errors import ArgumentError, ResizeError, StateError
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.runtime.tensor_access import (
    MemoryViews,
    read_tensor,
    require_resizable,
    write_tensor,
)
from delegraph.schema.enums import TensorType
from delegraph.schema.options import StridedSliceOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.testing.operator_case import fed, texts
from support.agreement import model_and_arrays
from support.by_name import ByName


def first_element(values):
    """Return the model that takes the first element of a vector."""
    places = [constant(np.int32([i])) for i in (0, 1, 1)]
    options = StridedSliceOptions(shrink_axis_mask=1)
    x = fed(values)
    model, _ = model_and_arrays(
        "STRIDED_SLICE", [x, *places], [x.definition.type.name], options, version=5
    )
    return model


@pytest.mark.parametrize("values", [texts(b"flow\0", b""), np.float32([3, 4])], ids=["text", "f4"])
@pytest.mark.parametrize("interpreter_class", [Interpreter, OfficialInterpreter])
def test_a_string_on_its_own_is_an_array_and_a_number_is_not(interpreter_class, values):
    interpreter = interpreter_class(model_content=first_element(values))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert isinstance(y, np.ndarray) == (values.dtype == object)
    assert np.shape(y) == ()
    assert np.asarray(y, values.dtype).item() == values[0]


def test_tensors_of_a_subgraph_may_be_lent_other_memory():
    model, (x,) = model_and_arrays("NEG", [fed(np.float32([3, 4]))], ["FLOAT32"])
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    subgraph, y = interpreter.subgraph(), np.empty(2, np.float32)
    subgraph.tensors[subgraph.inputs[0]].data = x
    subgraph.tensors[subgraph.outputs[0]].data = y
    interpreter.invoke()
    assert y.tolist() == [-3, -4]
    assert subgraph.readable(subgraph.outputs[0]).data is y


@pytest.mark.parametrize("index", [-1, 1])
def test_a_subgraph_that_is_not_there_is_an_error(index):
    interpreter = Interpreter(model_content=first_element(np.float32([1])))
    with pytest.raises(ValueError, match=f"out of range: {index} for the model, which has 1 sub"):
        interpreter.subgraph(index)


def made(type="FLOAT32", shape=(2, 3), **more):
    """Return a tensor as an interpreter has it before any memory is there."""
    return Tensor(4, TensorType[type], shape, name="t", **more)


def test_a_value_has_the_dtype_and_shape_of_its_tensor():
    target = made()
    target.data = np.zeros((2, 3), np.float32)
    write_tensor(target, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert target.data.tolist() == [[0, 1, 2], [3, 4, 5]]
    for value, message in [
        (np.zeros((2, 3)), "value of type FLOAT64 but expected type FLOAT32 for input 4"),
        (np.zeros((3,), np.float32), "Got 1 but expected 2 for input 4, name: t"),
        (np.zeros((2, 4), np.float32), "Got 4 but expected 3 for dimension 1 of input 4"),
        (np.zeros((1, 4), np.float32), "Got 1 but expected 2 for dimension 0 of input 4"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            write_tensor(target, value)


def test_a_tensor_without_memory_and_a_constant_are_not_written():
    with pytest.raises(ArgumentError, match="unallocated"):
        write_tensor(made(), np.zeros((2, 3), np.float32))
    fixed = made()
    fixed.data = np.zeros((2, 3), np.float32)
    fixed.data.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"tensor 4 \('t'\) is constant"):
        write_tensor(fixed, np.zeros((2, 3), np.float32))


def test_packed_integers_are_written_and_read_unpacked():
    packed = made("INT4", (3,))
    packed.data = np.zeros(2, np.uint8)
    values = np.array([-8, 7, -1], packed.dtype)
    write_tensor(packed, values)
    assert packed.data.tolist() == [0x78, 0x0F]
    assert read_tensor(packed).tolist() == values.tolist()


def test_a_string_without_dimensions_keeps_zeros_at_its_end():
    """The official wrapper copies all bytes of an array of bytes that has no dimensions."""
    words = made("STRING", ())
    write_tensor(words, np.array(b"abcd" + bytes(16)))
    assert read_tensor(words).item() == b"abcd" + bytes(16)


def test_strings_are_kept_as_bytes():
    words = made("STRING", (2,))
    write_tensor(words, np.array(["é", b"b"], object))
    assert words.data.tolist() == ["é".encode(), b"b"]
    write_tensor(words, np.array(["u", "v"]))
    assert read_tensor(words).tolist() == [b"u", b"v"]
    write_tensor(words, np.array([b"x", b"y"]))
    assert read_tensor(words).tolist() == [b"x", b"y"]
    for value, message in [
        (np.array(["a", 1], object), "element 1 is int; strings are str or bytes"),
        (np.zeros(2), "value of type FLOAT64 but expected type STRING for input 4"),
        (np.array(["a", "b", "c"]), "Got 3 but expected 2 for dimension 0"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            write_tensor(words, value)
    with pytest.raises(ArgumentError, match=r"a RESOURCE tensor cannot be set \('t'\)"):
        write_tensor(made("RESOURCE", ()), np.array("a"))


def test_what_is_read_is_a_copy():
    tensor = made()
    tensor.data = np.zeros((2, 3), np.float32)
    read_tensor(tensor)[0, 0] = 1
    assert not tensor.data.any()


def test_a_tensor_without_data_says_whether_allocating_helps():
    for kind, allocation, message in [
        ("FLOAT32", AllocationType.ARENA_RW, r"Run allocate_tensors\(\) first"),
        ("FLOAT32", AllocationType.NONE, r"tensor 4 \('t'\) holds no data"),
        ("STRING", AllocationType.ARENA_RW, r"tensor 4 \('t'\) holds no data"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            read_tensor(made(kind, allocation_type=allocation))


def test_only_open_dimensions_may_change_in_a_strict_resize():
    open_ = made(shape_signature=(-1, 3))
    require_resizable(open_, [7, 3])
    for shape, message in (
        (
            [7, 4],
            r"dimension 1 of tensor 4 with value 3 to 4\. .* only allows .* unknown dimensions",
        ),
        ([7], r"tensor 4 with 2 dimensions to 1\. .* unknown dimensions identified by -1"),
        ([7, 3, 1], r"tensor 4 with 2 dimensions to 3\. .*'t' is declared \[-1, 3\]"),
    ):
        with pytest.raises(ResizeError, match=message):
            require_resizable(open_, shape)


def test_a_packed_constant_cannot_be_set() -> None:
    tensor = Tensor(0, TensorType.INT4, (2,), name="c", allocation_type=AllocationType.MMAP_RO)
    tensor.data = np.array([0x11], np.uint8)
    tensor.data.flags.writeable = False
    with pytest.raises(ArgumentError, match="is constant"):
        write_tensor(tensor, np.ones(2, np.int8))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((1, 4), np.float64), "Got value of type FLOAT64 but expected type FLOAT32"),
        (np.ones((4, 1), np.float32), "Dimension mismatch"),
    ],
)
def test_an_input_that_was_set_before_is_checked_as_at_first(value, message):
    model = one_op_model("SIN", [tensor((1, 4))], [tensor((1, 4))])
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    (index,) = (details["index"] for details in interpreter.get_input_details())
    refusals = []
    for _ in range(3):
        with pytest.raises(ArgumentError, match=message) as refused:
            interpreter.set_tensor(index, value)
        refusals.append(str(refused.value))
        interpreter.set_tensor(index, np.full((1, 4), 7, np.float32))
        assert interpreter.get_tensor(index).tolist() == [[7, 7, 7, 7]]
    assert len(set(refusals)) == 1
    interpreter.resize_tensor_input(index, [1, 2])
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, np.full((1, 2), 8, np.float32))
    assert interpreter.get_tensor(index).tolist() == [[8, 8]]


def test_a_view_is_alive_until_its_last_slice_is_gone() -> None:
    views, data = MemoryViews(), np.zeros(4)
    views.require_none()
    first, second = views.export(data), views.export(data)
    part = first[1:]
    part[0] = 7
    assert data.tolist() == [0, 7, 0, 0]
    del first, second
    with pytest.raises(StateError, match="at least 1 reference to internal data"):
        views.require_none()
    del part
    views.require_none()


def test_a_view_keeps_its_memory() -> None:
    data = np.zeros(4)
    memory = weakref.ref(data)
    view = MemoryViews().export(data)
    del data
    gc.collect()
    assert memory() is not None
    assert view.tolist() == [0, 0, 0, 0]


def test_a_tensor_inside_a_partition_is_told_how_to_be_kept() -> None:
    model = graph_model([("SIN", "x", "h"), ("NEG", "h", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model, delegates=[ByName("SIN", "NEG")])
    null = r"^Tensor data is null\. Run allocate_tensors\(\) first"
    with pytest.raises(ArgumentError, match=f"{null}$"):
        Interpreter(model_content=model, delegates=[]).get_tensor(1)
    interpreter.allocate_tensors()
    for read in (interpreter.get_tensor, lambda index: interpreter.tensor(index)()):
        with pytest.raises(ArgumentError, match=f"{null}; .* experimental_preserve_all_tensors"):
            read(1)
