"""Checks of a node's tensors and options that kernels make during prepare."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.registration import Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Tensor, element_count
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import OPTIONS_OF_OPERATOR

INDEX = (TensorType.INT32,)
"""Types of sizes and axes that the official kernels read as int32 without a check of their type."""

_LARGEST_DIMENSION = 2**31 - 1

WIDE_INDEX = (TensorType.INT32, TensorType.INT64)
"""Types of sizes and axes that may also be int64."""


def tensor_types(names: str) -> frozenset[TensorType]:
    """Return the element types in *names*, which are separated by blanks.

    >>> tensor_types("INT8 BOOL") == {TensorType.INT8, TensorType.BOOL}
    True
    """
    return frozenset(TensorType[name] for name in names.split())


def require_counts(node: Node, inputs: int | Sequence[int] | None, outputs: int | None = 1) -> None:
    """Raise an error unless a node has the expected numbers of inputs and outputs.

    Args:
        node: the node.
        inputs: allowed number of inputs, or several such numbers; None means any.
        outputs: required number of outputs; None means any.

    Raises:
        OperatorError: the node has other numbers of inputs or outputs.
    """
    found = len(node.inputs), len(node.outputs)
    if found == (inputs, outputs):
        return
    allowed = [
        (count,) if expected is None else (expected,) if isinstance(expected, int) else expected
        for count, expected in zip(found, (inputs, outputs), strict=True)
    ]
    if any(count not in expected for count, expected in zip(found, allowed, strict=True)):
        wanted = [" or ".join(map(str, expected)) for expected in allowed]
        raise OperatorError(
            f"node has {found[0]} inputs and {found[1]} outputs, expected {wanted[0]} and "
            f"{wanted[1]}"
        )


def tensors_of(context: OpContext, node: Node, inputs: int, outputs: int = 1) -> list[Tensor]:
    """Return all tensors of a node with exactly *inputs* inputs and *outputs* outputs.

    The inputs come first, in the node's order, as in ``x, axis, y = tensors_of(context, node, 2)``.

    Raises:
        OperatorError: the node has other numbers of inputs or outputs, or one of them is absent.
    """
    require_counts(node, inputs, outputs)
    tensors = [input_tensor(context, node, i) for i in range(inputs)]
    tensors += [output_tensor(context, node, i) for i in range(outputs)]
    return tensors


def require_type(tensor: Tensor, allowed: Collection[TensorType]) -> None:
    """Check that the type of *tensor* is one of *allowed*.

    Raises:
        OperatorError: the type is none of *allowed*.
    """
    if tensor.type not in allowed:
        names = ", ".join(sorted(type_.name for type_ in allowed))
        raise OperatorError(
            f"tensor {tensor.name!r} has type {tensor.type.name}, expected one of {names}"
        )


def require_same_type(a: Tensor, b: Tensor) -> None:
    """Check that the tensors *a* and *b* have the same element type.

    Raises:
        OperatorError: the types differ.
    """
    if a.type != b.type:
        raise OperatorError(
            f"tensors {a.name!r} and {b.name!r} have types {a.type.name} and {b.type.name}, "
            "expected the same"
        )


def require_shape(tensor: Tensor, shape: Sequence[int]) -> None:
    """Check that the shape of *tensor* equals *shape*.

    Raises:
        OperatorError: the shape differs.
    """
    if tensor.shape != tuple(shape):
        raise OperatorError(
            f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected {list(shape)}"
        )


def require_dimensions(tensor: Tensor, shape: Sequence[int]) -> None:
    """Check that every dimension of *shape*, the new shape of *tensor*, fits an int32.

    Raises:
        OperatorError: a dimension is negative, or more than 2,147,483,647.
    """
    if shape and not 0 <= min(shape) <= max(shape) <= _LARGEST_DIMENSION:
        raise OperatorError(
            f"{tensor!r} cannot have shape {list(shape)}, expected dimensions from 0 to "
            f"{_LARGEST_DIMENSION}"
        )


def require_rank(tensor: Tensor, rank: int) -> None:
    """Check that *tensor* has *rank* dimensions.

    Raises:
        OperatorError: *tensor* has another number of dimensions.
    """
    if len(tensor.shape) != rank:
        raise OperatorError(
            f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected {rank} dimensions"
        )


def require_one_element(*tensors: Tensor) -> None:
    """Check that each of *tensors* has exactly one element, for any number of dimensions.

    Raises:
        OperatorError: a tensor has no element, or several.
    """
    for tensor in tensors:
        if element_count(tensor.shape) != 1:
            raise OperatorError(
                f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected one element"
            )


def require_one_scale(*tensors: Tensor) -> None:
    """Check that none of *tensors* has more than one quantization scale.

    Raises:
        OperatorError: a tensor has several scales.
    """
    for tensor in tensors:
        if tensor.quantization is not None and len(tensor.quantization.scales) > 1:
            count = len(tensor.quantization.scales)
            raise OperatorError(f"tensor {tensor.name!r} has {count} scales, expected one")


def require_dense(context: OpContext, node: Node, sparse_inputs: Collection[int]) -> None:
    """Check that no input of a node is a sparse constant, except the inputs *sparse_inputs*.

    Raises:
        OperatorError: another input is sparse. It has fewer values than its shape, and official
            kernels would read beyond these values.
    """
    tensors = context.tensors
    for position, index in enumerate(node.inputs):
        if index < 0 or tensors[index].sparsity is None or position in sparse_inputs:
            continue
        raise OperatorError(
            f"input {position}, {tensors[index]!r}, is a sparse constant, expected a dense "
            "one; DENSIFY makes it one"
        )


def adopt_type(output: Tensor, type_: TensorType) -> None:
    """Set an output's type to *type_*, the type that the operator computes.

    Source:
        ``output->type = ...`` in many functions ``Prepare`` of tflite/kernels.

    Raises:
        OperatorError: the operator computes strings or resources, but the output is declared as
            numbers. Then LiteRT would write into memory planned for numbers, and crash.
    """
    if type_ in OBJECT_TYPES and output.type not in OBJECT_TYPES:
        raise OperatorError(f"output is {output.type.name}, expected {type_.name}")
    output.adopt_type(type_)


def require_zero_points(*tensors: Tensor) -> None:
    """Check that the zero point of each of *tensors* is 0.

    Raises:
        OperatorError: a zero point is not 0.
    """
    for tensor in tensors:
        if tensor.zero_point:
            raise OperatorError(
                f"tensor {tensor.name!r} has zero point {tensor.zero_point}, expected 0"
            )


def require_scales(*tensors: Tensor) -> None:
    """Check that each of *tensors* is quantized with a positive scale.

    Raises:
        OperatorError: a tensor has no scale, several scales, or a scale that is not positive.
    """
    require_one_scale(*tensors)
    for tensor in tensors:
        if not tensor.scale > 0:
            raise OperatorError(
                f"tensor {tensor.name!r} has scale {tensor.scale}, expected a positive one"
            )


def option(node: Node, name: str, default: Any) -> Any:
    """Return option *name* of the node, or *default* if the file has no options."""
    return default if node.options is None else getattr(node.options, name)


def options_or_defaults(node: Node, op: str) -> Any:
    """Return the node's options, or the schema's defaults if the file has none.

    Args:
        node: the node.
        op: name of the node's operator, such as ``"CONV_2D"``.
    """
    return OPTIONS_OF_OPERATOR[BuiltinOperator[op]]() if node.options is None else node.options


def type_option(node: Node, name: str, default: TensorType) -> TensorType:
    """Return the node's option *name*, a tensor type, or *default* if it is absent.

    Raises:
        OperatorError: the number in the option is not a known type.

    Source:
        ConvertTensorType, tflite/core/api/flatbuffer_conversions.cc.
    """
    number = option(node, name, default)
    if number not in TensorType.__members__.values():
        raise OperatorError(f"option {name} is {int(number)}, expected the number of a TensorType")
    return TensorType(number)
