from __future__ import annotations

import pytest

import delegraph.kernels.ops  # noqa: F401 - declares the kernels
from delegraph.delegation.node_features import PARAMETERS
from delegraph.operators import OP_TABLE, Node, roles, roles_of
from delegraph.operators.roles import operand_roles, operands
from delegraph.testing.operator_cases import MAKERS, cases
from delegraph.testing.registered_operators import BUILTIN_VERSIONS


def test_roles_are_of_operators_that_exist() -> None:
    assert roles.WORDS.keys() - {roles.BASIC_LSTM} <= OP_TABLE.keys()


@pytest.mark.parametrize("op", sorted(MAKERS.keys() & BUILTIN_VERSIONS.keys()))
def test_inputs_of_one_role_have_one_type_in_some_case(op: str) -> None:
    """A role that mixed axes and data would have two types in every model."""
    for case in cases(op, count=3):
        types: dict[str, set[str]] = {}
        for role, type in case.input_form().types:
            types.setdefault(role, set()).add(type)
        if all(len(found) == 1 for found in types.values()):
            return
    raise AssertionError(f"inputs of {op} never have the same type")


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "expected"),
    [
        ("CONV_2D", 2, 1, "input weights output"),
        ("TRANSPOSE_CONV", 4, 1, "output_shape weights input bias output"),
        ("PACK", 3, 1, "input input input output"),
        ("TOPK_V2", 2, 2, "input k output indices"),
        ("VAR_HANDLE", 0, 1, "resource"),
        ("VAR_HANDLE", 1, 1, "input resource"),
        ("LSTM", 5, 2, "input output_state weights bias cell_state output cell_state"),
        ("Mine", 2, 2, "input input output output"),
    ],
)
def test_operands_have_roles_by_position(op: str, inputs: int, outputs: int, expected: str) -> None:
    assert " ".join(operand_roles(op, inputs, outputs)) == expected


def test_an_lstm_has_roles_for_all_of_its_inputs() -> None:
    found = operand_roles("LSTM", 24, 1)
    assert len(found) == 25
    assert found[0] == "input"
    assert set(found[1:9]) == {"weights"}
    assert found[16:20] == ("weights", "bias", "output_state", "cell_state")
    both = operand_roles("BIDIRECTIONAL_SEQUENCE_LSTM", 48, 2)
    assert both[1:18] == both[18:35] == found[1:18]
    assert both[35:40] == (*found[18:20] * 2, "aux_input")
    assert set(both[40:48]) == {"weights"}


def test_absent_operands_are_left_out() -> None:
    node = Node(0, (5, -1, 2), (7,))
    assert list(operands("CONV_2D", node)) == [("input", 5), ("bias", 2), ("output", 7)]


def test_parameters_are_roles_of_some_operator() -> None:
    assert {role for op in roles.WORDS for role in roles_of(op)} >= PARAMETERS
