"""Sets output shapes in prepare if they are known then, and otherwise at each invoke.

A kernel that moves data has a *plan*: a function that reads the inputs with shapes or axes, and
returns the output shapes and the function that moves the data. If all its inputs are known in
prepare, the plan runs once. Otherwise it runs at each invoke, and the outputs are dynamic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.registration import Eval, OpContext, nothing
from delegraph.operators.tensor import AllocationType, Shape, Tensor

Plan = Callable[[], tuple[Shape, Eval]]
"""Function that returns the output's shape, and the function that fills ``output.data``."""

Plans = Callable[[], tuple[Sequence[Shape], Eval]]
"""Function that returns the shapes of several outputs, and the function that fills them."""


def integers(tensor: Tensor) -> list[int]:
    """Return all elements of an integer tensor, in row-major order."""
    values: list[int] = tensor.data.reshape(-1).tolist()
    return values


def are_known(tensors: Iterable[Tensor]) -> bool:
    """Whether the values of all *tensors* are already known when nodes are prepared."""
    return all(tensor.is_constant_or_persistent for tensor in tensors)


def size_output(
    context: OpContext,
    output: Tensor,
    plan: Plan,
    *,
    shape_inputs: Sequence[Tensor] = (),
    fold: Sequence[Tensor] | None = None,
    packed: bool = False,
) -> Eval:
    """Set the shape of *output* now or at each invoke; return the node's evaluation.

    Args:
        context: context of the node.
        output: the node's only output.
        plan: function that returns the output's shape and the function that fills it.
        shape_inputs: tensors whose values the plan reads to compute the shape.
        fold: tensors on which the output depends; if all are known, the output is computed once,
            now.
        packed: whether the plan can fill an output of 2- or 4-bit integers.

    Raises:
        OperatorError: the output has 2- or 4-bit integers, and the plan cannot fill it.

    Source:
        Pattern of ``Prepare`` and ``Eval`` in many tflite/kernels: IsConstantOrPersistent,
        SetTensorToPersistentRo, SetTensorToDynamic.
    """
    _check_packed((output,), packed)
    if fold is not None and are_known(fold) and are_known(shape_inputs):
        return fold_output(context, output, plan)

    def plans() -> tuple[Sequence[Shape], Eval]:
        shape, run = plan()
        return (shape,), run

    return size_outputs(context, (output,), plans, shape_inputs=shape_inputs, packed=packed)


def size_outputs(
    context: OpContext,
    outputs: Sequence[Tensor],
    plans: Plans,
    *,
    shape_inputs: Sequence[Tensor] = (),
    packed: bool = False,
) -> Eval:
    """Set the shapes of *outputs* now or at each invoke; return the evaluation.

    *plans* returns the shapes of all outputs and the function that fills them. It reads the values
    of *shape_inputs* to compute the shapes. *packed* says whether it can fill outputs of 2- or
    4-bit integers. Outputs that were dynamic stay dynamic.
    """
    _check_packed(outputs, packed)
    if are_known(shape_inputs):
        shapes, run = plans()
        for output, shape in zip(outputs, shapes, strict=True):
            context.resize_tensor(output, shape)
        if not any(_is_open(output) for output in outputs):
            return run
    for output in outputs:
        context.set_dynamic(output)

    def resize_and_run() -> None:
        shapes, run = plans()
        for output, shape in zip(outputs, shapes, strict=True):
            context.resize_tensor(output, shape)
        run()

    return resize_and_run


def _check_packed(outputs: Sequence[Tensor], packed: bool) -> None:
    for output in outputs:
        if output.is_packed and not packed:
            raise OperatorError(f"output is {output.type.name}, which this operator does not take")


def _is_open(output: Tensor) -> bool:
    """Whether *output* gets its memory only during invoke, because its shape is unknown.

    String tensors get their memory as soon as they have a shape.
    """
    return output.is_dynamic and output.type not in OBJECT_TYPES


def fold_output(context: OpContext, output: Tensor, plan: Plan) -> Eval:
    """Compute *output* now, while nodes are prepared, so that it counts as a constant.

    *plan* returns the output's shape and the function that fills it.
    """
    shape, run = plan()
    output.allocation_type = AllocationType.PERSISTENT_RO
    context.resize_tensor(output, shape)
    size = output.bytes if output.is_packed else output.shape
    output.data = np.empty(size, np.uint8 if output.is_packed else output.dtype)
    with np.errstate(all="ignore"):  # as during invoke
        run()
    return nothing


def normalized_axis(axis: int, rank: int) -> int:
    """Return *axis* counted from the front.

    Raises:
        OperatorError: *axis* is outside ``[-rank, rank)``.
    """
    if not -rank <= axis < rank:
        raise OperatorError(f"axis {axis} is outside [{-rank}, {rank}), the input's rank is {rank}")
    return axis % rank


def check_type(tensor: Tensor, expected: Tensor, what: str = "output") -> None:
    """Check that *tensor* has the type of *expected*; *what* names *tensor* in the error.

    Raises:
        OperatorError: the types differ.
    """
    if tensor.type is not expected.type:
        raise OperatorError(f"{what} is {tensor.type.name}, expected {expected.type.name}")


def check_rank(tensor: Tensor, allowed: Sequence[int], what: str = "input") -> None:
    """Check a tensor's number of dimensions; *what* names the tensor in the error.

    Raises:
        OperatorError: the number is not in *allowed*.
    """
    if len(tensor.shape) not in allowed:
        ranks = " or ".join(map(str, allowed))
        raise OperatorError(f"{what} has shape {list(tensor.shape)}, expected rank {ranks}")
