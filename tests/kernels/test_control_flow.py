"""IF, WHILE and CALL_ONCE against the official interpreter."""

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.schema import options as o
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.operator_case import texts
from delegraph.testing.outputs import outputs_of
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.official import official_outputs

F = np.float32


def assert_same(model, arrays):
    ours, official = delegraph_outputs(model, arrays), official_outputs(model, arrays)
    for mine, theirs in zip(ours, official, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return ours


def binary(op, options, shape=(2,), other=None):
    """Return a subgraph with two inputs that applies *op*."""
    x, b, y = tensor(shape), tensor(shape if other is None else other), tensor(shape)
    return Graph([x, b], [y], [Op(op, [x, b], [y], options)])


def if_model(then, otherwise, shape=(2,)):
    c, a, b, y = tensor((), "BOOL"), tensor(shape), tensor(shape), tensor(shape)
    options = o.IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    return model_of(Graph([c, a, b], [y], [Op("IF", [c, a, b], [y], options)]), then, otherwise)


@pytest.mark.parametrize("condition", [True, False])
def test_if_runs_the_branch_that_the_condition_names(condition):
    model = if_model(binary("ADD", o.AddOptions()), binary("MUL", o.MulOptions()))
    arrays = [np.array(condition), F([5, 7]), F([1, 2])]
    (y,) = assert_same(model, arrays)
    assert y.tolist() == ([6, 9] if condition else [5, 14])


@pytest.mark.parametrize("condition", [True, False])
def test_if_returns_whatever_shape_the_branch_has(condition):
    x, b = tensor((2,)), tensor((2,))
    y, pads = tensor((5,)), constant(np.array([[1, 2]], np.int32))
    padding = Graph([x, b], [y], [Op("PAD", [x, pads], [y])])
    model = if_model(binary("ADD", o.AddOptions()), padding)
    (y,) = assert_same(model, [np.array(condition), F([5, 7]), F([1, 2])])
    assert y.shape == ((2,) if condition else (5,))


def counting(body, shape=(), limit=3):
    """Return a model that runs *body* on (counter, value) while the counter is below a limit."""
    i, x, n, y = tensor(()), tensor(shape), tensor(()), tensor(shape)
    options = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = Graph([i, x], [n, y], [Op("WHILE", [i, x], [n, y], options)])
    a, b, c, bound = tensor(()), tensor(shape), tensor((), "BOOL"), constant(F(limit))
    condition = Graph([a, b], [c], [Op("LESS", [a, bound], [c])])
    return model_of(main, condition, body)


def incremented(i):
    j = tensor(())
    return j, Op("ADD", [i, constant(F(1))], [j], o.AddOptions())


@pytest.mark.parametrize("start", [0, 2, 5])
def test_while_runs_the_body_as_long_as_the_condition_holds(start):
    i, x, y = tensor(()), tensor((2,)), tensor((2,))
    j, count = incremented(i)
    double = Op("ADD", [x, x], [y], o.AddOptions())
    model = counting(Graph([i, x], [j, y], [count, double]), (2,))
    n, y = assert_same(model, [F(start), F([1, 2])])
    assert n == max(start, 3)
    assert y[0] == 2 ** max(3 - start, 0)


def test_while_passes_values_through():
    i, x = tensor(()), tensor((2,))
    j, count = incremented(i)
    model = counting(Graph([i, x], [j, x], [count]), (2,))
    n, y = assert_same(model, [F(0), F([1, 2])])
    assert (n, y.tolist()) == (3, [1, 2])


def test_while_may_swap_its_values():
    i, x, y = tensor(()), tensor(()), tensor(())
    j, count = incremented(i)
    a, b, c = tensor(()), tensor(()), tensor(())
    n, u, v = tensor(()), tensor(()), tensor(())
    options = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = Graph([a, b, c], [n, u, v], [Op("WHILE", [a, b, c], [n, u, v], options)])
    p, q, r, holds = tensor(()), tensor(()), tensor(()), tensor((), "BOOL")
    less = Op("LESS", [p, constant(F(3))], [holds])
    model = model_of(main, Graph([p, q, r], [holds], [less]), Graph([i, x, y], [j, y, x], [count]))
    assert [float(z) for z in delegraph_outputs(model, [F(0), F(10), F(20)])] == [3, 20, 10]


def test_while_grows_a_tensor():
    i, x, y = tensor(()), tensor((1,)), tensor((2,))
    j, count = incremented(i)
    pads = constant(np.array([[0, 1]], np.int32))
    model = counting(Graph([i, x], [j, y], [count, Op("PAD", [x, pads], [y])]), (1,))
    _, y = assert_same(model, [F(0), F([7])])
    assert y.tolist() == [7, 0, 0, 0]


def test_while_carries_strings():
    i, x = tensor(()), tensor((2,), "STRING")
    j, count = incremented(i)
    a, b = tensor(()), tensor((2,), "STRING")
    n, y = tensor(()), tensor((2,), "STRING")
    options = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = Graph([a, b], [n, y], [Op("WHILE", [a, b], [n, y], options)])
    p, q, holds = tensor(()), tensor((2,), "STRING"), tensor((), "BOOL")
    condition = Graph([p, q], [holds], [Op("LESS", [p, constant(F(2))], [holds])])
    model = model_of(main, condition, Graph([i, x], [j, x], [count]))
    _, words = delegraph_outputs(model, [F(0), texts(b"a\0", b"b")])
    assert words.tolist() == [b"a\0", b"b"]


def test_an_error_inside_a_body_names_the_inner_operator():
    i, x, y = tensor(()), tensor((2,)), tensor((2,))
    j, count = incremented(i)
    pads = tensor((1, 2), "INT32")
    model = counting(Graph([i, x], [j, y], [count, Op("PAD", [x, pads], [y])]), (2,))
    with pytest.raises(RuntimeError, match="PAD"):
        delegraph_outputs(model, [F(0), F([1, 2])])


@pytest.mark.parametrize("index", [0, 7, -1])
def test_a_subgraph_that_does_not_exist_is_refused(index):
    c, y = tensor((), "BOOL"), tensor(())
    options = o.IfOptions(then_subgraph_index=index, else_subgraph_index=index)
    model = model_of(Graph([c], [y], [Op("IF", [c], [y], options)]))
    with pytest.raises(RuntimeError, match="subgraph"):
        delegraph_outputs(model, [np.array(True)])


def test_a_subgraph_with_other_inputs_is_refused():
    model = if_model(binary("ADD", o.AddOptions()), Graph([], []))
    with pytest.raises(RuntimeError, match="else subgraph has 0 inputs and 0 outputs"):
        delegraph_outputs(model, [np.array(True), F([1, 2]), F([1, 2])])


def test_a_subgraph_of_another_type_is_refused_while_preparing():
    x, y = tensor((2,), "INT32"), tensor((2,), "INT32")
    other = Graph([x, x], [y], [Op("ADD", [x, x], [y], o.AddOptions())])
    interpreter = Interpreter(model_content=if_model(binary("ADD", o.AddOptions()), other))
    with pytest.raises(RuntimeError, match=r"else subgraph takes INT32 as .*, expected FLOAT32"):
        interpreter.allocate_tensors()


def test_call_once_runs_at_the_first_invoke_only():
    handle, start = tensor((), "RESOURCE"), constant(F(2))
    inner = tensor((), "RESOURCE")
    x, old, y = tensor(()), tensor(()), tensor(())
    name = o.VarHandleOptions(container="", shared_name="v")
    main = Graph(
        [x],
        [y],
        [
            Op("CALL_ONCE", [], [], o.CallOnceOptions(init_subgraph_index=1)),
            Op("VAR_HANDLE", [], [handle], name),
            Op("READ_VARIABLE", [handle], [old]),
            Op("MUL", [old, x], [y], o.MulOptions()),
            Op("ASSIGN_VARIABLE", [handle, y], []),
        ],
    )
    assign = Op("ASSIGN_VARIABLE", [inner, start], [])
    model = model_of(main, Graph([], [], [Op("VAR_HANDLE", [], [inner], name), assign]))
    interpreter = Interpreter(model_content=model)
    assert [float(outputs_of(interpreter, [F(3)])[0]) for _ in range(3)] == [6, 18, 54]


@pytest.mark.parametrize(
    ("number", "result"), [(0, [6, 9]), (1, [5, 14]), (7, [5, 14]), (-1, [5, 14])]
)
def test_case_runs_the_branch_of_its_number_or_the_last(number, result):
    i, a, b, y = tensor((), "INT32"), tensor((2,)), tensor((2,)), tensor((2,))
    options = o.StablehloCaseOptions(branch_subgraph_indices=(1, 2))
    main = Graph([i, a, b], [y], [Op("STABLEHLO_CASE", [i, a, b], [y], options)])
    model = model_of(main, binary("ADD", o.AddOptions()), binary("MUL", o.MulOptions()))
    (y,) = assert_same(model, [np.array(number, np.int32), F([5, 7]), F([1, 2])])
    assert y.tolist() == result


def test_subgraphs_that_call_each_other_are_refused():
    def calling(index):
        c, y = tensor((), "BOOL"), tensor((), "BOOL")
        options = o.IfOptions(then_subgraph_index=index, else_subgraph_index=index)
        return Graph([c, c], [y], [Op("IF", [c, c, c], [y], options)])

    model = model_of(calling(1), calling(2), calling(1))
    with pytest.raises(RuntimeError, match="subgraph 1 calls itself through other subgraphs"):
        delegraph_outputs(model, [np.array(True), np.array(True)])


@pytest.mark.parametrize("position", [0, 1])
def test_a_body_that_returns_what_nothing_makes_is_refused(position):
    a, v, w = tensor(()), tensor(()), tensor(())
    j, step = incremented(a)
    model = counting(Graph([a, v], [w, v] if position == 0 else [j, w], [step]))
    with pytest.raises(NodeError, match=r"body subgraph returns .*, which lacks data"):
        delegraph_outputs(model, [F(0), F(0)])


def test_a_branch_that_returns_its_constant_is_run():
    x, b = tensor((2,)), tensor((2,))
    model = if_model(binary("ADD", o.AddOptions()), Graph([x, b], [constant(F([3, 4]))], []))
    (y,) = assert_same(model, [np.array(False), F([5, 7]), F([1, 2])])
    assert y.tolist() == [3, 4]


def test_a_constant_takes_no_values():
    fixed, b, y = constant(F([1, 2])), tensor((2,)), tensor((2,))
    branch = Graph([fixed, b], [y], [Op("ADD", [fixed, b], [y], o.AddOptions())])
    with pytest.raises(NodeError, match="which is a constant"):
        delegraph_outputs(if_model(branch, branch), [np.array(True), F([5, 7]), F([1, 2])])
