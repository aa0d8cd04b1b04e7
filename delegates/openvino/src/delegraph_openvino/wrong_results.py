"""Checks for nodes for which OpenVINO computes results other than TFLite's, or crashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from delegraph import DelegateContext, Node, Registration, Rejection
from delegraph.schema.options import OPTIONS_OF_OPERATOR

UNCHECKED = (
    "BROADCAST_ARGS", "EMBEDDING_", "GATHER", "ONE_HOT", "REVERSE_SEQUENCE", "SCATTER_", "SEGMENT_",
    "SPARSE_", "UNSORTED_",
)  # fmt: skip
"""Beginnings of the names of operators whose indices or shapes OpenVINO does not check.

For invalid indices or shapes, TFLite raises an error.
"""

NEAR_CONVOLUTIONS = "OpenVINO moves transpositions across it, as CONV_2D makes them, and goes wrong"
WRONG = {
    "BATCH_TO_SPACE_ND": NEAR_CONVOLUTIONS,
    "FLOOR_MOD": "OpenVINO divides, which overflows where the remainder does not",
    "LOG_SOFTMAX": NEAR_CONVOLUTIONS,
    "PADV2": "OpenVINO pads with zeros",
    "SPACE_TO_BATCH_ND": NEAR_CONVOLUTIONS,
    "TILE": NEAR_CONVOLUTIONS,
}
"""Operators whose results are wrong for some inputs, which claims cannot describe."""

COMPARISONS = ("EQUAL", "GREATER", "LESS", "NOT_EQUAL")
IN_FLOATS = (*COMPARISONS, "MEAN", "POW", "REDUCE_M", "RESIZE_", "REVERSE_", "SUM")
"""Beginnings of the names of operators whose INT32 OpenVINO computes in floats.

OpenVINO does the same before a fused activation.
"""

DIVISIONS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
WRONG_CASTS = (["FLOAT32", "INT32"], ["INT32", "BOOL"])
REDUCTIONS = ("MEAN", "REDUCE_", "SUM")
HAVE_DEFAULTS = ("CAST", "RESHAPE")
"""Operators that older converters write without options."""


def check_numbers(
    registration: Registration, node: Node, context: DelegateContext
) -> bool | Rejection:
    """Return True if OpenVINO computes right results for a node, otherwise a rejection."""
    options, name = node.options, registration.name
    inputs = [context.tensors[index] for index in node.inputs]
    table = OPTIONS_OF_OPERATOR.get(registration.builtin_code)
    if options is None and table is not None and table.FIELDS and name not in HAVE_DEFAULTS:
        return Rejection("options", f"OpenVINO needs {table.__name__}, and the node has none")
    activation = getattr(options, "fused_activation_function", None)
    if activation is not None and activation.name not in ("NONE", "RELU", "RELU6"):
        return Rejection("activation", actual=activation.name, expected="NONE, RELU or RELU6")
    is_fused = activation is not None and activation.name != "NONE"
    types = [context.tensors[i].type.name for i in (*node.inputs[:1], *node.outputs[:1])]
    if reason := _wrong_with(name, types, is_fused):
        return Rejection("numbers", reason)
    if name.startswith(UNCHECKED):
        return Rejection("indices", f"OpenVINO does not check the indices or shapes of {name}")
    if name == "RESIZE_NEAREST_NEIGHBOR" and (options.align_corners or options.half_pixel_centers):
        return Rejection("rounding", "OpenVINO rounds to another pixel")
    if name == "SPLIT" and inputs[0].shape:
        return Rejection("axis", "OpenVINO takes an axis without dimensions only")
    second = inputs[1].data if len(inputs) > 1 else None
    if name == "TRANSPOSE" and second is not None and np.any(second < 0):
        return Rejection("axes", "OpenVINO takes no axes that are counted from the end")
    if name == "SQUEEZE" and not options.squeeze_dims:
        return Rejection("squeeze_dims", "OpenVINO crashes when they are left out")
    axes = second if name.startswith(REDUCTIONS) else getattr(options, "squeeze_dims", None)
    if axes is not None and _has_twice(axes, len(inputs[0].shape)):
        return Rejection("axes", "OpenVINO crashes on an axis that is named twice")
    return True


def _wrong_with(name: str, types: Sequence[str], is_fused: bool) -> str:
    """Return a text about the fault in OpenVINO's result for an operator; empty if none.

    *types* are those of its first input and its first output. *is_fused* says whether it has a
    fused activation.
    """
    if types[:1] == ["INT32"] and (is_fused or name.startswith(IN_FLOATS)):
        return "OpenVINO computes it in floats, which are not exact over 2**24"
    if types[:1] in (["INT8"], ["UINT8"]) and name.startswith(COMPARISONS):
        return "OpenVINO compares 8-bit numbers in another way"
    if name == "CAST" and types in WRONG_CASTS:
        return "OpenVINO gives another result for the largest numbers"
    if name in DIVISIONS and types[:1] != ["FLOAT32"]:
        return "OpenVINO gives a number for a division by zero"
    return WRONG.get(name, "")


def _has_twice(axes: ArrayLike, rank: int) -> bool:
    """Whether an axis occurs twice in *axes*, counted from the front or from the end.

    The tensor has *rank* axes.
    """
    return len({int(axis) % max(rank, 1) for axis in np.ravel(axes)}) < np.size(axes)
