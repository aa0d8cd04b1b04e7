"""Cases in which the official reference kernels differ from the builtin ones.

``Interpreter(numerics="reference")`` rounds like the reference kernels in these cases. In all other
cases both sets of kernels agree, for integers bit by bit. ``docs/operators.md`` shows this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumericsDifference:
    """Difference between LiteRT's builtin and reference kernels of some operators.

    Attributes:
        ops: operator names.
        types: activation types for which the kernels differ.
        builtin: behaviour of the builtin kernels.
        reference: behaviour of the reference kernels.
    """

    ops: tuple[str, ...]
    types: tuple[str, ...]
    builtin: str
    reference: str


DIFFERENCES = (
    NumericsDifference(
        ("ADD",),
        ("UINT8", "INT8", "INT16"),
        "vector loops round operands once, or down, when they bring them to a common scale",
        "operands are rounded twice, halves away from zero",
    ),
    NumericsDifference(
        ("MUL",),
        ("UINT8", "INT8"),
        "vector loops saturate or wrap products at 16 bits before they clamp them",
        "products keep 32 bits",
    ),
    NumericsDifference(
        ("CONV_2D", "TRANSPOSE_CONV"),
        ("UINT8", "INT8"),
        "scaled sums round halves up, except what vector loops leave over",
        "halves go away from zero",
    ),
    NumericsDifference(
        ("DEPTHWISE_CONV_2D",),
        ("INT8",),
        "scaled sums round halves up in groups of eight channels",
        "halves go away from zero",
    ),
    NumericsDifference(
        ("FULLY_CONNECTED",),
        ("UINT8", "INT8", "INT16"),
        "sums are scaled by a 31-bit multiplier and round halves up",
        "sums are scaled in float64 and round halves away from zero",
    ),
    NumericsDifference(
        ("SOFTMAX", "LOG_SOFTMAX"),
        ("UINT8", "INT8"),
        "exponentials and sums are float32",
        "all is fixed point, and the output's declared scale is not read",
    ),
    NumericsDifference(
        ("LOGISTIC", "TANH"),
        ("INT16",),
        "input scales of 1/4096 (TANH: also 1/2048) take fixed-point polynomials",
        "every scale takes a table that is interpolated",
    ),
    NumericsDifference(
        ("QUANTIZE",),
        ("FLOAT32",),
        "vector loops multiply by the inverse scale and round halves to even",
        "values are divided by the scale and round halves away from zero",
    ),
    NumericsDifference(
        ("QUANTIZE",), ("UINT8", "INT8"), "vector loops round halves up", "halves go away from zero"
    ),
    NumericsDifference(
        ("RESIZE_BILINEAR",),
        ("UINT8",),
        "float32 products are added row by row",
        "float32 products are added column by column",
    ),
    NumericsDifference(
        ("SUM",), ("UINT8",), "sums are scaled in float32", "sums are scaled by a 31-bit multiplier"
    ),
    NumericsDifference(
        ("MEAN",),
        ("UINT8", "INT8"),
        "over height and width, dimensions kept: zero points are scaled apart, halves go up",
        "the count is divided into the multiplier, halves go away from zero",
    ),
    NumericsDifference(
        ("REDUCE_PROD",),
        ("INT8", "INT16"),
        "without axes, stored integers are copied",
        "without axes, they are brought to the output's scale",
    ),
    NumericsDifference(
        ("LOCAL_RESPONSE_NORMALIZATION",),
        ("FLOAT32",),
        "channels up to the radius away count, on both sides",
        "the last of these channels is left out",
    ),
)
"""All differences that Delegraph follows; docs/differences.md has the others."""
