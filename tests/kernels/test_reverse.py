"""REVERSE_V2 and REVERSE_SEQUENCE."""

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.schema.options import ReverseSequenceOptions
from delegraph.testing import constant, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse

X = np.arange(27, dtype=np.float32).reshape(3, 3, 3)


@pytest.mark.parametrize("axes", [(0,), (1,), (-1,), (1, 2), (0, 1, 2)])
def test_reverse_turns_the_axes_round(axes):
    inputs = [fed(X), constant(np.array(axes, np.int32))]
    (y,) = assert_agrees("REVERSE_V2", inputs, ["FLOAT32"], version=3)
    np.testing.assert_array_equal(y, np.flip(X, axes))


def test_reverse_refuses_an_axis_outside():
    inputs = [fed(X), constant(np.array([3], np.int32))]
    assert_both_refuse("REVERSE_V2", inputs, ["FLOAT32"], match="outside")


def test_a_constant_axis_outside_is_found_while_preparing():
    inputs = [tensor(X.shape), constant(np.array([3], np.int32))]
    model = one_op_model("REVERSE_V2", inputs, [tensor(X.shape)], version=3)
    with pytest.raises(NodeError, match="failed to prepare: axis 3 is outside"):
        Interpreter(model_content=model).allocate_tensors()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("sequence", "batch"), [(1, 0), (0, 1), (2, 0), (0, 2), (1, 2), (2, 1)])
def test_reverse_sequence_turns_the_first_of_each_batch_round(sequence, batch, dtype):
    lengths = np.array([1, 3, 2], dtype)
    options = ReverseSequenceOptions(seq_dim=sequence, batch_dim=batch)
    (y,) = assert_agrees("REVERSE_SEQUENCE", [fed(X), fed(lengths)], ["FLOAT32"], options)
    slow = np.moveaxis(X, (batch, sequence), (0, 1)).copy()
    for row, length in zip(slow, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    np.testing.assert_array_equal(np.moveaxis(y, (batch, sequence), (0, 1)), slow)


def test_reverse_sequence_refuses_one_axis_for_both():
    options = ReverseSequenceOptions(seq_dim=1, batch_dim=1)
    inputs = [fed(X), fed(np.array([1, 2, 3], np.int32))]
    assert_both_refuse("REVERSE_SEQUENCE", inputs, ["FLOAT32"], options, match="batch axis 1")


@pytest.mark.parametrize(("sequence", "batch"), [(-1, 0), (1, -3), (3, 0)])
def test_reverse_sequence_counts_axes_from_the_front(sequence, batch):
    options = ReverseSequenceOptions(seq_dim=sequence, batch_dim=batch)
    inputs = [fed(X), fed(np.array([1, 2, 3], np.int32))]
    assert_both_refuse("REVERSE_SEQUENCE", inputs, ["FLOAT32"], options, match="expected 0 to 2")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_sequence_of_negative_length_stays_as_it_is(dtype):
    options = ReverseSequenceOptions(seq_dim=1, batch_dim=0)
    lengths = np.array([-1, 2, -5], dtype)
    (y,) = assert_agrees("REVERSE_SEQUENCE", [fed(X), fed(lengths)], ["FLOAT32"], options)
    np.testing.assert_array_equal(y[::2], X[::2])
