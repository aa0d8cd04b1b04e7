from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph.errors import ArgumentError
from delegraph.schema import tables, write_model
from delegraph.testing import one_op_model, tensor
from delegraph.testing.subgraphs import Graph, Op, records_of
from support.compiled_models import KEY, ONES, adding, aligned, buffers, negating, open_rows
from support.signatures import two_signatures

NOT_INTS: list[Any] = ["0", 0.0, None, 2**40, 2**70, [0]]
NOT_TEXT: list[Any] = [0, None, ["a"]]


def made(api: Any, content: bytes = b"") -> Any:
    return api.CompiledModel.from_buffer(content or adding())


def is_code(code: int) -> str:
    return f"^CompiledModel error: code={code}, message="


# -- making -------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_given", [str, lambda path: str(path).encode()], ids=["str", "bytes"])
def test_a_file_is_text_or_bytes(api: Any, tmp_path: Path, as_given: Any) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(negating())
    model = api.CompiledModel.from_file(as_given(path))
    (given,), (result,) = buffers(model, ONES)
    model.run_by_index(0, [given], [result])
    assert result.read(4, np.float32).tolist() == [-1] * 4


@pytest.mark.parametrize("path", [Path("x"), None, 3], ids=repr)
def test_other_paths_are_type_errors(api: Any, path: Any) -> None:
    with pytest.raises(TypeError):
        api.CompiledModel.from_file(path)


@pytest.mark.parametrize("name", ["missing.tflite", "", "bad.tflite", "empty.tflite", "."])
def test_no_such_file_or_no_model(api: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.tflite").write_bytes(b"no model" * 100)
    (tmp_path / "empty.tflite").write_bytes(b"")
    with pytest.raises(RuntimeError, match="Failed to load model from file"):
        api.CompiledModel.from_file(str(tmp_path / name) if name else "")


@pytest.mark.parametrize("content", [b"", b"abc", b"x" * 1000], ids=len)
def test_bytes_that_are_no_model(api: Any, content: bytes) -> None:
    with pytest.raises(RuntimeError, match="Failed to load model from buffer"):
        api.CompiledModel.from_buffer(content)


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8), len])
def test_only_bytes_are_a_buffer(api: Any, kind: Any) -> None:
    with pytest.raises(TypeError):
        api.CompiledModel.from_buffer(kind(negating()))


def test_the_constructor_keeps_what_it_is_given(api: Any) -> None:
    model = api.CompiledModel(3, 4)
    assert model.environment == 4
    with pytest.raises(AttributeError):
        model.get_num_signatures()


# -- closing ------------------------------------------------------------------------------------

CALLS: dict[str, tuple[Any, ...]] = {
    "get_signature_list": (),
    "get_signature_by_index": (0,),
    "get_num_signatures": (),
    "get_signature_index": (KEY,),
    "get_input_tensor_details": (KEY,),
    "get_output_tensor_details": (KEY,),
    "get_input_buffer_requirements": (0,),
    "get_output_buffer_requirements": (0,),
    "is_fully_accelerated": (),
    "create_input_buffer_by_name": (KEY, "a"),
    "create_output_buffer_by_name": (KEY, "c"),
    "create_input_buffers": (0,),
    "create_output_buffers": (0,),
    "resize_input_tensor": (0, [1, 4]),
    "resize_input_tensor_by_name": (KEY, "a", [1, 4]),
    "run_by_index": (0, [], []),
    "run_by_name": (KEY, {}, {}),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_closed_model_is_an_attribute_error(api: Any, call: str) -> None:
    model = made(api)
    assert model.close() is None
    model.close()
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):
        getattr(model, call)(*CALLS[call])
    assert isinstance(model.environment, api.Environment)


def test_with_closes(api: Any) -> None:
    with made(api) as model:
        assert model.get_num_signatures() == 1
    with pytest.raises(AttributeError):
        model.get_num_signatures()


# -- signatures ---------------------------------------------------------------------------------


def test_a_model_without_signatures_has_one_of_its_tensors(api: Any) -> None:
    model = made(api)
    names = {"inputs": ["a", "b"], "outputs": ["c"]}
    assert model.get_signature_list() == {KEY: names}
    assert model.get_signature_by_index(0) == {"key": KEY, **names}
    assert model.get_num_signatures() == 1
    assert model.get_signature_index(KEY) == 0


def test_signatures_have_their_own_names(api: Any) -> None:
    model = made(api, two_signatures())
    names = {"inputs": ["x"], "outputs": ["y"]}
    assert model.get_signature_list() == {"negate": names, "wave": names}
    assert model.get_signature_by_index(1) == {"key": "wave", **names}
    keys = ["negate", "wave", b"wave", "", "none", KEY]
    assert [model.get_signature_index(key) for key in keys] == [0, 1, 1, 0, -1, -1]
    details = {"name": "in", "index": 0, "dtype": "float32", "shape": [1]}
    assert model.get_input_tensor_details("wave") == {"x": details}
    assert model.get_input_tensor_details("") == {"x": details}
    assert list(model.get_output_tensor_details("wave")) == ["y"]


def test_names_are_in_the_order_of_the_graph(api: Any) -> None:
    x, y, z = (tensor((4,), name=name) for name in ("one", "two", "three"))
    maps = [tables.TensorMap(name=n, tensor_index=i) for n, i in (("b", 1), ("a", 0), ("c", 2))]
    signature = tables.SignatureDef(
        signature_key="s", inputs=tuple(maps[:2]), outputs=tuple(maps[2:]), subgraph_index=0
    )
    records = records_of(Graph([x, y], [z], [Op("SUB", [x, y], [z])]))
    model = made(api, write_model(records.replace(signature_defs=(signature,))))
    assert model.get_signature_list() == {"s": {"inputs": ["a", "b"], "outputs": ["c"]}}
    inputs, (result,) = buffers(model, ONES, 3 * ONES)
    model.run_by_index(0, inputs, [result])
    assert result.read(4, np.float32).tolist() == [-2] * 4


def test_details_are_plain_values(api: Any) -> None:
    model = made(api)
    expected = {
        name: {"name": name, "index": index, "dtype": "float32", "shape": [1, 4]}
        for index, name in enumerate("abc")
    }
    assert model.get_input_tensor_details(KEY) == {name: expected[name] for name in "ab"}
    found = model.get_output_tensor_details(KEY)
    assert found == {"c": expected["c"]}
    assert [type(value) for value in found["c"].values()] == [str, int, str, list]


def test_requirements_are_bytes_of_host_memory(api: Any) -> None:
    model = made(api)
    expected = {"buffer_size": 16, "supported_types": [1]}
    for index in (0, True, np.int32(1)):
        assert model.get_input_buffer_requirements(index) == expected
    assert model.get_output_buffer_requirements(0, 0) == expected
    assert model.get_output_buffer_requirements(output_index=0, signature_index=0) == expected


def test_a_number_has_no_dimensions(api: Any) -> None:
    model = made(api, negating(()))
    assert model.get_input_tensor_details(KEY)["a"]["shape"] == []
    (given,), (result,) = buffers(model, np.array(3, np.float32))
    model.run_by_index(0, [given], [result])
    assert result.read((), np.float32) == -3


# -- wrong keys, names and indices -----------------------------------------------------------------


def test_unknown_keys_and_names_are_told(api: Any) -> None:
    model = made(api)
    for call in (model.get_input_tensor_details, model.get_output_tensor_details):
        with pytest.raises(RuntimeError, match=is_code(6) + "Signature not found: nope"):
            call("nope")
    for call, kind in (
        (model.create_input_buffer_by_name, "Input"),
        (model.create_output_buffer_by_name, "Output"),
    ):
        with pytest.raises(RuntimeError, match=r"code=6(.|\n)*Signature not found: nope"):
            call("nope", "a")
        with pytest.raises(RuntimeError, match=rf"code=6(.|\n)*{kind} tensor not found: nope"):
            call(KEY, "nope")
    with pytest.raises(RuntimeError, match=is_code(6)):
        model.run_by_name("nope", {}, {})
    with pytest.raises(ValueError, match=r"^Unknown signature: nope"):
        model.resize_input_tensor_by_name("nope", "a", [1])
    with pytest.raises(ValueError, match=r"^Unknown input 'nope' for signature"):
        model.resize_input_tensor_by_name(KEY, "nope", [1])


@pytest.mark.parametrize("key", NOT_TEXT, ids=repr)
def test_keys_and_names_are_text(api: Any, key: Any) -> None:
    model = made(api)
    for call, arguments in (
        (model.get_signature_index, (key,)),
        (model.get_input_tensor_details, (key,)),
        (model.get_output_tensor_details, (key,)),
        (model.create_input_buffer_by_name, (key, "a")),
        (model.create_input_buffer_by_name, (KEY, key)),
        (model.create_output_buffer_by_name, (KEY, key)),
        (model.run_by_name, (key, {}, {})),
        (model.resize_input_tensor_by_name, (key, "a", [1])),
    ):
        with pytest.raises(TypeError):
            call(*arguments)


def calls_by_index(model: Any, index: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """Each call with *index* in the place of a signature, an input or an output."""
    inputs, outputs = buffers(model)
    return [
        (model.get_input_buffer_requirements, (index,)),
        (model.get_input_buffer_requirements, (0, index)),
        (model.get_output_buffer_requirements, (index,)),
        (model.get_output_buffer_requirements, (0, index)),
        (model.create_input_buffers, (index,)),
        (model.create_output_buffers, (index,)),
        (model.resize_input_tensor, (index, [1, 4])),
        (model.resize_input_tensor, (0, [1, 4], index)),
        (model.run_by_index, (index, inputs, outputs)),
    ]


@pytest.mark.parametrize("index", [-1, 2, 100])
def test_an_index_out_of_range_is_told(api: Any, index: int) -> None:
    for call, arguments in calls_by_index(made(api), index):
        with pytest.raises(RuntimeError, match=is_code(1000)):
            call(*arguments)


@pytest.mark.parametrize("index", NOT_INTS, ids=repr)
def test_an_index_is_an_int(api: Any, index: Any) -> None:
    model = made(api)
    for call, arguments in [
        *calls_by_index(model, index),
        (model.get_signature_by_index, (index,)),
    ]:
        with pytest.raises(TypeError):
            call(*arguments)


def test_buffers_of_a_signature_need_its_index(api: Any) -> None:
    model = made(api)
    for call in (model.create_input_buffers, model.create_output_buffers):
        with pytest.raises(TypeError):
            call()


# -- running -------------------------------------------------------------------------------------


def test_runs_take_any_iterable(api: Any) -> None:
    model = made(api)
    inputs, outputs = buffers(model, ONES, 2 * ONES)
    for kind in (list, tuple, iter):
        assert model.run_by_index(0, kind(inputs), kind(outputs)) is None
        assert outputs[0].read(4, np.float32).tolist() == [3] * 4
    assert model.run_by_index(np.int32(0), inputs, outputs) is None


def test_buffers_of_their_own_hold_their_own_results(api: Any) -> None:
    model = made(api, negating())
    first, second = buffers(model, ONES), buffers(model, 2 * ONES)
    for given, results in (first, second, first):
        model.run_by_index(0, given, results)
    assert first[1][0].read(4, np.float32).tolist() == [-1] * 4
    assert second[1][0].read(4, np.float32).tolist() == [-2] * 4
    model.run_by_index(0, first[0], second[1])
    assert second[1][0].read(4, np.float32).tolist() == [-1] * 4


def test_a_buffer_made_for_an_output_is_an_input_too(api: Any) -> None:
    model = made(api, negating())
    (given,), (result,) = buffers(model)
    result.write(ONES)
    model.run_by_index(0, [result], [given])
    assert given.read(4, np.float32).tolist() == [-1] * 4


def test_an_output_may_be_the_input(api: Any) -> None:
    model = made(api, negating())
    (buffer,), _ = buffers(model, ONES)
    model.run_by_index(0, [buffer], [buffer])
    model.run_by_index(0, [buffer], [buffer])
    assert buffer.read(4, np.float32).tolist() == [1] * 4


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (3, 1), (0, 1), (2, 0), (2, 2), (0, 0)])
def test_a_wrong_number_of_buffers_is_told(api: Any, inputs: int, outputs: int) -> None:
    model = made(api)
    given, results = buffers(model)
    with pytest.raises(RuntimeError, match=is_code(3) + "(.|\n)* buffer size mismatch"):
        model.run_by_index(0, (given * 2)[:inputs], (results * 2)[:outputs])


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ([1, 2], AttributeError),
        ([None, None], AttributeError),
        ([ONES, ONES], AttributeError),
        (None, TypeError),
        (3, TypeError),
    ],
    ids=str,
)
def test_what_is_no_buffer_is_told(api: Any, wrong: Any, error: type[Exception]) -> None:
    model = made(api)
    inputs, outputs = buffers(model)
    with pytest.raises(error):
        model.run_by_index(0, wrong, outputs)
    with pytest.raises(error):
        model.run_by_index(0, inputs, wrong)


def test_ours_tells_it_as_an_error_of_delegraph(ours: Any) -> None:
    with made(ours) as model, pytest.raises(ArgumentError, match="'int' object has no attribute"):
        model.run_by_index(0, [1, 2], [])


def test_a_run_by_name(api: Any) -> None:
    model = made(api)
    (a, b), (c,) = buffers(model, ONES, 2 * ONES)
    assert model.run_by_name(KEY, {"b": b, "a": a}, {"c": c}) is None
    assert c.read(4, np.float32).tolist() == [3] * 4
    model.run_by_name(KEY, {"a": a, "b": a, "other": b}, {"c": c, "other": b})
    assert c.read(4, np.float32).tolist() == [2] * 4
    model.run_by_name("", {"a": b, "b": b}, {"c": c})
    assert c.read(4, np.float32).tolist() == [4] * 4


def test_an_input_without_a_buffer_keeps_the_last_one(api: Any) -> None:
    model = made(api)
    (a, b), (c,) = buffers(model, ONES, 2 * ONES)
    model.run_by_name(KEY, {"a": a, "b": b}, {"c": c})
    b.write(5 * ONES)
    model.run_by_name(KEY, {"a": a}, {"c": c})
    assert c.read(4, np.float32).tolist() == [6] * 4


def test_an_output_without_a_buffer_is_told(api: Any) -> None:
    model = made(api)
    (a, b), _ = buffers(model)
    with pytest.raises(RuntimeError, match=is_code(6) + "The given map is missing some output"):
        model.run_by_name(KEY, {"a": a, "b": b}, {})


def test_maps_have_text_and_buffers(api: Any) -> None:
    model = made(api)
    (a, b), (c,) = buffers(model)
    for key in (0, b"a"):
        with pytest.raises(RuntimeError, match="input_map key not a string"):
            model.run_by_name(KEY, {key: a, "b": b}, {"c": c})
    for wrong in ({"a": 1}, {"a": a, "b": b, "other": 1}, [a, b]):
        with pytest.raises(AttributeError):
            model.run_by_name(KEY, wrong, {"c": c})


def test_another_dtype_of_as_many_bytes_is_taken_as_bytes(api: Any) -> None:
    model = made(api, negating((4,)))
    _, (result,) = buffers(model)
    bits = aligned(4, np.int32)
    bits[:] = ONES.view(np.int32)
    given = api.TensorBuffer.create_from_host_memory(bits)
    model.run_by_index(0, [given], [result])
    assert result.read(4, np.float32).tolist() == [-1] * 4
    model.run_by_index(0, [result], [given])
    assert_array_equal(given.read(4, np.float32), ONES)


def test_a_larger_output_buffer_keeps_its_other_bytes(api: Any) -> None:
    model = made(api, negating())
    inputs, _ = buffers(model, ONES)
    large = api.TensorBuffer.create_from_host_memory(7 * np.ones(8, np.float32))
    model.run_by_index(0, inputs, [large])
    assert large.read(8, np.float32).tolist() == [-1] * 4 + [7] * 4
    assert large.get_tensor_details()["shape"] == [8]


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.bool_])
def test_an_input_buffer_of_too_few_bytes_is_told(api: Any, dtype: Any) -> None:
    model = made(api, negating((4,)))
    _, outputs = buffers(model)
    small = api.TensorBuffer.create_from_host_memory(np.zeros(4, dtype))
    with pytest.raises(RuntimeError, match=is_code(3)):
        model.run_by_index(0, [small], outputs)


@pytest.mark.parametrize("array", [np.zeros(2, np.float32), np.zeros(4, np.int8)])
def test_an_output_buffer_of_too_few_bytes_is_told(api: Any, array: Any) -> None:
    model = made(api, negating())
    inputs, outputs = buffers(model, ONES)
    small = api.TensorBuffer.create_from_host_memory(array)
    with pytest.raises(RuntimeError, match=is_code(3)):
        model.run_by_index(0, inputs, [small])
    with pytest.raises(RuntimeError, match=is_code(3)):
        model.get_output_tensor_details(KEY)
    model.run_by_index(0, inputs, outputs)
    assert list(model.get_output_tensor_details(KEY)) == ["b"]
    assert outputs[0].read(4, np.float32).tolist() == [-1] * 4


# -- shapes --------------------------------------------------------------------------------------


def shapes(model: Any) -> tuple[list[int], list[int]]:
    """Present shapes of the input ``a`` and the output ``b``."""
    found = model.get_input_tensor_details(KEY)["a"]["shape"]
    return found, model.get_output_tensor_details(KEY)["b"]["shape"]


@pytest.mark.parametrize("dims", [[3, 4], (3, 4), np.array([3, 4]), range(3, 5)], ids=str)
def test_open_dimensions_are_resized(api: Any, dims: Any) -> None:
    model = made(api, open_rows())
    assert model.resize_input_tensor(0, dims) is None
    assert shapes(model) == ([3, 4], [3, 4])
    assert model.get_input_buffer_requirements(0)["buffer_size"] == 48
    assert model.get_output_buffer_requirements(0)["buffer_size"] == 48
    (small,), (result,) = buffers(model, np.arange(12, dtype=np.float32))
    assert small.get_tensor_details()["shape"] == result.get_tensor_details()["shape"] == [3, 4]
    model.run_by_index(0, [small], [result])
    assert result.read(12, np.float32).tolist() == [-i for i in range(12)]
    model.resize_input_tensor_by_name(KEY, "a", [2, 4])
    assert shapes(model) == ([2, 4], [2, 4])


def test_a_strict_resize_changes_open_dimensions_only(api: Any) -> None:
    """The present shape is always fine."""
    model = made(api, open_rows())
    for dims, is_fine in (([3, 5], False), ([4], False), ([6, 4], True), ([6, 4], True)):
        if is_fine:
            model.resize_input_tensor(0, dims)
        else:
            with pytest.raises(RuntimeError, match=is_code(1)):
                model.resize_input_tensor(0, dims)
    model.resize_input_tensor(0, [2, 3], strict=False)
    model.resize_input_tensor(0, [2, 3])
    with pytest.raises(RuntimeError, match="not compatible with current shape"):
        model.resize_input_tensor(0, [5, 3])
    model.resize_input_tensor(0, [5, 4])
    assert shapes(model) == ([5, 4], [5, 4])


def test_a_model_without_open_dimensions_keeps_its_present_shape(api: Any) -> None:
    model = made(api, negating())
    model.resize_input_tensor(0, [1, 4])
    with pytest.raises(RuntimeError, match="New shape is not compatible with current shape"):
        model.resize_input_tensor(0, [2, 4])
    with pytest.raises(RuntimeError, match="New shape rank does not match current shape rank"):
        model.resize_input_tensor(0, [4])
    model.resize_input_tensor(0, [2, 4], strict=False)
    model.resize_input_tensor(0, [2, 4])
    with pytest.raises(RuntimeError, match=is_code(1)):
        model.resize_input_tensor(0, [1, 4])
    assert shapes(model) == ([2, 4], [2, 4])


@pytest.mark.parametrize("dims", [[8], [2, 2, 2], [1, 1]], ids=str)
def test_any_shape_is_fine_where_not_strict(api: Any, dims: list[int]) -> None:
    model = made(api, negating())
    model.resize_input_tensor(0, dims, 0, False)
    assert shapes(model) == (dims, dims)
    inputs, outputs = buffers(model, np.ones(dims, np.float32))
    model.run_by_index(0, inputs, outputs)
    assert (outputs[0].read(dims, np.float32) == -1).all()


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([], "New shape must not be empty"),
        ([0, 4], "Dimensions must be positive"),
        ([-1, 4], "Dimensions must be positive"),
    ],
    ids=str,
)
@pytest.mark.parametrize("strict", [True, False])
def test_shapes_that_no_input_has(api: Any, dims: Any, message: str, strict: bool) -> None:
    model = made(api, open_rows())
    with pytest.raises(RuntimeError, match=f"code=1, (.|\n)*{message}"):
        model.resize_input_tensor(0, dims, strict=strict)
    assert shapes(model) == ([1, 4], [1, 4])


@pytest.mark.parametrize(
    "dims", ["14", 3, None, [2.0, 4], [None, 4], [2**31, 4], ["a", 4]], ids=str
)
def test_dimensions_are_ints(api: Any, dims: Any) -> None:
    model = made(api, open_rows())
    for strict in (True, False):
        with pytest.raises(TypeError):
            model.resize_input_tensor(0, dims, strict=strict)


def test_an_input_is_resized_to_its_buffer(api: Any) -> None:
    model = made(api, open_rows())
    one = buffers(model, ONES)
    model.resize_input_tensor(0, [3, 4])
    three = buffers(model, np.ones((3, 4), np.float32))
    model.run_by_index(0, one[0], three[1])
    assert shapes(model) == ([1, 4], [1, 4])
    model.run_by_index(0, *three)
    assert shapes(model) == ([3, 4], [3, 4])
    assert three[1][0].read(12, np.float32).tolist() == [-1] * 12
    model.run_by_index(0, *one)
    assert one[1][0].read(4, np.float32).tolist() == [-1] * 4


def test_an_output_buffer_too_small_for_the_new_shape_is_told(api: Any) -> None:
    """Details fail, as the official ones, until a run succeeds or an input is resized."""
    model = made(api, open_rows())
    small = buffers(model, ONES)
    model.resize_input_tensor(0, [3, 4])
    large = buffers(model)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=is_code(3)):
            model.run_by_index(0, large[0], small[1])
    for call in (
        lambda: model.get_output_tensor_details(KEY),
        lambda: model.create_output_buffers(0),
    ):
        with pytest.raises(RuntimeError, match=is_code(3)):
            call()
    assert model.get_input_tensor_details(KEY)["a"]["shape"] == [3, 4]
    assert model.get_output_buffer_requirements(0)["buffer_size"] == 48
    model.resize_input_tensor(0, [2, 4])
    assert shapes(model) == ([2, 4], [2, 4])


@pytest.mark.parametrize(
    ("content", "shape"), [(negating(), 4), (negating((4,)), 5), (open_rows(), 8)]
)
def test_a_buffer_of_another_shape_is_told(api: Any, content: bytes, shape: int) -> None:
    model = made(api, content)
    _, outputs = buffers(model)
    given = api.TensorBuffer.create_from_host_memory(np.zeros(shape, np.float32))
    with pytest.raises(RuntimeError, match=r"code=3(.|\n)*Cannot auto-resize"):
        model.run_by_index(0, [given], outputs)


def test_signatures_are_resized_and_run_by_themselves(api: Any) -> None:
    model = made(api, two_signatures())
    model.resize_input_tensor(0, [3], 1)
    assert model.get_input_tensor_details("wave")["x"]["shape"] == [3]
    assert model.get_input_tensor_details("negate")["x"]["shape"] == [1]
    wave = buffers(model, np.array([0, 1, 2], np.float32), index=1)
    negate = buffers(model, np.array([5], np.float32))
    model.run_by_index(1, *wave)
    model.run_by_index(0, *negate)
    np.testing.assert_allclose(wave[1][0].read(3, np.float32), np.sin([0, 1, 2]), rtol=1e-6)
    assert negate[1][0].read(1, np.float32).tolist() == [-5]
    model.run_by_name("wave", {"x": negate[0][0]}, {"y": negate[1][0]})
    np.testing.assert_allclose(negate[1][0].read(1, np.float32), np.sin([5]), rtol=1e-6)


# -- unknown operators -----------------------------------------------------------------------------


def test_an_unknown_operator_fails_when_tensors_are_allocated(api: Any) -> None:
    x, y = (tensor((1, 4), name=name) for name in "ab")
    model = made(api, one_op_model("Unheard", [x], [y]))
    assert model.get_input_tensor_details(KEY)["a"]["shape"] == [1, 4]
    assert model.is_fully_accelerated() is False
    inputs, outputs = buffers(model)
    assert model.get_output_buffer_requirements(0)["buffer_size"] == 16
    with pytest.raises(RuntimeError, match=r"code=3(.|\n)*Failed to allocate tensors"):
        model.get_output_tensor_details(KEY)
    with pytest.raises(RuntimeError, match=r"code=3(.|\n)*Failed to allocate tensors"):
        model.run_by_index(0, inputs, outputs)


# -- Delegraph alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-1, 1])
def test_a_signature_out_of_range_is_told(ours: Any, index: int) -> None:
    with pytest.raises(RuntimeError, match=is_code(1000)):
        made(ours).get_signature_by_index(index)


def test_equal_names_fall_together_in_details(ours: Any) -> None:
    x, other, y = (tensor((4,), name=name) for name in "aab")
    model = made(ours, one_op_model("SUB", [x, other], [y]))
    assert model.get_signature_by_index(0)["inputs"] == ["a", "a"]
    assert list(model.get_input_tensor_details(KEY)) == ["a"]
    inputs, outputs = buffers(model, ONES, 3 * ONES)
    model.run_by_index(0, inputs, outputs)
    assert outputs[0].read(4, np.float32).tolist() == [-2] * 4


def test_a_failure_brings_no_earlier_lines_along(ours: Any) -> None:
    model = made(ours)
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            model.create_input_buffers(7)
        assert str(caught.value).count("\n") == 0
        assert caught.value.code == 1000  # type: ignore[attr-defined]  # a CompiledModelError


def test_an_unknown_keyword_lists_the_known_ones(ours: Any) -> None:
    with pytest.raises(TypeError, match=r"'num_threads'; there are: .*custom_ops, delegates"):
        ours.CompiledModel.from_buffer(adding(), num_threads=2)
