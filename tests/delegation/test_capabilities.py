from __future__ import annotations

import math
from typing import Any

import pytest

from delegraph import Capabilities, Claim, DelegateContext, Interpreter, Rejection
from delegraph.delegation.capabilities import Tolerance
from delegraph.errors import ArgumentError
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions
from delegraph.testing.one_op import TensorDef
from delegraph.testing.several_ops import graph_model
from support.looking import Looking


@pytest.mark.parametrize("part", ["relative", "absolute"])
@pytest.mark.parametrize("value", [-1e-9, math.nan])
def test_a_tolerance_is_not_negative(part: str, value: float) -> None:
    with pytest.raises(ArgumentError, match="has a negative part"):
        Tolerance(**{part: value})
    assert Tolerance(0.0, 0.0) == Tolerance()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("ADD", "FLOAT33"), r"claim of \('ADD',\): no TensorType 'FLOAT33'"),
        (("ADD", "FLOAT32", "spares"), r"no feature 'spares'; there are: .*sparse"),
        (([], "FLOAT32"), "names at least one operator and one type"),
        (("ADD", []), "names at least one operator and one type"),
    ],
)
def test_a_claim_refuses_names_that_do_not_exist(names: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Claim(*names)


@pytest.mark.parametrize(
    ("operator", "types", "features", "expected"),
    [
        ("ADD", {"FLOAT32"}, (), True),
        ("SUB", {"FLOAT32", "INT32"}, ("empty", "scalar"), True),
        ("MUL", {"FLOAT32"}, (), False),
        ("ADD", {"FLOAT32", "INT8"}, (), False),
        ("ADD", {"FLOAT32"}, ("sparse",), False),
        ("ADD", {"FLOAT32"}, ("scalar", "sparse"), False),
    ],
)
def test_a_claim_covers_what_has_no_name_beyond_it(
    operator: str, types: set[str], features: tuple[str, ...], expected: bool
) -> None:
    claim = Claim(["ADD", "SUB"], ["FLOAT32", "INT32"], "scalar", "empty")
    assert claim.covers(operator, types, set(features)) is expected
    others = [Claim("MUL", "INT8", "sparse"), claim]
    assert Capabilities(others).covers(operator, types, set(features)) is expected


def test_a_tolerance_is_for_a_type_that_exists() -> None:
    with pytest.raises(ArgumentError, match="tolerance: no TensorType 'FLOAT'"):
        Capabilities(tolerance={"FLOAT": Tolerance()})


def test_types_without_a_tolerance_have_the_usual_one() -> None:
    given = Capabilities(tolerance={"FLOAT32": Tolerance()})
    assert given.tolerance_of(TensorType.FLOAT32) == Tolerance()
    for name in ("FLOAT16", "BFLOAT16", "FLOAT64", "COMPLEX64", "COMPLEX128"):
        usual = given.tolerance_of(TensorType[name])
        assert 0 < usual.absolute < usual.relative < 0.1
    assert given.tolerance_of(TensorType.INT8) == Tolerance()


def answers(capabilities: Capabilities) -> list[bool | Rejection]:
    """What is said of an ADD of tensors 0 and 1, floats, and of a SHAPE, which gives integers."""
    found: list[bool | Rejection] = []

    def see(context: DelegateContext) -> None:
        for index in context.get_execution_plan():
            node, registration = context.get_node_and_registration(index)
            found.append(capabilities.check(registration, node, context))

    model = graph_model(
        [("ADD", "x y", "sum", AddOptions()), ("SHAPE", "sum", "shape")],
        inputs="x y",
        outputs="shape",
        tensors={"shape": TensorDef((1,), TensorType.INT32)},
    )
    with Interpreter(model_content=model) as interpreter:
        interpreter.modify_graph_with_delegate(Looking(see))
    return found


def test_a_node_is_covered_by_any_claim_of_its_operator() -> None:
    claims = [Claim("ADD", "INT8"), Claim(["ADD", "SHAPE"], ["FLOAT32", "INT32"])]
    assert answers(Capabilities(claims)) == [True, True]


def test_a_node_that_is_not_covered_says_which_operator_or_tensor_is_in_the_way() -> None:
    assert answers(Capabilities([Claim(["ADD", "SHAPE"], "INT32")])) == [
        Rejection("dtype", actual="FLOAT32", expected="INT32", tensor=0),
        Rejection("dtype", actual="FLOAT32", expected="INT32", tensor=2),
    ]
    assert answers(Capabilities([Claim("SHAPE", "FLOAT32"), Claim("SUB", "INT8")])) == [
        Rejection("op", actual="ADD", expected="SHAPE or SUB"),
        Rejection("dtype", actual="INT32", expected="FLOAT32", tensor=3),
    ]


def test_a_refusal_names_what_all_claims_of_the_operator_would_take() -> None:
    claims = [Claim("SHAPE", name) for name in ("UINT8", "INT8", "INT16")]
    assert answers(Capabilities([Claim("ADD", "FLOAT32"), *claims]))[1] == Rejection(
        "dtype", actual="FLOAT32", expected="UINT8 or INT8 or INT16", tensor=2
    )


def test_a_refusal_compares_with_the_claim_that_fits_best() -> None:
    """Of SHAPE's tensors the first is FLOAT32: the claim of INT8 is out of the question."""
    claims = [Claim("SHAPE", ["FLOAT32", "INT64"]), Claim("SHAPE", "INT8")]
    assert answers(Capabilities([Claim("ADD", "FLOAT32"), *claims]))[1] == Rejection(
        "dtype", actual="INT32", expected="FLOAT32 or INT64", tensor=3
    )


def test_long_lists_are_cut_short() -> None:
    claims = [Claim([f"Custom{i}" for i in range(90)], "FLOAT32")]
    rejection = answers(Capabilities(claims))[0]
    assert isinstance(rejection, Rejection)
    assert str(rejection.expected).endswith("or Custom7 or 82 others")
