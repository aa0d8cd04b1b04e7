"""STABLEHLO_SORT, against the specification."""

import numpy as np
import pytest

from delegraph.kernels.stablehlo.sort import network_order
from delegraph.schema import options as o
from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.enums import StablehloComparisonType as Comparison
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.stablehlo import tensor_like


def relation(name, kind=Comparison.STABLEHLO_COMPARISON_TYPE_NOTYPE):
    direction = Direction[f"STABLEHLO_COMPARISON_DIRECTION_{name}"]
    return o.StablehloCompareOptions(comparison_direction=direction, compare_type=kind)


def arguments(kinds):
    return [tensor((), kind) for kind in kinds for _ in range(2)]


def by(kinds, position, options, *, swapped=False):
    """Return a comparator of the inputs at one position."""
    given, y = arguments(kinds), tensor((), "BOOL")
    pair = given[2 * position : 2 * position + 2]
    compare = Op("STABLEHLO_COMPARE", pair[::-1] if swapped else pair, [y], options)
    return Graph(given, [y], [compare])


def sorted_by(comparator, arrays, axis, *, is_stable=True):
    inputs, outputs = ([tensor_like(array) for array in arrays] for _ in range(2))
    options = o.StablehloSortOptions(
        dimension=axis, is_stable=is_stable, comparator_subgraph_index=1
    )
    main = Graph(inputs, outputs, [Op("STABLEHLO_SORT", inputs, outputs, options)])
    return delegraph_outputs(model_of(main, comparator), arrays)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["LT", "GT"])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_inputs_are_sorted_together_and_equal_ones_stay_in_order(name, axis, is_swapped):
    rng = np.random.default_rng(0)
    key = rng.integers(0, 5, (7, 9)).astype(np.int16)
    values = np.arange(63, dtype=np.float32).reshape(7, 9)
    comparator = by(["FLOAT32", "INT16"], 1, relation(name), swapped=is_swapped)
    found_values, found_key = sorted_by(comparator, [values, key], axis)
    sign = 1 if (name == "LT") != is_swapped else -1
    order = np.argsort(sign * key, axis=axis, kind="stable")
    np.testing.assert_array_equal(found_key, np.take_along_axis(key, order, axis))
    np.testing.assert_array_equal(found_values, np.take_along_axis(values, order, axis))


def test_litert_s_less_is_a_comparator():
    given, y = arguments(["FLOAT32"]), tensor((), "BOOL")
    comparator = Graph(given, [y], [Op("LESS", given, [y])])
    (found,) = sorted_by(comparator, [np.float32([3, 1, 2])], 0)
    assert found.tolist() == [1, 2, 3]


def test_the_total_order_has_a_place_for_every_float():
    x = np.float32([np.nan, 0.0, -0.0, np.inf, -np.inf, 1, -np.nan])
    kind = Comparison.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
    (found,) = sorted_by(by(["FLOAT32"], 0, relation("LT", kind)), [x], 0)
    np.testing.assert_array_equal(found[1:-1], np.float32([-np.inf, -0.0, 0.0, 1, np.inf]))
    assert np.isnan(found[[0, -1]]).all()
    assert np.signbit(found).tolist() == [True, True, True, False, False, False, False]


def by_magnitude_of_remainders():
    """Return a comparator of two operators: ``a % 4 < b % 4``, with the divisor fed as well."""
    a, b, four, four_too = arguments(["INT32", "INT32"])
    c, d, y = tensor((), "INT32"), tensor((), "INT32"), tensor((), "BOOL")
    ops = [
        Op("STABLEHLO_REMAINDER", [a, four], [c]),
        Op("STABLEHLO_REMAINDER", [b, four_too], [d]),
        Op("STABLEHLO_COMPARE", [c, d], [y], relation("LT")),
    ]
    return Graph([a, b, four, four_too], [y], ops)


@pytest.mark.parametrize("length", [0, 1, 2, 5, 16, 33])
def test_any_comparator_sorts(length):
    x = np.random.default_rng(0).integers(0, 100, (length, 3)).astype(np.int32)
    found, _ = sorted_by(by_magnitude_of_remainders(), [x, np.full_like(x, 4)], 0)
    order = np.argsort(x % 4, axis=0, kind="stable")
    np.testing.assert_array_equal(found, np.take_along_axis(x, order, 0))


def test_comparators_with_constants_run_for_each_pair():
    a, b = arguments(["INT32"])
    c, d, y = tensor((), "INT32"), tensor((), "INT32"), tensor((), "BOOL")
    minus = constant(np.int32(-1))
    ops = [
        Op("MUL", [a, minus], [c], o.MulOptions()),
        Op("MUL", [b, minus], [d], o.MulOptions()),
        Op("STABLEHLO_COMPARE", [c, d], [y], relation("LT")),
    ]
    (found,) = sorted_by(Graph([a, b], [y], ops), [np.int32([3, 1, 4, 2])], 0)
    assert found.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize("length", range(1, 18))
def test_the_network_sorts_every_length(length):
    keys = np.random.default_rng(length).integers(0, 6, (length, 50))

    def less(a, b):
        return np.take_along_axis(keys, a, 0) < np.take_along_axis(keys, b, 0)

    found = network_order(keys.shape, less)
    np.testing.assert_array_equal(found, np.argsort(keys, axis=0, kind="stable"))


def test_a_comparator_that_returns_no_truth_is_refused():
    given, y = arguments(["INT32"]), tensor((), "INT32")
    comparator = Graph(given, [y], [Op("STABLEHLO_ADD", given, [y])])
    with pytest.raises(RuntimeError, match="comparator returns INT32, expected BOOL"):
        sorted_by(comparator, [np.int32([2, 1])], 0)


def test_a_dimension_that_is_none_is_refused():
    with pytest.raises(RuntimeError, match="dimension is 1"):
        sorted_by(by(["INT32"], 0, relation("LT")), [np.int32([2, 1])], 1)
