"""Cases of element-wise operators on one tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from delegraph.schema.enums import TensorType
from delegraph.schema.options import CastOptions, FakeQuantOptions, GeluOptions, LeakyReluOptions
from delegraph.testing.one_op import TensorDef, tensor
from delegraph.testing.operator_case import OperatorCase, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import PLAIN, QUANTIZED, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS

FUNCTIONS = (
    "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGICAL_NOT", "LOGISTIC",
    "NEG", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT",
    "SQUARE", "TANH", "ZEROS_LIKE", "GELU", "LEAKY_RELU", "COMPLEX_ABS", "REAL", "IMAG",
)  # fmt: skip

MAIN_TYPES = {
    "COMPLEX_ABS": "COMPLEX64",
    "IMAG": "COMPLEX64",
    "LOGICAL_NOT": "BOOL",
    "REAL": "COMPLEX64",
}
"""Mapping from each operator that takes no floats to its main type."""

FIXED_OUTPUTS: dict[tuple[str, str], dict[str, Any]] = {
    ("LOGISTIC", "INT8"): {"scale": 1 / 256, "zero_point": -128},
    ("LOGISTIC", "UINT8"): {"scale": 1 / 256, "zero_point": 0},
    ("LOGISTIC", "INT16"): {"scale": 1 / 32768},
    ("TANH", "INT8"): {"scale": 1 / 128, "zero_point": 0},
    ("TANH", "UINT8"): {"scale": 1 / 128, "zero_point": 128},
    ("TANH", "INT16"): {"scale": 1 / 32768},
}
"""Mapping from operator and type to the output quantization that the kernel requires."""


@cases_of(*FUNCTIONS)
def functions(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: every type and version first, then random cases with unusual values."""
    for type in PLAIN:
        for version in range(1, BUILTIN_VERSIONS[op][1] + 1):
            yield function(op, random, type, random.shape(), version)
    for _ in range(random.count):
        type = random.pick(("FLOAT32", *QUANTIZED, random.pick(PLAIN)))
        if op in MAIN_TYPES and random.chance(0.7):
            type = MAIN_TYPES[op]
        yield function(op, random, type, random.shape(high=6), BUILTIN_VERSIONS[op][1])


def function(
    op: str, random: RandomOperands, type: str, shape: Sequence[int], version: int
) -> OperatorCase:
    """Return a case of *op* on *type* and *shape*, with usual and unusual values."""
    x = random.fed(type, shape, special=random.pick([0, 0.3]), spread=random.pick([0.3, 3, 30]))
    output = fixed_output(op, random, type)
    if op in ("COMPLEX_ABS", "REAL", "IMAG"):
        output = tensor((), "FLOAT32")
    return operator_case(op, [x], [output], options(op, random), version=version)


def fixed_output(op: str, random: RandomOperands, type: str) -> TensorDef:
    """Return an output of *type* with the quantization that *op* requires, rarely with another."""
    fixed = FIXED_OUTPUTS.get((op, type))
    return random.output(type) if fixed is None else tensor((), type, **fixed)


def options(op: str, random: RandomOperands) -> Any:
    """Return random options for *op*; None if it has no options."""
    if op == "GELU":
        return GeluOptions(approximate=random.chance(0.5))
    if op == "LEAKY_RELU":
        return LeakyReluOptions(alpha=random.pick([0.1, 0.2, 1.5, -0.3, 0.0]))
    return None


@cases_of("CAST")
def casts(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield a case of *op* for every pair of types."""
    types = (*PLAIN, "FLOAT64", "UINT4")
    for source in types:
        for target in types:
            x = random.fed(source, random.shape(), spread=random.pick([2, 90]), quantization={})
            casting = CastOptions(in_data_type=TensorType[source], out_data_type=TensorType[target])
            yield operator_case(op, [x], [target], casting, version=9)


@cases_of("FAKE_QUANT")
def fake_quantization(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: ranges that include zero, with several numbers of bits."""
    for _ in range(random.count):
        low = float(random.rng.uniform(-6, 1))
        fake = FakeQuantOptions(
            min=low,
            max=low + float(random.rng.uniform(0.1, 9)),
            num_bits=random.pick([8, 8, 4, 16, 2, 1, 17]),
            narrow_range=random.chance(0.3),
        )
        x = random.fed("FLOAT32", random.shape(), special=random.pick([0, 0.2]))
        yield operator_case(op, [x], ["FLOAT32"], fake, version=random.number(1, 2))


@cases_of("PRELU")
def prelu(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op* with slopes of every shape that broadcasts, and some that do not."""
    for _ in range(random.count * 2):
        type = random.pick(("FLOAT32", "UINT8", "INT8", random.pick(PLAIN)))
        shape, slopes = random.broadcast_shapes(2, 4)
        x = random.fed(type, shape)
        yield operator_case(op, [x, random.operand(type, slopes)], [random.output(type)])
