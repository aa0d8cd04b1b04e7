"""What nodes keep from one invoke to the next; SignalDelay keeps what it has heard."""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph import Interpreter, Limits
from delegraph.errors import ArenaTooSmallError, NodeError
from delegraph.micro import MicroInterpreter
from delegraph.schema import read_model, write_model
from delegraph.testing import one_op_model, tensor


def delay_model(delay):
    raw = bytes(flexbuffers.Dumps({"delay_length": delay}))
    tensors = [tensor((2,), "INT16")], [tensor((2,), "INT16")]
    return one_op_model("SignalDelay", *tensors, custom_options=raw)


def heard(interpreter, *values):
    interpreter.set_tensor(0, np.array(values, np.int16))
    interpreter.invoke()
    return interpreter.get_tensor(1).tolist()


def test_state_lasts_until_variables_are_reset():
    interpreter = Interpreter(model_content=delay_model(3))
    interpreter.allocate_tensors()
    assert [heard(interpreter, 1, 2), heard(interpreter, 3, 4)] == [[0, 0], [0, 1]]
    interpreter.reset_all_variables()
    assert [heard(interpreter, 5, 6), heard(interpreter, 7, 8)] == [[0, 0], [0, 5]]


def test_a_resized_stream_begins_anew_and_leaves_nothing_behind():
    interpreter = Interpreter(model_content=delay_model(3))
    interpreter.allocate_tensors()
    heard(interpreter, 1, 2)
    interpreter.resize_tensor_input(0, [3])
    interpreter.allocate_tensors()
    assert heard(interpreter, 3, 4, 5) == [0, 0, 0]
    assert heard(interpreter, 0, 0, 0) == [3, 4, 5]


def test_interpreters_of_one_model_share_no_state():
    first, second = (Interpreter(model_content=delay_model(2)) for _ in range(2))
    for interpreter in (first, second):
        interpreter.allocate_tensors()
    assert heard(first, 1, 2) == [0, 0]
    assert heard(second, 0, 0) == [0, 0]
    assert heard(first, 0, 0) == [1, 2]


def twice(model):
    """Return a model with the operator of *model* a second time, after the first."""
    records = read_model(np.frombuffer(model, np.uint8))
    (graph,) = records.subgraphs
    first = graph.operators[0]
    tensors = (*graph.tensors, graph.tensors[1].replace(name="later"))
    operators = (first, first.replace(inputs=(1,), outputs=(2,)))
    graph = graph.replace(tensors=tensors, operators=operators, outputs=(2,))
    return write_model(records.replace(subgraphs=(graph,)))


def test_nodes_of_one_model_share_no_state():
    interpreter = MicroInterpreter(twice(delay_model(1)), bytearray(4096))
    interpreter.allocate_tensors()
    results = []
    for values in ([1, 2], [3, 4]):
        interpreter.input(0).data[...] = values
        interpreter.invoke()
        results += interpreter.output(0).data.tolist()
    assert results == [0, 0, 1, 2]


def test_a_delay_that_nobody_has_the_memory_for_is_refused():
    with pytest.raises(NodeError, match="keeps between invokes needs 4294967298 bytes"):
        Interpreter(
            model_content=delay_model(2**31 - 1), limits=Limits(memory=1 << 20)
        ).allocate_tensors()
    with pytest.raises(ArenaTooSmallError):
        MicroInterpreter(delay_model(2**31 - 1), bytearray(1 << 16)).allocate_tensors()
