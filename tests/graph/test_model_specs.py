"""Declarations of tensors and operators, which are made when one is asked for."""

from __future__ import annotations

from delegraph import Interpreter
from delegraph.graph import parse_model
from delegraph.graph.model import OperatorSpec, Specs, column_of, rows_of
from delegraph.testing import graph_model, tensor

NODES = [("SIN", f"t{i}", f"t{i + 1}") for i in range(20)]
MODEL = graph_model(
    NODES, inputs="t0", outputs="t20", tensors={f"t{i}": tensor((1,)) for i in range(21)}
)


def test_each_declaration_is_one_object_with_its_index() -> None:
    operators = parse_model(MODEL).subgraphs[0].operators
    assert operators[3] is operators[3]
    assert [operator.index for operator in operators] == list(range(20))
    assert operators[-2:] == tuple(operators)[18:]


def test_columns_and_rows_are_those_of_the_declarations() -> None:
    operators = parse_model(MODEL).subgraphs[0].operators
    for given in (operators, tuple(operators)):
        assert [OperatorSpec(*row).outputs for row in rows_of(given)] == [
            operator.outputs for operator in operators
        ]
        assert list(column_of(given, "name")) == ["SIN"] * 20


def test_running_a_model_makes_no_declaration() -> None:
    with Interpreter(model_content=MODEL, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        interpreter.invoke()
        spec = interpreter.session.subgraphs[0].spec
        for specs in (spec.tensors, spec.operators):
            assert isinstance(specs, Specs)
            assert specs.made is None
