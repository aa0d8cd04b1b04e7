"""STABLEHLO_REDUCE, against the specification."""

import numpy as np
import pytest

from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.options import AddOptions, StablehloCompareOptions, StablehloReduceOptions
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.stablehlo import tensor_like

SIMPLE = [
    ("STABLEHLO_ADD", None, np.add, 0),
    ("ADD", AddOptions(), np.add, 0),
    ("STABLEHLO_MULTIPLY", None, np.multiply, 1),
    ("STABLEHLO_MAXIMUM", None, np.maximum, -9),
    ("STABLEHLO_MINIMUM", None, np.minimum, 9),
    ("STABLEHLO_OR", None, np.bitwise_or, 0),
]
AXES = [(0,), (1,), (2,), (0, 2), (2, 1), (0, 1, 2), ()]


def reduce_model(operands, inits, axes, body):
    kept = [n for i, n in enumerate(operands[0].shape) if i not in axes]
    inputs = [tensor_like(array) for array in (*operands, *inits)]
    outputs = [tensor(kept, t.type.name) for t in inputs[: len(operands)]]
    options = StablehloReduceOptions(dimensions=axes, body_subgraph_index=1)
    main = Graph(inputs, outputs, [Op("STABLEHLO_REDUCE", inputs, outputs, options)])
    return model_of(main, body)


def reduced(operands, inits, axes, body):
    return delegraph_outputs(reduce_model(operands, inits, axes, body), [*operands, *inits])


def scalars(kind, count):
    return [tensor((), kind) for _ in range(count)]


def one_operator(op, options, kind):
    a, b, c = scalars(kind, 3)
    return Graph([a, b], [c], [Op(op, [a, b], [c], options)])


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("case", SIMPLE, ids=lambda case: case[0])
def test_one_operator_reduces(case, axes):
    op, options, ufunc, start = case
    x = np.random.default_rng(0).integers(-3, 4, (3, 4, 5)).astype(np.int32)
    (y,) = reduced([x], [np.int32(start)], axes, one_operator(op, options, "INT32"))
    expected = ufunc.reduce(x, axis=axes) if axes else ufunc(x, np.int32(start))
    np.testing.assert_array_equal(y, expected)


def test_the_initial_value_counts():
    x = np.float32([[1, 2], [3, 4]])
    body = one_operator("STABLEHLO_ADD", None, "FLOAT32")
    (y,) = reduced([x], [np.float32(10)], (1,), body)
    assert y.tolist() == [13, 17]


@pytest.mark.parametrize("op", ["STABLEHLO_ADD", "STABLEHLO_SUBTRACT"])
def test_nothing_reduces_to_the_initial_value(op):
    x = np.zeros((2, 0), np.float32)
    (y,) = reduced([x], [np.float32(7)], (1,), one_operator(op, None, "FLOAT32"))
    assert y.tolist() == [7, 7]


def first_of_two(kind):
    """Return a body that is not commutative: a + 0 * b."""
    a, b, zero, c, d = (*scalars(kind, 2), constant(np.int32(0)), *scalars(kind, 2))
    ops = [Op("STABLEHLO_MULTIPLY", [b, zero], [c]), Op("STABLEHLO_ADD", [a, c], [d])]
    return Graph([a, b], [d], ops)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8])
def test_bodies_with_constants_run_for_each_element(length):
    x = np.arange(2 * length, dtype=np.int32).reshape(2, length)
    (y,) = reduced([x], [np.int32(5)], (1,), first_of_two("INT32"))
    assert y.tolist() == [5, 5]


def largest_and_its_place():
    """Return the body of an arg-max: (value, place), the smaller place of equal values."""
    v0, i0, v1, i1 = (tensor((), kind) for kind in ("FLOAT32", "INT32") * 2)
    is_greater, is_equal, v, i, smaller = (
        tensor((), kind) for kind in ("BOOL", "BOOL", "FLOAT32", "INT32", "INT32")
    )
    chosen = tensor((), "INT32")
    gt, eq = (
        StablehloCompareOptions(
            comparison_direction=Direction[f"STABLEHLO_COMPARISON_DIRECTION_{d}"]
        )
        for d in ("GT", "EQ")
    )
    ops = [
        Op("STABLEHLO_COMPARE", [v0, v1], [is_greater], gt),
        Op("STABLEHLO_COMPARE", [v0, v1], [is_equal], eq),
        Op("STABLEHLO_SELECT", [is_greater, v0, v1], [v]),
        Op("STABLEHLO_MINIMUM", [i0, i1], [smaller]),
        Op("STABLEHLO_SELECT", [is_greater, i0, i1], [chosen]),
        Op("STABLEHLO_SELECT", [is_equal, smaller, chosen], [i]),
    ]
    return Graph([v0, i0, v1, i1], [v, i], ops)


@pytest.mark.parametrize("axis", [0, 1])
def test_several_inputs_reduce_together(axis):
    x = np.random.default_rng(0).integers(0, 6, (9, 13)).astype(np.float32)
    places = np.indices(x.shape)[axis].astype(np.int32)
    inits = [np.float32(-np.inf), np.int32(99)]
    value, place = reduced([x, places], inits, (axis,), largest_and_its_place())
    np.testing.assert_array_equal(value, x.max(axis))
    np.testing.assert_array_equal(place, x.argmax(axis))


def test_neighbours_are_taken_in_pairs_and_in_order():
    x = np.int32([17, 11, 4, 2, 1])
    body = one_operator("STABLEHLO_SUBTRACT", None, "INT32")
    (y,) = reduced([x], [np.int32(100)], (0,), body)
    assert y == 100 - (((17 - 11) - (4 - 2)) - 1)


def test_a_body_of_another_type_is_refused():
    x = np.zeros((2, 3), np.float32)
    model = reduce_model([x], [np.float32(0)], (1,), one_operator("STABLEHLO_ADD", None, "INT32"))
    with pytest.raises(RuntimeError, match=r"body subgraph takes INT32 as .*, expected FLOAT32"):
        delegraph_outputs(model, [x, np.float32(0)])


def test_a_body_of_one_input_is_refused():
    x = np.zeros((2, 3), np.float32)
    a, b = scalars("FLOAT32", 2)
    model = reduce_model([x], [np.float32(0)], (1,), Graph([a], [b], [Op("NEG", [a], [b])]))
    with pytest.raises(RuntimeError, match="has 1 inputs and 1 outputs, expected 2 and 1"):
        delegraph_outputs(model, [x, np.float32(0)])
