"""Builds models with a single operator.

A quantized RELU is::

    x = tensor((1, 4, 4, 3), "INT8", scale=0.5, zero_point=-3)
    y = tensor((1, 4, 4, 3), "INT8", scale=0.25, zero_point=7)
    model = one_op_model("RELU", [x], [y])

Weights are constants: ``constant(w, scale=[...], axis=3)``. ``None`` among the inputs is an
optional input that is absent; using one object twice means using one tensor twice. Graph inputs are
the inputs that are neither constant nor variable, in order; graph outputs are all outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, pack
from delegraph.graph.strings import encode_strings
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import options_field
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model


@dataclass(frozen=True, eq=False)
class TensorDef:
    """Definition of a tensor in a test model, made by :func:`tensor` or :func:`constant`."""

    shape: tuple[int, ...]
    type: TensorType
    quantization: tables.QuantizationParameters | None = None
    data: NDArray[np.uint8] | None = None
    is_variable: bool = False
    shape_signature: tuple[int, ...] | None = None
    sparsity: tables.SparsityParameters | None = None
    name: str = ""


def tensor(
    shape: Sequence[int],
    type: str = "FLOAT32",
    *,
    scale: float | Sequence[float] | None = None,
    zero_point: int | Sequence[int] = 0,
    axis: int = 0,
    is_variable: bool = False,
    shape_signature: Sequence[int] | None = None,
    name: str = "",
) -> TensorDef:
    """Return the definition of a computed tensor, an input or a variable, which has no data.

    Args:
        shape: dimensions; ``()`` for a scalar.
        type: name of a ``TensorType``, such as ``"INT8"``.
        scale: one scale, or one per channel; None if the tensor is not quantized.
        zero_point: one zero point, or one per channel.
        axis: axis of the channels.
        is_variable: whether the tensor keeps its value between invokes.
        shape_signature: the shape with -1 for dimensions that may change.
        name: name of the tensor; if it is empty, a name is generated.
    """
    return TensorDef(
        tuple(shape),
        TensorType[type],
        quantized(scale, zero_point, axis),
        is_variable=is_variable,
        shape_signature=None if shape_signature is None else tuple(shape_signature),
        name=name,
    )


def constant(
    values: ArrayLike,
    type: str | None = None,
    *,
    scale: float | Sequence[float] | None = None,
    zero_point: int | Sequence[int] = 0,
    axis: int = 0,
    name: str = "",
) -> TensorDef:
    """Return the definition of a constant tensor with *values*.

    Args:
        values: stored values (integers if quantized); for ``"INT4"`` one number per item, for
            ``"STRING"`` an object array of bytes.
        type: name of a ``TensorType``; None means the type of the dtype of *values*.
        scale: one scale, or one per channel; None if the tensor is not quantized.
        zero_point: one zero point, or one per channel.
        axis: axis of the channels.
        name: name of the tensor; if it is empty, a name is generated.
    """
    array = np.asarray(values)
    kind = _tensor_type(array.dtype) if type is None else TensorType[type]
    if kind == TensorType.STRING:
        data = encode_strings(array)
    elif kind in BITS:
        data = pack(array, kind)
    else:
        raw = np.ascontiguousarray(array, NUMPY_DTYPES[kind])
        data = np.frombuffer(raw.tobytes(), np.uint8)
    return TensorDef(array.shape, kind, quantized(scale, zero_point, axis), data, name=name)


def quantized(
    scale: float | Sequence[float] | None, zero_point: int | Sequence[int] = 0, axis: int = 0
) -> tables.QuantizationParameters | None:
    """Return the quantization of a tensor as a table of the schema; None if *scale* is None.

    Args:
        scale: one scale, or one per channel; None for a tensor that is not quantized.
        zero_point: one zero point, or one per channel.
        axis: axis of the channels.
    """
    if scale is None:
        return None
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    zero_points = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape)
    return tables.QuantizationParameters(
        scale=scales, zero_point=np.array(zero_points), quantized_dimension=axis
    )


def _tensor_type(dtype: np.dtype[Any]) -> TensorType:
    return next(t for t, d in NUMPY_DTYPES.items() if d == dtype)


def one_op_model(
    op: str,
    inputs: Sequence[TensorDef | None],
    outputs: Sequence[TensorDef],
    options: Table | None = None,
    *,
    version: int = 1,
    custom_options: bytes | None = None,
    intermediates: Sequence[TensorDef] = (),
) -> bytes:
    """Return the ``.tflite`` bytes of a model with one operator.

    Args:
        op: name of a ``BuiltinOperator``; any other name is a custom operator.
        inputs: input tensors; None means that an optional input is absent.
        outputs: output tensors, which are the graph outputs.
        options: options of the operator, such as ``Conv2DOptions(stride_w=1, stride_h=1)``.
        version: version of the operator; the official interpreter rejects unknown versions.
        custom_options: raw bytes of a custom operator.
        intermediates: tensors that only give quantization.
    """
    return write_model(
        one_op_records(
            op, inputs, outputs, options,
            version=version, custom_options=custom_options, intermediates=intermediates,
        )
    )  # fmt: skip


def one_op_records(
    op: str,
    inputs: Sequence[TensorDef | None],
    outputs: Sequence[TensorDef],
    options: Table | None = None,
    *,
    version: int = 1,
    custom_options: bytes | None = None,
    intermediates: Sequence[TensorDef] = (),
) -> tables.Model:
    """Return the tables that :func:`one_op_model` writes, for the same arguments."""
    defs: list[TensorDef] = []
    for given in (*inputs, *outputs, *intermediates):
        if given is not None and not any(given is seen for seen in defs):
            defs.append(given)
    index = {id(definition): i for i, definition in enumerate(defs)}
    fed = [d for d in defs if d.data is None and not d.is_variable and d in tuple(inputs)]
    buffers = [tables.Buffer(), *(tables.Buffer(data=d.data) for d in defs)]
    operator = tables.Operator(
        inputs=tuple(-1 if d is None else index[id(d)] for d in inputs),
        outputs=tuple(index[id(d)] for d in outputs),
        intermediates=tuple(index[id(d)] for d in intermediates) or None,
        **options_field(options),
        custom_options=(
            None if custom_options is None else np.frombuffer(custom_options, np.uint8)
        ),
    )
    subgraph = tables.SubGraph(
        tensors=tuple(tensor_record(d, f"t{i}", i + 1) for i, d in enumerate(defs)),
        inputs=tuple(index[id(d)] for d in fed),
        outputs=operator.outputs,
        operators=(operator,),
        name="main",
    )
    codes = (operator_code(op, version),)
    return tables.Model(
        version=3, operator_codes=codes, subgraphs=(subgraph,), buffers=tuple(buffers)
    )


def operator_code(op: str, version: int = 1) -> tables.OperatorCode:
    """Return the code of a builtin operator, or of a custom operator if no builtin has the name."""
    builtin = BuiltinOperator.__members__.get(op)
    if builtin is None:
        return tables.operator_code(BuiltinOperator.CUSTOM, version=version, custom_code=op)
    return tables.operator_code(builtin, version=version)


def tensor_record(definition: TensorDef, name: str, buffer: int) -> tables.Tensor:
    """Return the record of a tensor.

    Args:
        definition: definition of the tensor.
        name: name of the tensor if the definition has none.
        buffer: index of the buffer with its constant, or of an empty buffer.
    """
    return tables.Tensor(
        shape=definition.shape,
        type=definition.type,
        buffer=buffer,
        name=definition.name or name,
        quantization=definition.quantization,
        is_variable=definition.is_variable,
        sparsity=definition.sparsity,
        shape_signature=definition.shape_signature,
        has_rank=True,
    )
