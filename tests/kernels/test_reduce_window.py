"""REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.schema.enums import ReduceWindowFunction as Function
from delegraph.testing import constant, delegraph_outputs, fed, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.official import official_outputs
from support.stablehlo import tensor_like

FUNCTIONS = [function for function in Function if function != Function.UNSUPPORTED]
DTYPES = ["float32", "float64", "int8", "uint8", "int64", "bool"]
# shape, window, strides, window dilations, base dilations, padding
CASES = {
    "pooling": ((1, 6, 7, 2), (1, 2, 3, 1), (1, 2, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), (0,) * 8),
    "padded": ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1, 0, 2)),
    "cropped": ((5, 6), (2, 2), (1, 1), (1, 1), (1, 1), (-1, 0, 2, -2)),
    "dilated": ((5, 6), (2, 3), (2, 1), (2, 2), (1, 1), (0, 0, 1, 1)),
    "spread": ((3, 4), (2, 2), (1, 2), (1, 1), (3, 2), (0, 1, 0, 0)),
    "running sums": ((9,), (9,), (1,), (1,), (1,), (8, 0)),
}
BODIES = [
    ("ADD", o.AddOptions()),
    ("MAXIMUM", o.MaximumMinimumOptions()),
    ("STABLEHLO_ADD", None),
    ("STABLEHLO_MULTIPLY", None),
    ("STABLEHLO_MINIMUM", None),
    ("STABLEHLO_AND", None),
]


def values(shape, dtype):
    rng = np.random.default_rng(0)
    if dtype.startswith("float"):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 2 if dtype == "bool" else 120, shape).astype(dtype)


def window_inputs(x, init, window, strides, dilations):
    parameters = (constant(np.array(p, np.int64)) for p in (window, strides, dilations))
    return [fed(x), fed(init), *parameters]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("case", ["pooling", "dilated", "running sums"])
def test_windows_are_reduced_as_officially(case, function, dtype):
    shape, window, strides, dilations, *_ = CASES[case]
    x = values(shape, dtype)
    inputs = window_inputs(x, np.ones((), dtype), window, strides, dilations)
    options = o.ReduceWindowOptions(reduce_function=function)
    assert_agrees("REDUCE_WINDOW", inputs, [inputs[0].definition.type.name], options)


@pytest.mark.parametrize("function", [Function.MAXIMUM, Function.MINIMUM])
def test_what_is_no_number_gives_way_as_officially(function):
    x = np.float32([1, np.nan, 2, 3, np.nan, np.nan, -1])
    inputs = window_inputs(x, np.float32(0), (3,), (1,), (1,))
    options = o.ReduceWindowOptions(reduce_function=function)
    assert_agrees("REDUCE_WINDOW", inputs, ["FLOAT32"], options)


def test_a_window_larger_than_its_input_gives_nothing():
    inputs = window_inputs(np.float32([1, 2]), np.float32(0), (3,), (1,), (1,))
    options = o.ReduceWindowOptions(reduce_function=Function.ADD)
    (y,) = assert_agrees("REDUCE_WINDOW", inputs, ["FLOAT32"], options)
    assert y.shape == (0,)


def test_a_reduction_must_be_named():
    inputs = window_inputs(np.float32([1, 2]), np.float32(0), (2,), (1,), (1,))
    given, y = o.ReduceWindowOptions(), ["FLOAT32"]
    model, arrays = model_and_arrays("REDUCE_WINDOW", inputs, y, given)
    with pytest.raises(RuntimeError, match="reduce_function is UNSUPPORTED"):
        delegraph_outputs(model, arrays)


def test_fed_windows_are_refused():
    x, init, _, *rest = window_inputs(np.float32([1, 2]), np.float32(0), (2,), (1,), (1,))
    inputs = [x, init, fed(np.array([2])), *rest]
    options = o.ReduceWindowOptions(reduce_function=Function.ADD)
    message = "expected a constant"
    assert_both_refuse("REDUCE_WINDOW", inputs, ["FLOAT32"], options, match=message)


def stablehlo_model(x, init, body, window, strides, dilations, base, padding):
    options = o.StablehloReduceWindowOptions(
        window_dimensions=window,
        window_strides=strides,
        window_dilations=dilations,
        base_dilations=base,
        padding=padding,
        body_subgraph_index=1,
    )
    kind = tensor_like(x).type.name
    a, b, y = tensor_like(x), tensor_like(init), tensor(x.shape, kind)
    main = Graph([a, b], [y], [Op("STABLEHLO_REDUCE_WINDOW", [a, b], [y], options)])
    c, d, e = (tensor((), kind) for _ in range(3))
    return model_of(main, Graph([c, d], [e], [Op(body[0], [c, d], [e], body[1])]))


BODIES_AND_TYPES = [
    (body, dtype)
    for body in BODIES
    for dtype in ("float32", "int32")
    if (body[0], dtype) != ("STABLEHLO_AND", "float32")
]


@pytest.mark.parametrize(("body", "dtype"), BODIES_AND_TYPES)
@pytest.mark.parametrize("case", CASES)
def test_padded_windows_are_reduced_as_officially(case, body, dtype):
    shape, *geometry = CASES[case]
    x, init = values(shape, dtype), np.array(2, dtype)
    model = stablehlo_model(x, init, body, *geometry)
    (ours,), (official,) = (run(model, [x, init]) for run in (delegraph_outputs, official_outputs))
    np.testing.assert_array_equal(ours, official)


def test_of_several_initial_values_the_first_counts():
    x, init = np.float32([1, -2, 3]), np.float32([2, 5])
    model = stablehlo_model(x, init, BODIES[0], (2,), (1,), (1,), (1,), (1, 1))
    (ours,), (official,) = (run(model, [x, init]) for run in (delegraph_outputs, official_outputs))
    np.testing.assert_array_equal(ours, official)


def test_other_bodies_are_refused():
    x, init = np.float32([1, 2]), np.float32(0)
    body = ("STABLEHLO_SUBTRACT", None)
    model = stablehlo_model(x, init, body, (2,), (1,), (1,), (1,), (0, 0))
    with pytest.raises(RuntimeError, match=r"reduction is \['STABLEHLO_SUBTRACT'\]"):
        delegraph_outputs(model, [x, init])


def test_padding_that_leaves_nothing_is_refused():
    x, init = np.float32([1, 2]), np.float32(0)
    model = stablehlo_model(x, init, BODIES[2], (1,), (1,), (1,), (1,), (-1, -1))
    with pytest.raises(RuntimeError):
        official_outputs(model, [x, init])
    with pytest.raises(RuntimeError, match=r"leaves \[0\]"):
        delegraph_outputs(model, [x, init])
