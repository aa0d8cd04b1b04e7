"""Claims of the delegate: the Flex operators that ``flexify`` writes.

Claims are checked against Delegraph's own kernels, so they are limited to operators with equivalent
kernels. The delegate runs many more operators, which are tested against TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delegraph import Capabilities, Claim, Tolerance
from delegraph_flex.custom_options import PREFIX

_SHAPES = ("dynamic-shapes", "empty", "many-dims", "scalar")
_FLOATS = ("FLOAT32", "FLOAT16", "BFLOAT16")
_INTEGERS = ("INT32", "INT64")
_NUMBERS = (*_FLOATS, *_INTEGERS)
_MOVED = (*_NUMBERS, "UINT16", "UINT32", "UINT64", "COMPLEX64", "BOOL", "STRING")
_CAST = (*_NUMBERS, "INT8", "UINT8", "INT16", "UINT16", "UINT32", "FLOAT64", "COMPLEX64", "BOOL")

_OF_FLOATS = (
    "Atan2", "Ceil", "Cos", "Elu", "Exp", "Floor", "Log", "LogSoftmax", "RealDiv", "Round", "Rsqrt",
    "Sigmoid", "Sin", "Softmax", "Sqrt", "Tanh",
)  # fmt: skip
_OF_NUMBERS = (
    "Abs", "AddV2", "ClipByValue", "Div", "Maximum", "Minimum", "Mul", "Neg", "Pow", "Relu",
    "Relu6", "Sign", "Square", "SquaredDifference", "Sub", "ZerosLike",
)  # fmt: skip
_MOVES = (
    "ConcatV2", "ExpandDims", "Identity", "MirrorPad", "Pack", "Pad", "PadV2", "Reshape",
    "Transpose",
)  # fmt: skip
_COMPARISONS = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")
_PRODUCTS = (
    "AvgPool", "BatchMatMulV2", "BiasAdd", "Conv2D", "DepthwiseConv2dNative", "MatMul", "MaxPool",
)  # fmt: skip
_REDUCTIONS = ("Max", "Mean", "Min", "Prod", "Sum")


def capabilities() -> Capabilities:
    """Return the claims: operators that both executors support and compute correctly.

    Floats that are NaN, infinite or huge are not claimed: TensorFlow's operators do not clamp these
    values, but builtin kernels do.
    """
    rounding = Tolerance(1e-5, 1e-5)  # absolute where the terms of matrix products cancel
    return Capabilities(_claims(), tolerance={"FLOAT32": rounding})


def _claims() -> Iterator[Claim]:
    yield Claim(_named(_OF_FLOATS), _FLOATS, *_SHAPES)
    yield Claim(_named(_OF_NUMBERS), _NUMBERS, *_SHAPES)
    yield Claim(_named(["Mul"]), "COMPLEX64", *_SHAPES)
    yield Claim(_named(["Maximum", "Minimum"]), "UINT32", *_SHAPES)
    yield Claim(_named(_COMPARISONS), _NUMBERS, *_SHAPES, output="BOOL")
    yield Claim(_named(["Equal", "NotEqual"]), ("BOOL", "STRING"), *_SHAPES, output="BOOL")
    yield Claim(_named(_MOVES), _MOVED, *_SHAPES)
    yield Claim(_named(["Cast"]), _CAST, *_SHAPES)
    yield Claim(_named(_PRODUCTS), "FLOAT32", *_SHAPES)
    yield Claim(_named(_REDUCTIONS), ("FLOAT32", *_INTEGERS), *_SHAPES)


def _named(operators: Iterable[str]) -> list[str]:
    return [PREFIX + op for op in operators]
