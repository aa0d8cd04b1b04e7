"""Checks of a delegate's result tensors; each returns text about a fault, or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import has_nan, unpack
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType

Range = tuple[int, int]
"""Least and greatest allowed value."""

Expected = tuple[tuple[int, ...] | None, Range | None]
"""Required shape and range of an output; None for each that is not restricted."""

TensorOf = Callable[[int], Tensor]
"""Function that returns a tensor by index, with the shape that Delegraph's kernels compute."""

RANDOM = frozenset({"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"})
"""Operators whose values may differ between runs, so that they cannot be compared."""


def wrong_array(tensor: Tensor) -> str | None:
    """Text that describes the wrong type or shape of a computed array; None if both are right."""
    data = tensor.data
    if not isinstance(data, np.ndarray):
        return f"{tensor!r} holds a {type(data).__name__}, expected an array"
    shape = (tensor.bytes,) if tensor.is_packed else tensor.shape
    dtype = np.dtype(np.uint8) if tensor.is_packed else tensor.dtype
    if data.dtype != dtype or data.shape != tuple(shape):
        return (
            f"{tensor!r} was given an array of {data.dtype}{list(data.shape)}, expected "
            f"{dtype}{list(shape)}"
        )
    return None


def wrong_shape(tensor: Tensor, expected: Sequence[int]) -> str | None:
    """Text about a shape of *tensor* other than *expected*; None if the shapes are equal."""
    if tuple(tensor.shape) == tuple(expected):
        return None
    return f"{tensor!r} has a wrong shape, expected {list(expected)}"


def has_special_values(data: NDArray[Any]) -> bool:
    """Whether any number in *data* is NaN or infinite; False for types that have neither.

    >>> has_special_values(np.array([1.0, np.inf])), has_special_values(np.array([3]))
    (True, False)
    """
    if not has_nan(data.dtype):
        return False
    with np.errstate(all="ignore"):
        if np.isfinite(data.sum()):  # a sum with NaN or infinity is not finite
            return False
        return not bool(np.isfinite(data).all())  # the sum may have overflowed


def wrong_special_values(tensor: Tensor, expected: NDArray[Any]) -> str | None:
    """Text about NaN or infinity in *tensor* where *expected* is finite, or about its shape.

    The result is None if the shape is right, and every number that should be finite is.
    """
    if tensor.data.shape != expected.shape:
        return wrong_shape(tensor, expected.shape)
    wrong = ~np.isfinite(tensor.data) & np.isfinite(expected)
    return f"{tensor!r} is NaN or infinite where it should be a number" if wrong.any() else None


def wrong_bools(tensor: Tensor) -> str | None:
    """Text about bytes other than 0 and 1 in a BOOL tensor; None if there are none."""
    if tensor.type is not TensorType.BOOL or not tensor.data.size:
        return None
    largest = int(np.ascontiguousarray(tensor.data).view(np.uint8).max())
    return f"{tensor!r} has bytes other than 0 and 1" if largest > 1 else None


def outside(tensor: Tensor, allowed: Range) -> str | None:
    """Text about integers of *tensor* outside of the range *allowed*; None if there are none."""
    if tensor.is_packed or not tensor.data.size:
        return None
    low, high = int(tensor.data.min()), int(tensor.data.max())
    if allowed[0] <= low and high <= allowed[1]:
        return None
    return f"{tensor!r} has values outside [{allowed[0]}, {allowed[1]}]"


def allowed_range(
    node: Node, registration: Registration, output: int, tensor_of: TensorOf
) -> Range | None:
    """Return the range of the integers that a node's output may hold; None for any.

    *tensor_of* returns a tensor, also an inner one of a partition.
    """
    name = registration.name
    tensor = tensor_of(output)
    find = _INDEX_RANGES.get(name)
    if find is not None:
        return find(node, node.outputs.index(output), tensor_of)
    activation = _ACTIVATIONS.get(name)
    if name in _CLAMPING:
        activation = getattr(node.options, "fused_activation_function", None)
    if not activation or tensor.quantization is None:
        return None
    try:
        return quantized_activation_range(activation, tensor)
    except OperatorError:  # not a quantised type, or no range that integers can hold
        return None


@dataclass(frozen=True, slots=True)
class Difference:
    """Element at which two results differ most, beyond a tolerance.

    Attributes:
        position: index of the element along each axis.
        found: the delegate's result.
        expected: the result of Delegraph's kernels.
        count: elements that differ by more than the tolerance.
        size: number of all elements.
    """

    position: tuple[int, ...]
    found: Any
    expected: Any
    count: int
    size: int

    def __str__(self) -> str:
        return (
            f"{self.found} instead of {self.expected} at {list(self.position)}, the largest of "
            f"{self.count} differences in {self.size} elements"
        )


def difference(
    tensor: Tensor, found: NDArray[Any], expected: NDArray[Any], tolerance: Tolerance
) -> Difference | None:
    """Return the greatest difference of *found* from *expected*; None if *tolerance* allows it.

    Both arrays hold values of *tensor*, and have the same shape.
    """
    if tensor.is_packed:
        found = unpack(found, tensor.type, tensor.shape)
        expected = unpack(expected, tensor.type, tensor.shape)
    excess = tolerance.compare(found, expected)
    count = int(np.count_nonzero(excess > 0))
    if not count:
        return None
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    return Difference(position, found[position], expected[position], count, excess.size)


# -- integers that operators give ----------------------------------------------------------------


def _along_axis(node: Node, output: int, tensor_of: TensorOf) -> Range:
    x, axis = tensor_of(node.inputs[0]), tensor_of(node.inputs[1])
    if axis.data is None:
        return 0, max(x.shape, default=1) - 1
    return 0, x.shape[int(axis.data.reshape(-1)[0])] - 1


def _along_last_axis(node: Node, output: int, tensor_of: TensorOf) -> Range | None:
    return (0, tensor_of(node.inputs[0]).shape[-1] - 1) if output == 1 else None


def _position(node: Node, output: int, tensor_of: TensorOf) -> Range | None:
    return (0, _count(tensor_of(node.inputs[0])) - 1) if output == 1 else None


def _box(node: Node, output: int, tensor_of: TensorOf) -> Range | None:
    return (0, tensor_of(node.inputs[0]).shape[0] - 1) if output == 0 else None


def _coordinate(node: Node, output: int, tensor_of: TensorOf) -> Range:
    return 0, max(tensor_of(node.inputs[0]).shape, default=1) - 1


def _bucket(node: Node, output: int, tensor_of: TensorOf) -> Range:
    boundaries = getattr(node.options, "boundaries", None)
    return 0, 0 if boundaries is None else len(boundaries)


def _count(tensor: Tensor) -> int:
    return int(np.prod(tensor.shape))


_INDEX_RANGES: Mapping[str, Callable[[Node, int, TensorOf], Range | None]] = {
    "ARG_MAX": _along_axis,
    "ARG_MIN": _along_axis,
    "BUCKETIZE": _bucket,
    "NON_MAX_SUPPRESSION_V4": _box,
    "NON_MAX_SUPPRESSION_V5": _box,
    "TOPK_V2": _along_last_axis,
    "UNIQUE": _position,
    "WHERE": _coordinate,
}
"""Mapping from operators whose outputs are indices to functions that return an output's range."""

_CLAMPING = frozenset(
    {
        "ADD",
        "AVERAGE_POOL_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "DIV",
        "FULLY_CONNECTED",
        "MAX_POOL_2D",
        "MUL",
        "SUB",
        "TRANSPOSE_CONV",
    }
)
"""Operators whose quantised results are clamped to the range of their fused activation."""

_ACTIVATIONS = {
    "RELU": ActivationFunctionType.RELU,
    "RELU6": ActivationFunctionType.RELU6,
    "RELU_N1_TO_1": ActivationFunctionType.RELU_N1_TO_1,
}
