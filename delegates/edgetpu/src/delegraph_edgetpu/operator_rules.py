"""Rules: the operators that the Edge TPU supports, and the limits of each.

The rules are those of the public table of supported operators. If the table only says that large
operators may stay on the CPU, this module defines a limit, with its origin.

Source:
    "TensorFlow models on the Edge TPU", the table of supported operations, coral.ai.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

import numpy as np

from delegraph.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat
from delegraph_edgetpu.call import Call, values_of
from delegraph_edgetpu.chip import NEWEST_RUNTIME, OLDEST_RUNTIME
from delegraph_edgetpu.reasons import AT_END, Reason, Status
from delegraph_edgetpu.tensor_rules import broken_tensor_rules

Check = Callable[[Call], "Reason | None"]
"""Function that returns the reason why an operator cannot map; None if it can."""

SOFTMAX_ELEMENTS = 16_000
DEPTH_MULTIPLE = 4
ENLARGEMENT = 8
"""Largest factor by which a dimension may grow in a resize.

The table has no such limit. In the only public model with resizes that stay on the CPU (deeplab),
the factors are 33 and 15.5. In movenet, whose resizes map, each factor is 2.
"""


@dataclass(frozen=True)
class OperatorRule:
    """Requirements for an operator to run on the Edge TPU.

    Attributes:
        parameters: positions of inputs that must be constants.
        runtime: first runtime version with the operator.
        checks: functions that check the operator's limits.
        type_status: status that the real compiler logs if a tensor does not have 8 bits.
    """

    parameters: tuple[int, ...] = ()
    runtime: int = OLDEST_RUNTIME
    checks: tuple[Check, ...] = ()
    type_status: Status = Status.DATA_TYPE


def broken_rules(call: Call, runtime: int = NEWEST_RUNTIME) -> tuple[Reason, ...]:
    """Return a reason for each rule that an operator breaks; empty if the Edge TPU can run it.

    *runtime* is the oldest runtime version that must be able to run the operator.
    """
    name = call.operator.name
    rule = RULES.get(name)
    if rule is None or call.operator.is_custom:
        return (
            Reason(
                "operator",
                "it is no operator of the Edge TPU",
                "expected one of its table",
                f"express it by operators of the table, or {AT_END}",
                Status.UNKNOWN,
            ),
        )
    if not call.outputs:
        return (Reason("outputs", f"{name} has no output", "expected one", "repair the model"),)
    found = chain(
        [_too_new(name, rule, runtime)],
        (_as_logged(reason, rule) for reason in broken_tensor_rules(call, rule.parameters)),
        (check(call) for check in rule.checks),
    )
    return tuple(reason for reason in found if reason is not None)


def _too_new(name: str, rule: OperatorRule, runtime: int) -> Reason | None:
    if rule.runtime <= runtime:
        return None
    return Reason(
        "runtime-version",
        f"{name} needs runtime version {rule.runtime}",
        f"limit {runtime}",
        f"compile for runtime version {rule.runtime} (-m {rule.runtime})",
        Status.VERSION,
    )


def _as_logged(reason: Reason, rule: OperatorRule) -> Reason:
    """Return *reason* with the status that the real compiler writes to its log.

    A *rule* may have another status for wrong types.
    """
    is_type = reason.status is Status.DATA_TYPE
    return replace(reason, status=rule.type_status) if is_type else reason


def _activation(*known: ActivationFunctionType) -> Check:
    """Return the check that an operator has no fused activation, or one of *known*."""
    allowed = [ActivationFunctionType.NONE, *known]

    def check(call: Call) -> Reason | None:
        activation = call.option("fused_activation_function", ActivationFunctionType.NONE)
        if activation in allowed:
            return None
        *others, last = [each.name for each in allowed]
        return Reason(
            "fused-activation",
            f"fused {getattr(activation, 'name', activation)}",
            f"must be {', '.join(others)} or {last}" if others else f"must be {last}",
            "make the activation a separate operator",
        )

    return check


_no_activation = _activation()
_clamping_activation = _activation(
    ActivationFunctionType.RELU, ActivationFunctionType.RELU6, ActivationFunctionType.RELU_N1_TO_1
)


def _same_dilation(call: Call) -> Reason | None:
    height, width = call.option("dilation_h_factor", 1), call.option("dilation_w_factor", 1)
    if height == width:
        return None
    return Reason(
        "dilation",
        f"dilation {height} in y and {width} in x",
        "must be equal",
        "use the same dilation in both dimensions",
    )


def _padding_concatenation(call: Call) -> Reason | None:
    constants = [tensor for _, tensor in call.inputs() if tensor.data is not None]
    if not constants:
        return None
    if len(call.operator.inputs) != 2:
        return Reason(
            "constant-concatenation",
            f"{len(call.operator.inputs)} inputs, one of them constant",
            "limit 2 inputs",
            "join the constant in a separate concatenation",
        )
    values, quantization = values_of(constants[0]), constants[0].quantization
    zero = 0 if quantization is None else quantization.zero_point
    if values is not None and np.all(values == zero):
        return None
    return Reason(
        "constant-concatenation",
        f"the constant {constants[0].name!r} has values other than zero",
        "must be all zeros",
        "add nonzero values after the concatenation",
    )


def _plain_weights(call: Call) -> Reason | None:
    plain = FullyConnectedOptionsWeightsFormat.DEFAULT
    found = call.option("weights_format", plain)
    if found == plain:
        return None
    return Reason(
        "weights-format",
        f"weights format {getattr(found, 'name', found)}",
        "must be DEFAULT",
        "convert the model without shuffled weights",
    )


def _flat_output(call: Call) -> Reason | None:
    inner = call.output.shape[1:-1]
    if prod(inner) == 1:
        return None
    return Reason(
        "output-rank",
        f"output shape {list(call.output.shape)}",
        "must be one dimension beside the batch",
        "reshape the input to two dimensions, or use CONV_2D with a 1 x 1 filter",
    )


def _reduces_no_batch(call: Call) -> Reason | None:
    batch = 0 in _axes(call)
    tensor = call.input(0)
    if tensor is None or len(tensor.shape) < 2 or not batch:
        return None
    return Reason(
        "batch-reduction", "reduces dimension 0, the batch", "must keep it", "keep the batch"
    )


def _depth_in_fours(call: Call) -> Reason | None:
    tensor = call.input(0)
    if tensor is None or not tensor.shape or len(tensor.shape) - 1 not in _axes(call):
        return None
    depth = tensor.shape[-1]
    if depth % DEPTH_MULTIPLE == 0:
        return None
    return Reason(
        "depth-reduction",
        f"reduces a depth of {depth:,}",
        f"must be a multiple of {DEPTH_MULTIPLE}",
        f"make the depth {-(-depth // DEPTH_MULTIPLE) * DEPTH_MULTIPLE:,}",
    )


def _axes(call: Call) -> set[int]:
    """Return the axes that input 1 of *call* lists, each counted from 0."""
    tensor, values = call.input(0), call.values(1)
    if tensor is None or values is None or not tensor.shape:
        return set()
    return {int(axis) % len(tensor.shape) for axis in values.reshape(-1)}


def _packs_no_batch(call: Call) -> Reason | None:
    return _no_batch("packs", int(call.option("axis", 0)), len(call.output.shape))


def _splits_no_batch(call: Call) -> Reason | None:
    axis, tensor = call.values(0), call.input(1)
    if axis is None or tensor is None or len(call.operator.outputs) == 1:
        return None  # with a single part, nothing is split
    return _no_batch("splits", int(axis.reshape(-1)[0]), len(tensor.shape))


def _no_batch(verb: str, axis: int, rank: int) -> Reason | None:
    if rank < 2 or axis % rank != 0:
        return None
    return Reason(
        "batch-axis",
        f"{verb} in dimension 0, the batch",
        "must be another dimension",
        "use another dimension",
    )


def _pads_no_batch(call: Call) -> Reason | None:
    paddings = call.values(1)
    if paddings is None or len(paddings) < 2 or not paddings[0].any():
        return None
    return Reason(
        "batch-padding",
        f"pads the batch by {paddings[0].tolist()}",
        "must be [0, 0]",
        "pad other dimensions only",
    )


def _alpha_of_rank_1(call: Call) -> Reason | None:
    alpha = call.input(1)
    if alpha is None or prod(alpha.shape[:-1]) == 1:
        return None
    return Reason(
        "alpha-rank",
        f"alpha has the shape {list(alpha.shape)}",
        "only its last dimension may exceed 1",
        "share alpha over height and width (shared_axes=[1, 2] in Keras)",
    )


def _moderate_resize(call: Call) -> Reason | None:
    tensor = call.input(0)
    if tensor is None or len(tensor.shape) != 4:
        return None
    before, after = tensor.shape[1:3], call.output.shape[1:3]
    times = max(new / old for old, new in zip(before, after, strict=True) if old)
    if times <= ENLARGEMENT:
        return None
    return Reason(
        "resize",
        f"enlarges {before[0]} x {before[1]} to {after[0]} x {after[1]}, {times:.3g} times",
        f"limit {ENLARGEMENT} times",
        f"enlarge in several steps, or {AT_END}",
    )


def _short_vector(call: Call) -> Reason | None:
    tensor = call.input(0)
    if tensor is None:
        return None
    if prod(tensor.shape[:-1]) != 1:
        return Reason(
            "softmax-rank",
            f"input shape {list(tensor.shape)}",
            "only the last dimension may exceed 1",
            "leave the softmax at the end of the model, or apply it to one vector",
        )
    if tensor.shape and tensor.shape[-1] > SOFTMAX_ELEMENTS:
        return Reason(
            "softmax-elements",
            f"{tensor.shape[-1]:,} elements",
            f"limit {SOFTMAX_ELEMENTS:,}",
            f"apply it to a shorter vector, or {AT_END}",
        )
    return None


def _unit_strides(call: Call) -> Reason | None:
    strides = call.values(3)
    if strides is None or np.all(strides == 1):
        return None
    return Reason(
        "strides",
        f"strides {strides.tolist()}",
        "must be all 1",
        "slice without strides, or drop elements by a pooling of size 1",
    )


def _plain_slice(call: Call) -> Reason | None:
    for name in ("ellipsis_mask", "new_axis_mask"):
        mask = call.option(name, 0)
        if mask:
            return Reason(
                "slice-mask",
                f"{name} is {mask}",
                "must be 0",
                "write out all dimensions, and add new ones by RESHAPE",
            )
    return None


_PLAIN = OperatorRule()
_CONVOLUTION = OperatorRule((1, 2), checks=(_same_dilation, _clamping_activation))
_POOL = OperatorRule(checks=(_no_activation,))
_SUM = OperatorRule(checks=(_clamping_activation,))
_RESIZE = OperatorRule((1,), checks=(_moderate_resize,))
_REDUCTION = OperatorRule((1,), 14, (_reduces_no_batch,))
_LSTM_PARAMETERS = tuple(i for i in range(1, 24) if i not in (18, 19))

RULES: dict[str, OperatorRule] = {
    "ADD": _SUM,
    "AVERAGE_POOL_2D": _POOL,
    "CONCATENATION": OperatorRule(checks=(_no_activation, _padding_concatenation)),
    "CONV_2D": _CONVOLUTION,
    "DEPTHWISE_CONV_2D": _CONVOLUTION,
    "DEQUANTIZE": _PLAIN,  # its output is floating-point, so the operator never maps
    "EXPAND_DIMS": OperatorRule((1,), 13),
    "FULLY_CONNECTED": OperatorRule(
        (1, 2), checks=(_plain_weights, _flat_output, _clamping_activation)
    ),
    "L2_NORMALIZATION": _POOL,
    "LOGISTIC": _PLAIN,
    "MAXIMUM": _PLAIN,
    "MAX_POOL_2D": _POOL,
    "MEAN": OperatorRule((1,), checks=(_reduces_no_batch, _depth_in_fours)),
    "MINIMUM": _PLAIN,
    "MUL": _SUM,
    "PACK": OperatorRule((), 13, (_packs_no_batch,)),
    "PAD": OperatorRule((1,), checks=(_pads_no_batch,)),
    "PRELU": OperatorRule((1,), 13, (_alpha_of_rank_1,)),
    "QUANTIZE": OperatorRule((), 13, type_status=Status.LIMIT),
    "REDUCE_MAX": _REDUCTION,
    "REDUCE_MIN": _REDUCTION,
    "RELU": _PLAIN,
    "RELU6": _PLAIN,
    "RELU_N1_TO_1": _PLAIN,
    "RESHAPE": OperatorRule((1,)),
    "RESIZE_BILINEAR": _RESIZE,
    "RESIZE_NEAREST_NEIGHBOR": _RESIZE,
    "RSQRT": OperatorRule((), 14),
    "SLICE": OperatorRule((1, 2)),
    "SOFTMAX": OperatorRule(checks=(_short_vector,)),
    "SPACE_TO_DEPTH": _PLAIN,
    "SPLIT": OperatorRule((0,), checks=(_splits_no_batch,)),
    "SQUARED_DIFFERENCE": OperatorRule((), 14),
    "SQUEEZE": OperatorRule((), 13),
    "STRIDED_SLICE": OperatorRule((1, 2, 3), checks=(_unit_strides, _plain_slice)),
    "SUB": _SUM,
    "SUM": OperatorRule((1,), 13, (_reduces_no_batch,)),
    "TANH": _PLAIN,
    "TRANSPOSE": OperatorRule((1,), 14),
    "TRANSPOSE_CONV": OperatorRule((0, 1, 3), 13),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OperatorRule(_LSTM_PARAMETERS, 14),
}
"""Mapping from an operator to its rule, in alphabetical order."""
