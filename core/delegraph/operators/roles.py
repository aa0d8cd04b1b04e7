"""Roles of an operator's inputs and outputs, such as ``weights``, used in claims and rejections.

The names are TFLite's, from its kernels and its dialect. Operands without a special role are
``input`` and ``output``; ``filter`` is ``weights`` in every operator. Operands whose types are
always equal share a role: both inputs of ADD are ``input``, and all matrices of an LSTM are
``weights``.

>>> operand_roles("CONV_2D", inputs=3, outputs=1)
('input', 'weights', 'bias', 'output')
>>> operand_roles("CONCATENATION", inputs=3, outputs=1)
('input', 'input', 'input', 'output')
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from delegraph.operators.lstm_node import LstmInput
from delegraph.operators.registration import Node

_CONVOLUTION = "input weights bias"
_TRANSPOSED = "output_shape weights input bias"
_REDUCTION = "input axis"
_RNN_LAYER = "weights weights bias hidden_state"
_SEGMENTS = "input segment_ids num_segments"


def _lstm_role(operand: LstmInput) -> str:
    name = operand.name.lower()
    if name.startswith("cell_to_"):
        return "peephole_weights"
    for role in ("layer_norm_coefficients", "weights", "bias"):
        if name.endswith(role):
            return role
    return name


_LSTM_INPUTS = tuple(map(_lstm_role, LstmInput))
_LSTM = " ".join(_LSTM_INPUTS)
_LSTM_LAYER = " ".join(_LSTM_INPUTS[LstmInput.INPUT_TO_INPUT_WEIGHTS : LstmInput.OUTPUT_STATE])
_LSTM_STATES = "output_state cell_state"
BASIC_LSTM = "LSTM of kernel type BASIC"
_BASIC_LSTM_INPUTS = 5

WORDS = {
    "ARG_MAX": _REDUCTION,
    "ARG_MIN": _REDUCTION,
    "ASSIGN_VARIABLE": "resource value",
    "BATCH_MATMUL": "lhs rhs",
    "BATCH_TO_SPACE_ND": "input block_shape crops",
    "BIDIRECTIONAL_SEQUENCE_LSTM": (
        f"input {_LSTM_LAYER} {_LSTM_LAYER} {_LSTM_STATES} {_LSTM_STATES} aux_input weights"
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": f"input {_RNN_LAYER} {_RNN_LAYER} aux_input weights",
    "BROADCAST_TO": "input shape",
    "CONV_2D": _CONVOLUTION,
    "CONV_3D": _CONVOLUTION,
    "CONV_3D_TRANSPOSE": _TRANSPOSED,
    "CUMSUM": _REDUCTION,
    "DEPTHWISE_CONV_2D": _CONVOLUTION,
    "DILATE": "input dilations padding_value",
    "DYNAMIC_UPDATE_SLICE": "input update start_indices",
    "EMBEDDING_LOOKUP": "lookup weights",
    "EMBEDDING_LOOKUP_SPARSE": "ids indices dense_shape aggregation_weights params",
    "EXPAND_DIMS": _REDUCTION,
    "FILL": "dims value",
    "FULLY_CONNECTED": f"{_CONVOLUTION} -> output shuffled_input",
    "GATHER": "input indices",
    "GATHER_ND": "input indices",
    "HASHTABLE": "-> resource",
    "HASHTABLE_FIND": "resource keys default_value",
    "HASHTABLE_IMPORT": "resource keys values",
    "HASHTABLE_LOOKUP": "lookup keys values -> output hits",
    "HASHTABLE_SIZE": "resource",
    "IF": "condition input",
    "LSH_PROJECTION": "hash input weight",
    "LSTM": _LSTM,
    BASIC_LSTM: (
        "input output_state weights bias cell_state "
        "-> output cell_state concat_temp activation_temp"
    ),
    "MATRIX_SET_DIAG": "input diagonal",
    "MEAN": _REDUCTION,
    "MIRROR_PAD": "input paddings",
    "MULTINOMIAL": "input num_samples",
    "NON_MAX_SUPPRESSION_V4": (
        "boxes scores max_output_size iou_threshold score_threshold -> selected_indices valid_count"
    ),
    "NON_MAX_SUPPRESSION_V5": (
        "boxes scores max_output_size iou_threshold score_threshold soft_nms_sigma "
        "-> selected_indices selected_scores valid_count"
    ),
    "ONE_HOT": "indices depth on_value off_value",
    "PAD": "input paddings",
    "PADV2": "input paddings constant_values",
    "PRELU": "input alpha",
    "RANDOM_STANDARD_NORMAL": "shape",
    "RANDOM_UNIFORM": "shape",
    "RANGE": "start limit delta",
    "READ_VARIABLE": "resource",
    "REDUCE_ALL": _REDUCTION,
    "REDUCE_ANY": _REDUCTION,
    "REDUCE_MAX": _REDUCTION,
    "REDUCE_MIN": _REDUCTION,
    "REDUCE_PROD": _REDUCTION,
    "REDUCE_WINDOW": "input init_value window_shape window_strides window_dilations",
    "RESHAPE": "input shape",
    "RESIZE_BILINEAR": "input size",
    "RESIZE_NEAREST_NEIGHBOR": "input size",
    "REVERSE_SEQUENCE": "input seq_lengths",
    "REVERSE_V2": _REDUCTION,
    "RFFT2D": "input fft_length",
    "RNN": f"input {_RNN_LAYER}",
    "SCATTER_ND": "indices updates shape",
    "SEGMENT_SUM": "input segment_ids",
    "SELECT": "condition input",
    "SELECT_V2": "condition input",
    "SLICE": "input begin size",
    "SPACE_TO_BATCH_ND": "input block_shape paddings",
    "SPARSE_TO_DENSE": "indices output_shape values default_value",
    "SPLIT": "axis input",
    "SPLIT_V": "input size_splits axis",
    "STABLEHLO_CASE": "index input",
    "STABLEHLO_CONVOLUTION": "input weights",
    "STABLEHLO_DYNAMIC_SLICE": "input start_indices",
    "STABLEHLO_DYNAMIC_UPDATE_SLICE": "input update start_indices",
    "STABLEHLO_GATHER": "input start_indices",
    "STABLEHLO_PAD": "input padding_value",
    "STABLEHLO_REDUCE_WINDOW": "input init_value",
    "STABLEHLO_RNG_BIT_GENERATOR": "initial_state -> output_state output",
    "STABLEHLO_SCATTER": "input indices updates",
    "STRIDED_SLICE": "input begin end strides",
    "SUM": _REDUCTION,
    "SVDF": "input weights_feature weights_time bias state",
    "TILE": "input multiples",
    "TOPK_V2": "input k -> output indices",
    "TRANSPOSE": "input perm",
    "TRANSPOSE_CONV": _TRANSPOSED,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _LSTM,
    "UNIDIRECTIONAL_SEQUENCE_RNN": f"input {_RNN_LAYER}",
    "UNIQUE": "input -> output indices",
    "UNSORTED_SEGMENT_MAX": _SEGMENTS,
    "UNSORTED_SEGMENT_MIN": _SEGMENTS,
    "UNSORTED_SEGMENT_PROD": _SEGMENTS,
    "UNSORTED_SEGMENT_SUM": _SEGMENTS,
    "VAR_HANDLE": "-> resource",
    "WHERE": "condition",
}
"""Roles of each operator's inputs and, after an arrow, of its outputs.

The last role is that of all further operands. Operators that are not listed, such as custom
operators, have only the roles ``input`` and ``output``.
"""


def roles_of(operator: str) -> tuple[str, ...]:
    """Return all roles that an operator's operands may have, in their order.

    >>> roles_of("TOPK_V2")
    ('input', 'k', 'output', 'indices')
    """
    forms = [_roles(operator), *([_roles(BASIC_LSTM)] if operator == "LSTM" else [])]
    return tuple(dict.fromkeys(role for form in forms for roles in form for role in roles))


def operand_roles(operator: str, inputs: int, outputs: int) -> tuple[str, ...]:
    """Return the role of each input of a node, followed by the role of each output.

    Args:
        operator: the name of the node's operator.
        inputs: number of the node's inputs, absent inputs included.
        outputs: number of the node's outputs.
    """
    is_basic = operator == "LSTM" and inputs == _BASIC_LSTM_INPUTS
    given, made = _roles(BASIC_LSTM if is_basic else operator)
    return (*_first(given, inputs), *_first(made, outputs))


def operands(operator: str, node: Node) -> Iterator[tuple[str, int]]:
    """Yield role and tensor index of each input and output of a node, except absent operands.

    Args:
        operator: the name of the node's operator.
        node: the node.
    """
    roles = operand_roles(operator, len(node.inputs), len(node.outputs))
    for role, index in zip(roles, (*node.inputs, *node.outputs), strict=True):
        if index >= 0:
            yield role, index


@cache
def _roles(operator: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the roles of *operator*'s inputs and of its outputs.

    If an operator has more inputs than roles, further inputs have the last role.
    """
    inputs, _, outputs = WORDS.get(operator, "input").partition("->")
    return tuple(inputs.split()), tuple(outputs.split()) or ("output",)


def _first(roles: tuple[str, ...], count: int) -> tuple[str, ...]:
    further = roles[-1:] or ("input",)
    return (*roles, *further * (count - len(roles)))[:count]
