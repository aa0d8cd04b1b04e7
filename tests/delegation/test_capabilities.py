from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import Capabilities, Claim, DelegateContext, Interpreter, Rejection
from delegraph.delegation.capabilities import Tolerance
from delegraph.delegation.node_traits import NodeTraits
from delegraph.errors import ArgumentError
from delegraph.schema.enums import ActivationFunctionType, TensorType
from delegraph.schema.options import AddOptions, Conv2DOptions
from delegraph.testing.one_op import TensorDef, constant, one_op_model, tensor
from delegraph.testing.several_ops import graph_model
from support.looking import Looking


@pytest.mark.parametrize("part", ["relative", "absolute"])
@pytest.mark.parametrize("value", [-1e-9, math.nan])
def test_a_tolerance_is_not_negative(part: str, value: float) -> None:
    with pytest.raises(ArgumentError, match="has a negative part"):
        Tolerance(**{part: value})
    assert Tolerance(0.0, 0.0) == Tolerance()


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (("ADD", "FLOAT33"), {}, r"claim of \('ADD',\): no TensorType 'FLOAT33'; clos"),
        (("ADD", "float"), {}, "no TensorType 'float'; close names: FLOAT32, FLOAT16, FLOAT64"),
        (("ADD", "q15"), {}, "no TensorType 'q15'; there are: FLOAT32, FLOAT16, "),
        (("ADD", "FLOAT32", "spares"), {}, r"no feature 'spares'; there are: .*sparse"),
        (([], "FLOAT32"), {}, "names at least one operator and one type"),
        (("ADD", []), {}, "names at least one operator and one type"),
        (("ADD",), {"input": []}, "names at least one operator and one type"),
        (("CONV_2D",), {"weights": "INT33"}, "no TensorType 'INT33'"),
        (
            (["CONV_2D", "ADD"],),
            {"weights": "INT8"},
            "ADD has no operand 'weights'; there are: input, output",
        ),
        (("ADD", "INT8"), {"versions": (2, 1)}, r"versions \(2, 1\) are not in order"),
        (
            ("ADD", "INT8"),
            {"activations": "RELU7"},
            "no activation function 'RELU7'; close names: RELU",
        ),
    ],
)
def test_a_claim_refuses_names_that_do_not_exist(
    names: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        Claim(*names, **more)


def add(*types: str, operator: str = "ADD", **more: Any) -> NodeTraits:
    """The form of an operator with two inputs and an output."""
    return NodeTraits(
        operator, tuple(zip(("input", "input", "output"), types, strict=True)), **more
    )


FLOATS = ("FLOAT32",) * 3


@pytest.mark.parametrize(
    ("form", "features", "expected"),
    [
        (add(*FLOATS), (), True),
        (add("FLOAT32", "FLOAT32", "INT32", operator="SUB"), ("empty", "scalar"), True),
        (add(*FLOATS, operator="MUL"), (), False),
        (add("FLOAT32", "FLOAT32", "INT8"), (), False),
        (add(*FLOATS), ("sparse",), False),
        (add(*FLOATS), ("scalar", "sparse"), False),
        (add(*FLOATS, version=9), (), True),
        (add(*FLOATS, activation="RELU"), ("activation",), False),
    ],
)
def test_a_claim_covers_what_has_no_name_beyond_it(
    form: NodeTraits, features: tuple[str, ...], expected: bool
) -> None:
    claim = Claim(["ADD", "SUB"], ["FLOAT32", "INT32"], "scalar", "empty")
    assert claim.covers(form, set(features)) is expected
    others = [Claim("MUL", "INT8", "sparse"), claim]
    assert Capabilities(others).covers(form, set(features)) is expected


def conv(
    input: str = "FLOAT32", weights: str = "INT8", bias: str = "FLOAT32", **more: Any
) -> NodeTraits:
    types = (("input", input), ("weights", weights), ("bias", bias), ("output", input))
    return NodeTraits("CONV_2D", types, **more)


HYBRID = Claim("CONV_2D", "FLOAT32", weights=["INT8", "INT4"], versions=(2, 5))
LOOSE = Claim("CONV_2D", input="FLOAT32", weights="INT8", activations=["RELU", "RELU6"])


@pytest.mark.parametrize(
    ("claim", "form", "misfit"),
    [
        (HYBRID, conv(version=2), None),
        (HYBRID, conv(weights="INT4", version=5), None),
        (HYBRID, conv("INT8", bias="INT32", version=2), 0),
        (HYBRID, conv(weights="FLOAT32", version=2), 1),
        (HYBRID, conv(bias="INT32", version=2), 2),
        (HYBRID, conv(version=1), 4),
        (HYBRID, conv(version=6), 4),
        (HYBRID, conv(version=5, activation="RELU"), 5),
        (LOOSE, conv(), None),
        (LOOSE, conv(bias="INT64", version=7, activation="RELU6"), None),
        (LOOSE, conv(weights="INT4"), 1),
        (LOOSE, conv(activation="TANH"), 5),
        (Claim("CONV_2D", "INT8", "activation", bias="INT32"), conv("INT8", bias="INT32"), None),
        (Claim("CONV_2D", "INT8", "activation"), conv("INT8", bias="INT32"), 2),
        (Claim("CONV_2D", ["INT8", "INT32"], "activation"), conv("INT32", activation="TANH"), 2),
    ],
)
def test_a_claim_says_where_a_node_does_not_fit(
    claim: Claim, form: NodeTraits, misfit: int | None
) -> None:
    assert claim.misfit(form) == misfit
    assert claim.covers(form) is (misfit is None)


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


def add_and_shape() -> bytes:
    """A model of an ADD of tensors 0 and 1, floats, and of a SHAPE, which gives integers."""
    return graph_model(
        [("ADD", "x y", "sum", AddOptions()), ("SHAPE", "sum", "shape")],
        inputs="x y",
        outputs="shape",
        tensors={"shape": TensorDef((1,), TensorType.INT32)},
    )


def answers(
    capabilities: Capabilities,
    model: bytes | None = None,
    check: Callable[..., bool | Rejection] = Capabilities.check,
) -> list[bool | Rejection]:
    """What is said of the nodes of a model, :func:`add_and_shape` if there is none."""
    found: list[bool | Rejection] = []

    def see(context: DelegateContext) -> None:
        for index in context.get_execution_plan():
            node, registration = context.get_node_and_registration(index)
            found.append(check(capabilities, registration, node, context))

    with Interpreter(model_content=model or add_and_shape()) as interpreter:
        interpreter.modify_graph_with_delegate(Looking(see))
    return found


def test_a_node_is_covered_by_any_claim_of_its_operator() -> None:
    claims = [Claim("ADD", "INT8"), Claim(["ADD", "SHAPE"], ["FLOAT32", "INT32"])]
    assert answers(Capabilities(claims)) == [True, True]


def dtype(role: str, actual: str, expected: str, tensor: int) -> Rejection:
    verb = "are" if "," in expected else "is"
    message = f"{role} is {actual}; claimed {verb} {expected}"
    return Rejection("dtype", message, actual, expected, tensor)


def test_a_node_that_is_not_covered_says_which_operator_or_operand_is_in_the_way() -> None:
    assert answers(Capabilities([Claim(["ADD", "SHAPE"], "INT32")])) == [
        dtype("input", "FLOAT32", "INT32", tensor=0),
        dtype("input", "FLOAT32", "INT32", tensor=2),
    ]
    assert answers(Capabilities([Claim("SHAPE", "FLOAT32"), Claim("SUB", "INT8")])) == [
        Rejection("op", actual="ADD", expected="SHAPE or SUB"),
        dtype("output", "INT32", "FLOAT32", tensor=3),
    ]


def test_a_refusal_names_what_all_claims_of_the_operator_would_take() -> None:
    claims = [Claim("SHAPE", name) for name in ("UINT8", "INT8", "INT16")]
    found = answers(Capabilities([Claim("ADD", "FLOAT32"), *claims]))
    assert found[1] == dtype("input", "FLOAT32", "UINT8, INT8, INT16", tensor=2)


def test_a_refusal_compares_with_the_claim_that_fits_best() -> None:
    """Of SHAPE's operands the input is FLOAT32: the claim of INT8 is out of the question."""
    claims = [Claim("SHAPE", ["FLOAT32", "INT64"]), Claim("SHAPE", "INT8")]
    found = answers(Capabilities([Claim("ADD", "FLOAT32"), *claims]))
    assert found[1] == dtype("output", "INT32", "FLOAT32, INT64", tensor=3)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([HYBRID], "version is 1; claimed is 2-5"),
        ([HYBRID, Claim("CONV_2D", "INT8")], "version is 1; claimed is 2-5"),
        (
            [Claim("CONV_2D", "FLOAT32"), Claim("CONV_2D", "FLOAT32", weights="FLOAT16")],
            "weights are INT8; claimed are FLOAT32, FLOAT16",
        ),
        ([LOOSE], "activation is TANH; claimed are NONE, RELU, RELU6"),
        ([Claim("CONV_2D", bias="FLOAT32", weights=["INT8"], input="INT8")], "input is FLOAT32; "),
    ],
)
def test_a_refusal_names_role_version_or_activation(claims: list[Claim], reason: str) -> None:
    options = Conv2DOptions(
        stride_w=1, stride_h=1, fused_activation_function=ActivationFunctionType.TANH
    )
    weights = constant(np.ones((4, 1, 1, 3), np.int8), scale=0.5)
    bias = constant(np.zeros(4, np.float32))
    model = one_op_model(
        "CONV_2D", [tensor((1, 2, 2, 3)), weights, bias], [tensor((1, 2, 2, 4))], options
    )
    (found,) = answers(Capabilities(claims), model)
    assert str(found).startswith(reason)


def test_long_lists_are_cut_short() -> None:
    claims = [Claim([f"Custom{i}" for i in range(90)], "FLOAT32")]
    rejection = answers(Capabilities(claims))[0]
    assert isinstance(rejection, Rejection)
    assert str(rejection.expected).endswith(", Custom7 or 82 others")


BROADCAST_5D = one_op_model(
    "ADD", [tensor((1, 2, 1, 3, 1)), tensor((1, 2, 4, 3, 1))], [tensor((1, 2, 4, 3, 1))]
)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([Claim("ADD", "FLOAT32", "broadcast", "many-dims", "scalar")], "True"),
        (
            [Claim("ADD", "FLOAT32", "broadcast")],
            "ADD with many-dims (more than four dimensions) is not claimed",
        ),
        (
            [Claim("ADD", "FLOAT32", "broadcast"), Claim("ADD", "FLOAT32", "many-dims")],
            "ADD with broadcast (inputs of different shapes) and many-dims (more than four "
            "dimensions) is not claimed",
        ),
    ],
)
def test_a_refusal_names_the_features_that_no_claim_has(claims: list[Claim], reason: str) -> None:
    (found,) = answers(Capabilities(claims), BROADCAST_5D, Capabilities.check_features)
    assert str(found) == reason


@pytest.mark.parametrize(
    ("name", "right"), [("SINE", "SIN"), ("Conv2D", "CONV_2D"), ("FULLYCONNECTED", "FULLY_CONN")]
)
def test_a_misspelled_operator_is_logged_once(
    name: str, right: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        Claim(name, "FLOAT32")
    (record,) = caplog.records
    assert f"operator {name!r}, which only a custom operator can be" in record.getMessage()
    assert f"the builtin operator is {right}" in record.getMessage()


@pytest.mark.parametrize("name", ["FlexErf", "MY_OP", "edgetpu-custom-op", "MAX_UNPOOLING"])
def test_a_custom_operator_is_not_suspected(name: str, caplog: pytest.LogCaptureFixture) -> None:
    Claim(name, "FLOAT32")
    assert not caplog.records
