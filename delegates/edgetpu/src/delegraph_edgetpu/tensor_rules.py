"""Rules for the tensors of every operator: element type, quantization, rank, fixed shape."""

from __future__ import annotations

from collections.abc import Iterator

from delegraph.graph import TensorSpec
from delegraph.schema.enums import TensorType
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.reasons import AT_END, Reason, Status

EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)
_STATE_TYPES = (*EIGHT_BITS, TensorType.INT16)
# INT16 is the state of an LSTM.
_PARAMETER_TYPES = (*_STATE_TYPES, TensorType.INT32, TensorType.INT64)
_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64)


def broken_tensor_rules(call: Call, parameters: tuple[int, ...]) -> Iterator[Reason]:
    """Yield a reason for each rule that a tensor of an operator breaks.

    *parameters* are the positions of inputs that must be constants: weights, biases, shapes, axes.
    """
    for position, tensor in call.inputs():
        what = f"input {position} ({tensor.name!r})"
        if position in parameters:
            yield from _broken_by_parameter(what, tensor)
        elif tensor.is_variable:
            yield from _broken_by_type(what, tensor, _STATE_TYPES)
        else:
            yield from _broken_by_activation(what, tensor)
    for position, tensor in enumerate(call.outputs):
        yield from _broken_by_activation(f"output {position} ({tensor.name!r})", tensor)


def _broken_by_parameter(what: str, tensor: TensorSpec) -> Iterator[Reason]:
    if tensor.data is None:
        yield Reason(
            "constant-parameter",
            f"{what} is computed",
            "must be a constant",
            "make it a constant of the model",
        )
    elif tensor.type not in _PARAMETER_TYPES:
        yield Reason(
            "parameter-type",
            f"{what} is {tensor.type.name}",
            "must be INT8 or UINT8, biases INT32",
            "quantise weights and activations to 8 bits (full integer quantization)",
            Status.DATA_TYPE,
        )
    if tensor.sparsity is not None:
        yield Reason(
            "dense-parameter", f"{what} is sparse", "must be dense", "convert it without sparsity"
        )


def _broken_by_activation(what: str, tensor: TensorSpec) -> Iterator[Reason]:
    yield from _broken_by_type(what, tensor, EIGHT_BITS)
    if -1 in tensor.shape_signature:
        yield Reason(
            "fixed-shape",
            f"{what} has the shape {list(tensor.shape_signature)}",
            "must be fixed",
            "convert the model with a fixed input shape",
        )
    outer = tensor.shape[:-3]
    if any(length != 1 for length in outer):
        yield Reason(
            "rank",
            f"{what} has the shape {list(tensor.shape)}",
            "only the 3 innermost dimensions may exceed 1",
            f"make the first {'dimension' if len(outer) == 1 else f'{len(outer)} dimensions'} 1 "
            "(no batches)",
            Status.RANK,
        )


def _broken_by_type(
    what: str, tensor: TensorSpec, types: tuple[TensorType, ...]
) -> Iterator[Reason]:
    names = " or ".join(type.name for type in types)
    if tensor.type not in types:
        is_float = tensor.type in _FLOATS
        yield Reason(
            "tensor-type",
            f"{what} is {tensor.type.name}",
            f"must be {names}",
            "quantise it: full integer quantization, of the model's inputs and outputs as well"
            if is_float
            else f"compute it in {names}, or {AT_END}",
            Status.DATA_TYPE,
        )
    elif tensor.quantization is None or not len(tensor.quantization.scales):
        yield Reason(
            "quantised",
            f"{what} has no scale",
            "must be quantised",
            "give it a scale and a zero point",
            Status.DATA_TYPE,
        )
