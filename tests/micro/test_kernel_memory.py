"""What kernels take; sizes worked out from the structures' fields."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph.graph.loader import parse_model
from delegraph.micro.kernel_memory import UNKNOWN_KERNEL_BYTES, kernel_memory
from delegraph.micro.targets import TARGET_32, TARGET_64
from delegraph.schema.options import SVDFOptions
from delegraph.testing import constant, one_op_model, tensor


def memory(op, inputs, outputs, target=TARGET_32, options=None):
    model = parse_model(one_op_model(op, inputs, outputs, options))
    graph = model.subgraphs[0]
    return kernel_memory(graph.operators[0], graph.tensors, target)


def int8(*shape):
    return tensor(shape, "INT8", scale=0.5)


WEIGHTS = constant(np.zeros((8, 3, 3, 2), np.int8), scale=0.5)


def test_a_convolution_keeps_its_data_and_two_numbers_a_channel():
    # 9 integers, 2 pointers, 3 integers; with 64 bits, padded before the pointers and at the end
    for target, data in ((TARGET_32, 56), (TARGET_64, 72)):
        found = memory("CONV_2D", [int8(1, 8, 8, 2), WEIGHTS], [int8(1, 6, 6, 8)], target)
        assert found.persistent == [data, 32, 32]
        assert (found.parameters, found.scratch) == (40, [])


def test_a_convolution_looks_at_its_tensors_twice():
    found = memory("CONV_2D", [int8(1, 8, 8, 2), WEIGHTS], [int8(1, 6, 6, 8)])
    assert len(found.temp_tensors) == 6


def test_depthwise_channels_are_in_the_last_dimension():
    weights = constant(np.zeros((1, 3, 3, 5), np.int8), scale=0.5)
    found = memory("DEPTHWISE_CONV_2D", [int8(1, 8, 8, 5), weights], [int8(1, 6, 6, 5)])
    assert found.persistent[1:] == [20, 20]


def test_packed_weights_are_unpacked_into_scratch():
    weights = constant(np.zeros((4, 10), np.int8), "INT4", scale=0.5)
    assert memory("FULLY_CONNECTED", [int8(1, 10), weights], [int8(1, 4)]).scratch == [40]


@pytest.mark.parametrize(("kind", "scratch"), [("INT8", [48, 24]), ("FLOAT32", [48])])
def test_svdf_works_in_scratch(kind, scratch):
    scale = 0.5 if kind == "INT8" else None
    weights = constant(np.zeros((6, 3), np.dtype(kind.lower())), scale=scale)
    inputs = [tensor((2, 3), kind, scale=scale), weights]
    outputs = [tensor((2, 3), kind, scale=scale)]
    found = memory("SVDF", inputs, outputs, options=SVDFOptions(rank=2))
    assert found.scratch == scratch
    assert found.persistent == [36]


def test_sixteen_bit_softmax_keeps_two_tables():
    found = memory("SOFTMAX", [tensor((1, 4), "INT16", scale=0.5)], [tensor((1, 4), "INT16")])
    assert found.persistent[1:] == [1026, 1026]
    assert memory("SOFTMAX", [int8(1, 4)], [int8(1, 4)], TARGET_64).persistent == [80]


def test_quantized_sums_are_made_in_scratch():
    axes = constant(np.array([1, 2], np.int32))
    assert memory("MEAN", [int8(1, 4, 4, 3), axes], [int8(1, 3)]).scratch == [12]
    assert memory("MEAN", [tensor((1, 4, 4, 3)), axes], [tensor((1, 3))]).scratch == []
    assert memory("REDUCE_MAX", [int8(1, 4, 4, 3), axes], [int8(1, 3)]).scratch == [16, 8]


def test_eight_bit_concatenation_keeps_a_scale_and_a_zero_point_an_input():
    found = memory("CONCATENATION", [int8(1, 2)] * 3, [int8(1, 6)], TARGET_64)
    assert found.persistent == [40, 12, 12]


@pytest.mark.parametrize(("kind", "bytes_each"), [("INT8", 4), ("INT16", 8)])
def test_transposed_convolution_sums_in_scratch(kind, bytes_each):
    shape = constant(np.array([1, 4, 4, 8], np.int32))
    inputs = [shape, WEIGHTS, tensor((1, 2, 2, 2), kind, scale=0.5)]
    found = memory("TRANSPOSE_CONV", inputs, [tensor((1, 4, 4, 8), kind, scale=0.5)])
    assert found.scratch == [128 * bytes_each]


@pytest.mark.parametrize(("target", "scratch"), [(TARGET_32, [24, 12]), (TARGET_64, [24, 24])])
def test_the_operator_of_vela_works_with_addresses_and_sizes_of_its_tensors(target, scratch):
    commands = constant(np.zeros(16, np.uint8))
    found = memory("ethos-u", [commands, int8(8)], [int8(2)], target)
    assert (found.persistent, found.scratch, found.is_known) == ([12], scratch, True)


def test_an_operator_that_is_not_listed_is_given_a_guess():
    found = memory("EXPM1", [tensor((4,))], [tensor((4,))])
    assert not found.is_known
    assert found.persistent == (UNKNOWN_KERNEL_BYTES,)


@pytest.mark.parametrize(
    ("kind", "cell", "each"), [("INT8", "INT16", 12), ("FLOAT32", "FLOAT32", 24)]
)
def test_an_lstm_keeps_its_gates_and_works_in_four_buffers(kind, cell, each):
    """The wheel records 704 bytes, two pointers included, and as much more of head."""
    states = [
        tensor((2, 3), type, scale=0.5, is_variable=True, name=name)
        for type, name in ((kind, "hidden"), (cell, "cell"))
    ]
    weights = constant(np.zeros((3, 3), np.int8), scale=0.5)
    inputs = [tensor((2, 1, 3), kind), *[weights] * 8, *[None] * 9, *states, *[None] * 4]
    found = memory("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [tensor((2, 1, 3), kind)], TARGET_64)
    assert (found.parameters, found.persistent, found.scratch) == (16, [688], [each] * 4)
