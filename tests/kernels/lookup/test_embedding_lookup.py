"""EMBEDDING_LOOKUP and EMBEDDING_LOOKUP_SPARSE, against the official interpreter."""

import tracemalloc

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.schema.enums import CombinerType
from delegraph.schema.options import EmbeddingLookupSparseOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse

RNG = np.random.default_rng(0)
NUMBERS = np.array([3, 0, 9, 9], np.int32)
BYTES = RNG.integers(-128, 128, (10, 5)).astype(np.int8)
FLOATS = RNG.normal(size=(10, 4, 3)).astype(np.float32)


@pytest.mark.parametrize("numbers", [NUMBERS, NUMBERS[:0]])
@pytest.mark.parametrize("table", [FLOATS, RNG.integers(0, 99, (10, 4)).astype(np.int32)])
def test_rows_are_copied(table, numbers):
    y = constant(table).type.name
    (rows,) = assert_agrees("EMBEDDING_LOOKUP", [fed(numbers), constant(table)], [y])
    np.testing.assert_array_equal(rows, table[numbers])


TABLES = {
    "one scale": constant(BYTES, scale=0.3),
    "a scale a row": constant(BYTES, scale=RNG.uniform(0.1, 1, 10)),
    "UINT8 means INT8": constant(BYTES.view(np.uint8), scale=0.3),
    "INT4": constant(BYTES[:, :4] >> 4, "INT4", scale=0.3),
    "INT4 by row": constant(BYTES[:, :4] >> 4, "INT4", scale=RNG.uniform(0.1, 1, 10)),
    "INT2": constant(BYTES[:, :4] >> 6, "INT2", scale=0.3),
}


@pytest.mark.parametrize("output", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_rows_of_integers_become_floats(table, output):
    assert_agrees("EMBEDDING_LOOKUP", [fed(NUMBERS), table], [output], version=4)


def test_rows_of_integers_stay_integers_if_the_output_has_their_type():
    y = tensor((4, 5), "INT8", scale=0.3)
    inputs = [fed(NUMBERS), constant(BYTES, scale=0.3)]
    (rows,) = assert_agrees("EMBEDDING_LOOKUP", inputs, [y])
    np.testing.assert_array_equal(rows, BYTES[NUMBERS])


@pytest.mark.parametrize("number", [10, -1])
def test_numbers_outside_of_the_table_are_refused(number):
    inputs = [fed(np.array([number], np.int32)), constant(FLOATS)]
    message = f"row {number} is looked up in a table of 10 rows"
    assert_both_refuse("EMBEDDING_LOOKUP", inputs, ["FLOAT32"], match=message)


def test_a_zero_point_is_refused():
    inputs = [fed(NUMBERS), constant(BYTES, scale=0.3, zero_point=3)]
    assert_both_refuse("EMBEDDING_LOOKUP", inputs, ["FLOAT32"], match="zero point 3")


def test_scales_of_another_dimension_are_refused():
    inputs = [fed(NUMBERS), constant(BYTES, scale=[0.3] * 5, axis=1)]
    assert_both_refuse("EMBEDDING_LOOKUP", inputs, ["FLOAT32"], match="along dimension 1")


def sparse(numbers, indices, shape, weights, table=FLOATS):
    arrays = (numbers, np.int32), (indices, np.int32), (shape, np.int32), (weights, np.float32)
    return [*(fed(np.array(a, dtype)) for a, dtype in arrays), constant(table)]


SPARSE = {
    "matrix": sparse([1, 3, 0], [[0, 0], [2, 0], [2, 1]], [3, 2], [1, 2, 4]),
    "cube": sparse(
        [1, 3, 0, 2],
        [[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 5]],
        [2, 3, 6],
        [1, -2, 4, 0.5],
        FLOATS[:, :, 0],
    ),
}


@pytest.mark.parametrize("inputs", SPARSE.values(), ids=SPARSE.keys())
@pytest.mark.parametrize("combiner", CombinerType)
def test_sums_of_rows_agree_with_the_official_kernel(combiner, inputs):
    options = EmbeddingLookupSparseOptions(combiner=combiner)
    op = "EMBEDDING_LOOKUP_SPARSE"
    assert_agrees(op, inputs, ["FLOAT32"], options, tolerance=1e-6)


def test_a_sparse_number_outside_of_the_table_is_refused():
    inputs = sparse([1, 10], [[0, 0], [1, 0]], [2, 2], [1, 1])
    options = EmbeddingLookupSparseOptions()
    op = "EMBEDDING_LOOKUP_SPARSE"
    assert_both_refuse(op, inputs, ["FLOAT32"], options, match="row 10 is looked up")


def test_an_index_outside_of_the_dense_shape_is_refused():
    inputs = sparse([1, 2], [[0, 0], [2, 0]], [2, 2], [1, 1])
    definitions = [getattr(x, "definition", x) for x in inputs]
    options = EmbeddingLookupSparseOptions()
    model = one_op_model("EMBEDDING_LOOKUP_SPARSE", definitions, [tensor((2, 4, 3))], options)
    with pytest.raises(RuntimeError, match=r"outside of dense_shape \[2\]"):
        delegraph_outputs(model, [x.array for x in inputs[:4]])


def test_other_rows_are_not_unpacked():
    table = constant(np.zeros((4096, 512), np.int8), "INT4", scale=0.5)
    model = one_op_model("EMBEDDING_LOOKUP", [tensor((1,), "INT32"), table], [tensor((1, 512))])
    with Interpreter(model_content=model, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.int32([4095]))
        tracemalloc.start()
        try:
            interpreter.invoke()
            assert tracemalloc.get_traced_memory()[1] < 1 << 19
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("type", ["INT4", "INT2"])
@pytest.mark.parametrize("width", [3, 5, 6])
def test_packed_rows_start_at_whole_bytes(width, type):
    limit = 8 if type == "INT4" else 2
    rows = RNG.integers(-limit, limit, (6, width)).astype(np.int8)
    inputs = [fed(np.int32([0, 1, 5, 4, 3])), constant(rows, type, scale=0.5)]
    assert_agrees("EMBEDDING_LOOKUP", inputs, ["FLOAT32"], version=4)


@pytest.mark.parametrize("type", ["INT4", "INT8", "FLOAT32"])
def test_no_row_is_looked_up(type):
    table = constant(np.ones((3, 4), np.int8 if type != "FLOAT32" else np.float32), type, scale=0.5)
    (y,) = assert_agrees("EMBEDDING_LOOKUP", [fed(np.int32([])), table], ["FLOAT32"], version=4)
    assert y.shape == (0, 4)


def test_integer_rows_of_several_scales_are_refused():
    table = constant(np.ones((2, 4), np.int8), scale=[0.5, 0.25])
    inputs = [fed(np.int32([1])), table]
    assert_both_refuse("EMBEDDING_LOOKUP", inputs, ["INT8"], match="several scales")
