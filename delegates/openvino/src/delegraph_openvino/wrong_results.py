"""What OpenVINO would take and compute in another way than TFLite, where no claim can say it."""

from __future__ import annotations

from delegraph import DelegateContext, Node, Registration, Rejection

UNCHECKED = ("EMBEDDING_", "GATHER", "ONE_HOT", "SCATTER_", "SEGMENT_", "SPARSE_", "UNSORTED_")
"""How operators begin whose indices OpenVINO does not check, where TFLite raises an error."""


def check_numbers(
    registration: Registration, node: Node, context: DelegateContext
) -> bool | Rejection:
    """Return why OpenVINO's results for a node would be wrong; True where they are right."""
    options, name = node.options, registration.name
    activation = getattr(options, "fused_activation_function", None)
    if activation is not None and activation.name not in ("NONE", "RELU", "RELU6"):
        return Rejection("activation", actual=activation.name, expected="NONE, RELU or RELU6")
    if name.startswith(UNCHECKED):
        return Rejection("indices", f"OpenVINO does not check the indices of {name}")
    if name == "RESIZE_NEAREST_NEIGHBOR" and (options.align_corners or options.half_pixel_centers):
        return Rejection("rounding", "OpenVINO rounds to another pixel")
    if name == "LOG_SOFTMAX":
        return Rejection("axis", "OpenVINO takes another axis where a convolution is before it")
    if name in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        divisor = context.tensors[node.inputs[1]]
        if divisor.type.name == "INT32":
            return Rejection("division", "OpenVINO gives a number for a division by zero")
    if name == "SPLIT" and context.tensors[node.inputs[0]].shape:
        return Rejection("axis", "OpenVINO takes an axis without dimensions only")
    return True
