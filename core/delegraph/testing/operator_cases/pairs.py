"""Cases of operators on two or more tensors that broadcast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.testing.one_op import TensorDef, tensor
from delegraph.testing.operator_case import OperatorCase, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import ACTIVATIONS, PLAIN, QUANTIZED, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS

FUSED = ("ADD", "SUB", "MUL", "DIV")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
STABLEHLO = (
    "STABLEHLO_ADD", "STABLEHLO_AND", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM",
    "STABLEHLO_MULTIPLY", "STABLEHLO_SHIFT_LEFT",
)  # fmt: skip
OTHERS = (
    "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "LOGICAL_AND",
    "LOGICAL_OR", "BITWISE_XOR", "RIGHT_SHIFT", "ATAN2",
)  # fmt: skip


@cases_of(*FUSED, *COMPARISONS, *OTHERS, *STABLEHLO)
def pairs(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: every type and version, then random shapes and activations."""
    last = BUILTIN_VERSIONS[op][1]
    for type in PLAIN:
        for version in range(1, last + 1):
            yield pair(op, random, type, version)
    for _ in range(random.count * 2):
        type = random.pick(("FLOAT32", "INT32", *QUANTIZED, random.pick(PLAIN)))
        if op.startswith("LOGICAL_") and random.chance(0.7):
            type = "BOOL"
        yield pair(op, random, type, random.pick([last, random.number(1, last)]))


def pair(op: str, random: RandomOperands, type: str, version: int) -> OperatorCase:
    """Return a case of *op* on *type* with random shapes; floats may have unusual values."""
    shapes = random.broadcast_shapes(2, 6)
    if op in STABLEHLO:
        shapes = [shapes[0]] * 2  # shapes of equal rank are read as if they were equal
    if op == "ATAN2" and len(shapes[0]) == len(shapes[1]):
        shapes = [shapes[0]] * 2  # see above
    same = random.quantization(type, symmetric=op == "SQUARED_DIFFERENCE")
    special = random.pick([0, 0, 0.3])
    inputs = [
        random.operand(
            type, shape, special=special, quantization=operand_quantization(op, random, type, same)
        )
        for shape in shapes
    ]
    return operator_case(
        op, inputs, [output(op, random, type, same)], options(op, random), version=version
    )


def operand_quantization(
    op: str, random: RandomOperands, type: str, same: dict[str, Any]
) -> dict[str, Any]:
    """Return scale and zero point of an operand of *op*.

    *same* is the quantization of the output, for operators that require equal ones.
    """
    return same if op in ("MAXIMUM", "MINIMUM") else random.quantization(type)


def output(op: str, random: RandomOperands, type: str, same: dict[str, Any]) -> TensorDef:
    """Return the definition of the output of *op*.

    *same* is the quantization of the inputs, for operators that require equal ones.
    """
    if op in COMPARISONS:
        return tensor((), "BOOL")
    return tensor((), type, **same) if op in ("MAXIMUM", "MINIMUM") else random.output(type)


def options(op: str, random: RandomOperands) -> Any:
    """Return random options for *op*; None if it has no options."""
    table = OPTIONS_OF_OPERATOR.get(BuiltinOperator[op])
    if table is None:
        return None
    names = {field.name for field in table.FIELDS}
    given: dict[str, Any] = {}
    if "fused_activation_function" in names:
        given["fused_activation_function"] = random.pick([*ACTIVATIONS, *[ACTIVATIONS[0]] * 4])
    if "pot_scale_int16" in names:
        given["pot_scale_int16"] = random.chance(0.3)
    return table(**given)
