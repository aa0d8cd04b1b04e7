"""Kernels of REVERSE_V2 and REVERSE_SEQUENCE."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from delegraph.arithmetic.output_shape import (
    are_known,
    check_type,
    integers,
    normalized_axis,
    size_output,
)
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    INDEX,
    WIDE_INDEX,
    option,
    require_rank,
    require_type,
    tensor_types,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor

_SEQUENCE_TYPES = tensor_types("FLOAT32 UINT8 INT16 INT32 INT64")
_TYPES = _SEQUENCE_TYPES | tensor_types("FLOAT16 BFLOAT16 INT8 BOOL")


@kernel("REVERSE_V2")
def prepare_reverse(context: OpContext, node: Node) -> Eval:
    """Prepare REVERSE_V2: the input in reverse order along the axes in input 1.

    Source:
        tflite/kernels/reverse.cc.
    """
    x, axes_input, y = tensors_of(context, node, 2)
    require_type(x, _TYPES)
    check_type(y, x)
    require_type(axes_input, INDEX)
    require_rank(axes_input, 1)
    if are_known((axes_input,)):
        _steps(x, axes_input)  # raises for invalid axes already in prepare

    def reverse() -> None:
        np.copyto(y.data, x.data[_steps(x, axes_input)])

    return size_output(context, y, lambda: (x.shape, reverse))


def _steps(x: Tensor, axes_input: Tensor) -> tuple[slice, ...]:
    """Return the index of *x* that reverses the axes listed in *axes_input*."""
    axes = sorted(normalized_axis(axis, len(x.shape)) for axis in integers(axes_input))
    if any(after - before != 1 for before, after in pairwise(axes)):
        raise OperatorError(f"axes are {axes}, expected neighbours")
    return tuple(slice(None, None, -1 if i in axes else 1) for i in range(len(x.shape)))


@kernel("REVERSE_SEQUENCE")
def prepare_reverse_sequence(context: OpContext, node: Node) -> Eval:
    """Prepare REVERSE_SEQUENCE: reverses the first elements of each batch entry.

    Input 1 has the number of reversed elements for each entry; entries with a number below 1 stay
    unchanged. Negative axes are not allowed.

    Source:
        tflite/kernels/reverse_sequence.cc. The official kernel only checks the first number.
    """
    x, lengths_input, y = tensors_of(context, node, 2)
    require_type(x, _SEQUENCE_TYPES)
    check_type(y, x)
    require_type(lengths_input, WIDE_INDEX)
    rank = len(x.shape)
    sequence, batch = (int(option(node, name, 0)) for name in ("seq_dim", "batch_dim"))
    if not (0 <= sequence < rank and 0 <= batch < rank):
        raise OperatorError(f"axes are {sequence} and {batch}, expected 0 to {rank - 1}")
    if sequence == batch or lengths_input.shape != (x.shape[batch],):
        raise OperatorError(
            f"lengths {list(lengths_input.shape)}, sequence axis {sequence} and batch axis {batch} "
            f"do not fit the input {list(x.shape)}"
        )

    def plan() -> tuple[Shape, Eval]:
        size = x.shape[sequence]
        positions = np.arange(size)

        def reverse() -> None:
            lengths = lengths_input.data[:, None]
            if lengths.max(initial=0) > size:
                raise OperatorError(f"lengths {integers(lengths_input)}, expected at most {size}")
            order = np.where(positions < lengths, lengths - 1 - positions, positions)
            source = np.moveaxis(x.data, (batch, sequence), (0, 1))
            target = np.moveaxis(y.data, (batch, sequence), (0, 1))
            target[...] = source[np.arange(len(order))[:, None], order]

        return x.shape, reverse

    return size_output(context, y, plan)
