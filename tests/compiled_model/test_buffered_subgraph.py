"""What only Delegraph's class does: no copies, other models, delegates, threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, PlacementPolicy, custom_op
from delegraph.compiled_model import CompiledModel, Environment, TensorBuffer
from delegraph.compiled_model.host_memory import HostMemory, overlapping
from delegraph.compiled_model.loaded_model import LoadedModel
from delegraph.errors import CompiledModelError, NodeError, PlacementError
from delegraph.schema import read_model, tables, write_model
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.subgraphs import Graph, Op, records_of
from support.by_name import ByName, doubling_while
from support.compiled_models import KEY, ONES, adding, aligned, buffers, negating, reshaping


def made(content: bytes, **arguments: Any) -> CompiledModel:
    return CompiledModel.from_buffer(content, **arguments)


# -- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("delegates", [[], [ByName("ADD")]], ids=["kernels", "delegate"])
def test_a_run_reads_and_writes_the_memory_of_its_buffers(delegates: Any) -> None:
    loaded = LoadedModel(Interpreter(model_content=adding(), delegates=delegates))
    model = CompiledModel(loaded, Environment.create())
    inputs, outputs = buffers(model, ONES, ONES)
    subgraph = loaded.signatures[0].subgraph
    for _ in range(2):
        model.run_by_index(0, inputs, outputs)
        tensors = (*subgraph.inputs, *subgraph.outputs)
        for tensor_, buffer in zip(tensors, (*inputs, *outputs), strict=True):
            assert np.shares_memory(tensor_.data, buffer.capsule.data)
            assert tensor_.data.ctypes.data % 64 == 0


def test_shared_host_memory_is_read_and_written_in_place() -> None:
    model = made(negating((4,)))
    given, result = aligned(4), aligned(4)
    pair = [TensorBuffer.create_from_host_memory(array) for array in (given, result)]
    given[:] = 3
    model.run_by_index(0, pair[:1], pair[1:])
    assert result.tolist() == [-3] * 4
    given[:] = 4
    model.run_by_index(0, pair[:1], pair[1:])
    assert result.tolist() == [-4] * 4


def test_an_output_that_overlaps_another_buffer_is_copied() -> None:
    """A kernel may read an input after it has written an output."""
    x, i = tensor((4,), name="a"), constant(np.array([3, 2, 1, 0], np.int32))
    model = made(one_op_model("GATHER", [x, i], [tensor((4,), name="b")]))
    array = aligned(20)
    array[:4] = np.arange(4)
    low, high = (TensorBuffer.create_from_host_memory(array[at : at + 4]) for at in (0, 16))
    model.run_by_index(0, [low], [low])
    assert array[:4].tolist() == [3, 2, 1, 0]
    model.run_by_index(0, [low], [high])
    assert array[16:].tolist() == [0, 1, 2, 3]
    assert array[:4].tolist() == [3, 2, 1, 0]


def test_a_buffer_of_an_input_and_an_output_is_used_in_place_where_the_plan_allows_it() -> None:
    """A cache stays in one buffer; as two inputs it is copied, for ADD would read a new value."""
    loaded = LoadedModel(Interpreter(model_content=adding()))
    model = CompiledModel(loaded, Environment.create())
    (x, y), (z,) = buffers(model, ONES, 2 * ONES)
    subgraph = loaded.signatures[0].subgraph
    for inputs, output, expected in (([x, y], x, 3), ([y, x], y, 5), ([y, y], y, 10)):
        model.run_by_index(0, inputs, [output])
        assert output.read(1, np.float32).item() == expected
        is_shared = np.shares_memory(subgraph.outputs[0].data, output.capsule.data)
        assert is_shared == (inputs[0] is output is not inputs[1])
    model.run_by_index(0, [y, x], [z])
    assert (y.read(1, np.float32).item(), z.read(1, np.float32).item()) == (10, 13)


def test_which_memories_overlap() -> None:
    whole = np.zeros(256, np.uint8)
    a, b, c = (HostMemory(TensorType.UINT8, (64,), whole[at : at + 64]) for at in (0, 32, 128))
    around = HostMemory(TensorType.UINT8, (256,), whole)
    assert overlapping([a, c]) == set()
    assert overlapping([c, b, a]) == {a, b}
    assert overlapping([c, c, a]) == {c}
    assert overlapping([around, a, c]) == {around, a, c}


def test_an_input_that_is_an_output_too_and_an_output_named_twice() -> None:
    x, y, z = (tensor((4,), name=name) for name in "xyz")
    add = Op("ADD", [x, y], [z])
    model = made(write_model(records_of(Graph([x, y], [z, x, z], [add]))))
    inputs, outputs = buffers(model, ONES, 2 * ONES)
    for _ in range(2):
        model.run_by_index(0, inputs, outputs)
        assert [b.read(1, np.float32).item() for b in outputs] == [3, 1, 3]


def test_a_subgraph_that_nodes_call_writes_to_no_buffer() -> None:
    """The body of the loop is the second signature, and runs on buffers of its own."""
    records = read_model(np.frombuffer(doubling_while(), np.uint8))
    made_of = [
        tables.SignatureDef(
            signature_key=key,
            inputs=(tables.TensorMap(name="x", tensor_index=0),),
            outputs=(tables.TensorMap(name="y", tensor_index=1),),
            subgraph_index=index,
        )
        for key, index in (("loop", 0), ("body", 2))
    ]
    model = made(write_model(records.replace(signature_defs=tuple(made_of))))
    loop = buffers(model, np.array([3], np.float32), index=0)
    body = buffers(model, np.array([5], np.float32), index=1)
    for _ in range(2):
        model.run_by_index(1, *body)
        model.run_by_index(0, *loop)
        found = [side[0].read(1, np.float32).item() for side in (*loop, *body)]
        assert found == [3, 12, 5, 10]


def test_a_dropped_model_goes_at_once() -> None:
    interpreter = Interpreter(model_content=negating())
    model = CompiledModel(LoadedModel(interpreter), Environment.create())
    found = weakref.ref(interpreter)
    del interpreter
    kept = buffers(model, ONES)
    model.run_by_index(0, *kept)
    gc.disable()
    try:
        del model
        assert found() is None
    finally:
        gc.enable()
    assert kept[1][0].read(1, np.float32).item() == -1


# -- models that the official class cannot run ---------------------------------------------------


def test_strings_are_written_and_read() -> None:
    model = made(reshaping("STRING"))
    texts = np.array([["a", "bc", ""], ["é", "x\0", "y"]], object)
    (given,), (result,) = buffers(model, texts)
    assert given.get_tensor_details() == {"dtype": "unknown", "shape": [2, 3]}
    model.run_by_index(0, [given], [result])
    expected = [text.encode() for text in texts.reshape(-1)]
    assert result.read(6, object).tolist() == expected
    assert result.read((2, 3), np.object_).shape == (2, 3)
    assert result.read(2, np.bytes_).tolist() == expected[:2]
    given.write(np.array([b"z"]))
    model.run_by_index(0, [given], [result])
    assert result.read(2, object).tolist() == [b"z", b"bc"]


def test_strings_have_limits_as_numbers_have() -> None:
    (given,), (result,) = buffers(made(reshaping("STRING")))
    with pytest.raises(RuntimeError, match="source buffer is larger than the tensor buffer"):
        given.write(np.array(["a"] * 7))
    with pytest.raises(RuntimeError, match="destination buffer is larger than the tensor buffer"):
        result.read(7, object)
    with pytest.raises(ValueError, match="Unsupported dtype: object"):
        given.write(np.array([1], object))
    with pytest.raises(ValueError, match="Unsupported dtype"):
        buffers(made(negating()))[0][0].write(np.array(["a"]))


def test_an_output_takes_on_the_size_that_the_run_decides() -> None:
    x, y = tensor((4,), "BOOL", name="a"), tensor((1, 1), "INT64", name="b")
    model = made(one_op_model("WHERE", [x], [y]))
    (given,), (result,) = buffers(model)
    for values, found in (([1, 0, 1, 1], [0, 2, 3]), ([0, 1, 0, 0], [1]), ([0] * 4, [])):
        given.write(np.array(values, bool))
        model.run_by_index(0, [given], [result])
        shape = result.get_tensor_details()["shape"]
        assert shape == [len(found), 1] == model.get_output_tensor_details(KEY)["b"]["shape"]
        read = result.read(8 * len(found), np.uint8).view(np.int64)
        assert read.tolist() == found
    small = TensorBuffer.create_from_host_memory(np.zeros(8, np.uint8))
    given.write(np.ones(4, bool))
    with pytest.raises(RuntimeError, match="code=3"):
        model.run_by_index(0, [given], [small])


def test_an_output_of_such_a_run_is_an_input_of_the_next_model() -> None:
    x, y = tensor((4,), "BOOL", name="a"), tensor((1, 1), "INT64", name="b")
    where = made(one_op_model("WHERE", [x], [y]))
    x = tensor((1, 1), "INT64", name="a", shape_signature=(-1, 1))
    y = tensor((1, 1), "INT64", name="b", shape_signature=(-1, 1))
    negate = made(one_op_model("NEG", [x], [y]))
    (given,), (middle,) = buffers(where)
    large = TensorBuffer.create_from_host_memory(np.zeros(32, np.uint8))
    for values in ([1, 0, 1, 1], [0, 1, 0, 0]):
        given.write(np.array(values, bool))
        where.run_by_index(0, [given], [middle])
        negate.run_by_index(0, [middle], [large])
        found = np.flatnonzero(values)
        read = large.read(8 * len(found), np.uint8).view(np.int64)
        assert read.tolist() == (-found).tolist()


def test_an_output_of_such_a_run_has_the_bytes_of_the_next_input() -> None:
    x, y = tensor((4,), "BOOL", name="a"), tensor((1, 1), "INT64", name="b")
    where = made(one_op_model("WHERE", [x], [y]))
    (given,), (middle,) = buffers(where, np.array([1, 0, 0, 0], bool))
    where.run_by_index(0, [given], [middle])
    x, y = (tensor((1, 1), "COMPLEX128", name=name) for name in "ab")
    wider = made(one_op_model("RESHAPE", [x, constant(np.array([1, 1], np.int32))], [y]))
    _, results = buffers(wider)
    with pytest.raises(RuntimeError, match=r"code=3(.|\n)*needs 16 bytes"):
        wider.run_by_index(0, [middle], results)


def test_tensors_without_elements_have_buffers() -> None:
    model = made(negating((0, 4)))
    model.run_by_index(0, *buffers(model, np.zeros((0, 4), np.float32)))


# -- delegates and failures ----------------------------------------------------------------------


def test_additions_are_those_of_the_interpreter() -> None:
    model = made(adding(), delegates=[ByName("ADD")])
    assert model.is_fully_accelerated() is True
    assert [node.delegate for node in model.placement.nodes] == ["by_name"]
    assert model.incidents == ()
    policy = PlacementPolicy(require="full")
    with pytest.raises(PlacementError):
        made(adding(), delegates=[], placement=policy).get_output_tensor_details(KEY)


def test_a_node_that_fails_is_the_cause_of_the_error() -> None:
    @custom_op("Fails")
    def fails(x: Any) -> Any:
        raise ZeroDivisionError("at the run")

    x, y = (tensor((4,), name=name) for name in "ab")
    model = made(one_op_model("Fails", [x], [y]), custom_ops={"Fails": fails})
    with pytest.raises(CompiledModelError, match=r"code=3(.|\n)*at the run") as caught:
        model.run_by_index(0, *buffers(model))
    assert isinstance(caught.value.__cause__, NodeError)


# -- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shared", [True, False], ids=["one model", "own models"])
def test_threads_get_right_answers(is_shared: bool) -> None:
    content, wrong = adding(), []
    shared = made(content)

    def work(number: int) -> None:
        model = shared if is_shared else made(content)
        inputs, outputs = buffers(model)
        for i in range(100):
            inputs[0].write(np.full(4, number, np.float32))
            inputs[1].write(np.full(4, i, np.float32))
            model.run_by_index(0, inputs, outputs)
            found = outputs[0].read(4, np.float32)
            if not (found == number + i).all():
                wrong.append((number, i, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
