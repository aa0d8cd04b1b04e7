from __future__ import annotations

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from support.compiled_models import ONES, adding, aligned, buffers, negating, reshaping

COPIED = [
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    np.int32,
    np.int8,
    np.uint8,
    np.bool_,
]
REFUSED = [
    np.int16,
    np.int64,
    np.uint16,
    np.uint32,
    np.float64,
    np.complex64,
    ml_dtypes.int4,
    np.dtype(">f4"),
]


def buffer_of(api: Any) -> Any:
    """A float32 buffer of shape [1, 4]."""
    return api.CompiledModel.from_buffer(negating()).create_input_buffers(0)[0]


@pytest.mark.parametrize("dtype", COPIED, ids=lambda dtype: np.dtype(dtype).name)
def test_these_dtypes_are_written_read_and_shared(api: Any, dtype: Any) -> None:
    values = np.array([0, 1, 1]).astype(dtype)
    buffer = buffer_of(api)
    buffer.write(values)
    for as_given in (dtype, np.dtype(dtype), np.dtype(dtype).name):
        read = buffer.read(3, as_given)
        assert read.dtype == np.dtype(dtype)
        assert_array_equal(read, values)
    shared = api.TensorBuffer.create_from_host_memory(values)
    assert shared.get_tensor_details() == {"dtype": np.dtype(dtype).name, "shape": [3]}
    assert_array_equal(shared.read(3, dtype), values)


@pytest.mark.parametrize("dtype", REFUSED, ids=str)
def test_other_dtypes_are_not(api: Any, dtype: Any) -> None:
    buffer, values = buffer_of(api), np.zeros(1, dtype)
    for call in (
        lambda: buffer.write(values),
        lambda: buffer.read(1, dtype),
        lambda: api.TensorBuffer.create_from_host_memory(values),
    ):
        with pytest.raises(ValueError, match="Unsupported dtype: "):
            call()


@pytest.mark.parametrize("dtype", ["nope", None, object, float, int, "S1", 3, str])
def test_what_names_no_such_dtype_is_refused(api: Any, dtype: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported dtype: "):
        buffer_of(api).read(1, dtype)


@pytest.mark.parametrize("dtype", [[], {}])
def test_what_cannot_be_hashed_is_a_type_error(api: Any, dtype: Any) -> None:
    with pytest.raises(TypeError):
        buffer_of(api).read(1, dtype)


@pytest.mark.parametrize("value", [[1.0], 1.0, None, "x", np.float32(3)], ids=repr)
def test_only_arrays_are_written_and_shared(api: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="data_array must be a NumPy array"):
        buffer_of(api).write(value)
    with pytest.raises(ValueError, match="data_array must be a NumPy array"):
        api.TensorBuffer.create_from_host_memory(value)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (np.arange(4, dtype=np.float32), [0, 1, 2, 3]),
        (np.arange(4, dtype=np.float32).reshape(4, 1), [0, 1, 2, 3]),
        (np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2)), [0, 1, 2, 3]),
        (np.arange(8, dtype=np.float32)[::2], [0, 2, 4, 6]),
        (np.array(7, np.float32), [7, 1, 1, 1]),
        (np.zeros(0, np.float32), [1, 1, 1, 1]),
        (np.array([2, 3], np.float32), [2, 3, 1, 1]),
        (np.ones((1, 4), np.float32).view(np.int32), [1, 1, 1, 1]),
        (np.frombuffer(np.float32(5).tobytes(), np.uint8), [5, 1, 1, 1]),
    ],
)
def test_a_write_copies_bytes_to_the_start(api: Any, value: Any, result: list[int]) -> None:
    buffer = buffer_of(api)
    buffer.write(ONES)
    for _ in range(2):
        buffer.write(value)
        assert buffer.read(4, np.float32).tolist() == result


@pytest.mark.parametrize("value", [np.zeros((1, 5), np.float32), np.zeros(17, np.uint8)])
def test_a_write_beyond_the_buffer_is_refused(api: Any, value: Any) -> None:
    with pytest.raises(RuntimeError, match="source buffer is larger than the tensor buffer"):
        buffer_of(api).write(value)


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        (4, [4]),
        (2, [2]),
        (0, [0]),
        ((2, 2), [2, 2]),
        ([1, 4], [1, 4]),
        ((), []),
        (np.int64(3), [3]),
    ],
)
def test_a_read_returns_a_new_array_of_a_length_or_shape(
    api: Any, shape: Any, result: list[int]
) -> None:
    buffer = buffer_of(api)
    buffer.write(ONES)
    first, second = buffer.read(shape, np.float32), buffer.read(shape, np.float32)
    assert list(first.shape) == list(second.shape) == result
    first[...] = 0
    assert (second == 1).all()
    assert (buffer.read(shape, np.float32) == 1).all()


def test_a_read_sees_bytes(api: Any) -> None:
    buffer = buffer_of(api)
    buffer.write(ONES)
    assert buffer.read(2, np.int32).tolist() == [0x3F800000] * 2
    assert buffer.read(4, np.uint8).tolist() == [0, 0, 128, 63]


@pytest.mark.parametrize(
    ("shape", "error"),
    [(5, RuntimeError), (-1, ValueError), (None, TypeError), ("4", TypeError), (4.0, TypeError)],
)
def test_a_wrong_length_is_refused(api: Any, shape: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        buffer_of(api).read(shape, np.float32)


def test_a_read_beyond_the_buffer_says_so(api: Any) -> None:
    with pytest.raises(RuntimeError, match="destination buffer is larger than the tensor buffer"):
        buffer_of(api).read(5, np.float32)


@pytest.mark.parametrize(
    ("dtype", "named"),
    [
        *((name, name.lower()) for name in ("FLOAT32", "FLOAT16", "BFLOAT16", "FLOAT64", "BOOL")),
        *((name, name.lower()) for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16")),
        ("UINT32", "uint32"),
        ("UINT64", "unknown"),
        ("COMPLEX64", "unknown"),
    ],
)
def test_details_name_the_type_and_other_types_are_bytes(api: Any, dtype: str, named: str) -> None:
    model = api.CompiledModel.from_buffer(reshaping(dtype))
    values = np.array([0, 1, 1, 0, 1, 0], np.uint8)
    (given,), (result,) = buffers(model, values)
    assert given.get_tensor_details() == {"dtype": named, "shape": [2, 3]}
    assert result.get_tensor_details() == {"dtype": named, "shape": [6]}
    model.run_by_index(0, [given], [result])
    assert_array_equal(result.read(6, np.uint8), values)


def test_host_memory_is_shared_where_it_is_aligned(api: Any) -> None:
    array = aligned(4)
    buffer = api.TensorBuffer.create_from_host_memory(array)
    buffer.write(np.arange(4, dtype=np.float32))
    assert array.tolist() == [0, 1, 2, 3]
    array[0] = 9
    assert buffer.read(1, np.float32).tolist() == [9]
    buffer.destroy()
    assert array.tolist() == [9, 1, 2, 3]


def test_host_memory_is_copied_elsewhere(api: Any) -> None:
    array = aligned(4, offset=4)
    buffer = api.TensorBuffer.create_from_host_memory(array)
    buffer.write(ONES)
    assert array.tolist() == [0, 0, 0, 0]
    assert buffer.read(4, np.float32).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("shape", [(2, 3), (6,), (0,), (2, 0)])
def test_host_memory_has_one_dimension(api: Any, shape: tuple[int, ...]) -> None:
    buffer = api.TensorBuffer.create_from_host_memory(np.zeros(shape, np.float32))
    assert buffer.get_tensor_details()["shape"] == [int(np.prod(shape))]


@pytest.mark.parametrize("array", [np.zeros(8)[::2], np.zeros((4, 4)).T, np.zeros((1, 4))[:, ::-1]])
def test_host_memory_has_no_gaps(api: Any, array: Any) -> None:
    with pytest.raises(ValueError, match=r"C-contiguous|Unsupported"):
        api.TensorBuffer.create_from_host_memory(array)
    with pytest.raises(ValueError, match="C-contiguous"):
        api.TensorBuffer.create_from_host_memory(np.zeros((4, 4), np.float32)[:, ::2])


def test_host_memory_lives_as_long_as_the_buffer(api: Any) -> None:
    buffer = api.TensorBuffer.create_from_host_memory(np.arange(1000, dtype=np.float32))
    gc.collect()
    assert buffer.read(1000, np.float32).tolist() == list(range(1000))


def test_a_destroyed_buffer_refuses_everything_but_destroy(api: Any) -> None:
    model = api.CompiledModel.from_buffer(negating())
    (given,), (result,) = buffers(model)
    given.destroy()
    given.destroy()
    for call in (
        lambda: given.write(ONES),
        lambda: given.read(1, np.float32),
        given.get_tensor_details,
    ):
        with pytest.raises(RuntimeError, match="invalid capsule"):
            call()
    with pytest.raises(ValueError, match="TensorBuffer has been destroyed"):
        given.capsule  # noqa: B018 - the access is the test
    with pytest.raises(ValueError, match="TensorBuffer has been destroyed"):
        model.run_by_index(0, [given], [result])
    with pytest.raises(ValueError, match="TensorBuffer has been destroyed"):
        model.run_by_name(model.get_signature_by_index(0)["key"], {"a": given}, {"b": result})


def test_wrong_arguments_come_before_a_destroyed_buffer(api: Any) -> None:
    buffer = buffer_of(api)
    buffer.destroy()
    with pytest.raises(ValueError, match="data_array must be"):
        buffer.write(3)
    with pytest.raises(ValueError, match="Unsupported dtype"):
        buffer.read(1, np.float64)


def test_a_capsule_makes_another_buffer_of_the_same_memory(api: Any) -> None:
    buffer = buffer_of(api)
    other = api.TensorBuffer(buffer.capsule)
    other.write(ONES)
    assert buffer.read(4, np.float32).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("side", [0, 1])
def test_a_buffer_of_no_memory_cannot_be_used(api: Any, side: int) -> None:
    model = api.CompiledModel.from_buffer(negating())
    given = list(buffers(model))
    given[side] = [api.TensorBuffer(3)]
    assert given[side][0].capsule == 3
    with pytest.raises(RuntimeError, match="not a capsule"):
        model.run_by_index(0, *given)
    with pytest.raises(RuntimeError, match="invalid capsule"):
        given[side][0].write(ONES)


def test_buffers_outlive_their_model_and_its_environment(api: Any) -> None:
    environment = api.Environment.create()
    model = api.CompiledModel.from_buffer(negating(), environment=environment)
    (given,), (result,) = buffers(model, ONES)
    model.close()
    environment.close()
    del model, environment
    gc.collect()
    assert given.read(4, np.float32).tolist() == [1, 1, 1, 1]
    other = api.CompiledModel.from_buffer(negating())
    other.run_by_index(0, [given], [result])
    assert result.read(4, np.float32).tolist() == [-1, -1, -1, -1]


def test_outputs_are_inputs_of_another_model(api: Any) -> None:
    negate, add = map(api.CompiledModel.from_buffer, (negating(), adding()))
    (given,), middle = buffers(negate, ONES)
    negate.run_by_index(0, [given], middle)
    results = add.create_output_buffers(0)
    add.run_by_index(0, [*middle, *middle], results)
    assert results[0].read(4, np.float32).tolist() == [-2, -2, -2, -2]


# -- Delegraph alone ---------------------------------------------------------------------------


def test_read_only_memory_is_read_and_never_written(ours: Any) -> None:
    array = aligned(4)
    array.flags.writeable = False
    buffer = ours.TensorBuffer.create_from_host_memory(array)
    assert buffer.read(4, np.float32).tolist() == [0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="read-only"):
        buffer.write(ONES)
    model = ours.CompiledModel.from_buffer(negating((4,)))
    (given,), (result,) = buffers(model, ONES)
    with pytest.raises(RuntimeError, match=r"code=3.*\n.*read-only"):
        model.run_by_index(0, [given], [buffer])
    assert array.tolist() == [0, 0, 0, 0]
    model.run_by_index(0, [buffer], [result])


def test_a_number_is_shared_as_one_element(ours: Any) -> None:
    buffer = ours.TensorBuffer.create_from_host_memory(np.array(3, np.float32))
    assert buffer.get_tensor_details()["shape"] == [1]
