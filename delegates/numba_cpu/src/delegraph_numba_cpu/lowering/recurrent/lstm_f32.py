"""LSTM layers of floats, with float or 8-bit weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import dequantized_weights
from delegraph.operators import LstmInput, LstmOptions
from delegraph.schema.enums import ActivationFunctionType
from delegraph_numba_cpu.instructions import conv_hybrid
from delegraph_numba_cpu.instructions import lstm_f32 as instructions
from delegraph_numba_cpu.instructions.memory import padded
from delegraph_numba_cpu.lowering.convolution.conv_f32 import UNLIMITED, emit_products
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import pack_matrix
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import Windows
from delegraph_numba_cpu.lowering.convolution.conv_hybrid import (
    ACTIVATION_ZERO,
    emit_product,
    packed_weights,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8 import pack_windows_record
from delegraph_numba_cpu.lowering.convolution.conv_windows import ONE_PIXEL
from delegraph_numba_cpu.lowering.recurrent.lstm_layer import (
    LstmLayer,
    Pack,
    Sequences,
    check_layer,
    emit_steps,
    layer_tensors,
    packer,
)
from delegraph_numba_cpu.lowering.recurrent.lstm_packing import (
    DEPTH,
    STRIP,
    byte_strips,
    float_strips,
    stacked_gates,
    strip_row,
)
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder

Floats = NDArray[np.float32]

HYBRID_TYPES = ("FLOAT32", "INT8")

DEEPEST = 1 << 16
"""Largest number of products of two bytes whose sum fits in 32 bits."""

_ACTIVATIONS = {
    ActivationFunctionType.RELU: instructions.RELU,
    ActivationFunctionType.RELU_N1_TO_1: instructions.RELU_N1_TO_1,
    ActivationFunctionType.RELU6: instructions.RELU6,
    ActivationFunctionType.TANH: instructions.TANH,
    ActivationFunctionType.SIGN_BIT: instructions.SIGN_BIT,
}


def check(call: Call) -> Rejection | None:
    """Return a rejection unless matrices are all float32 or all int8."""
    rejection = _check_hybrid(call) if _is_hybrid(call) else check_layer(call, "FLOAT32")
    if rejection is None and call.options.fused_activation_function not in _ACTIVATIONS:
        actual = ActivationFunctionType(call.options.fused_activation_function).name
        return Rejection("activation", actual=actual, expected="an activation function")
    return _check_normalised_gates(call) if rejection is None else rejection


def _check_normalised_gates(call: Call) -> Rejection | None:
    """Return a rejection if layer normalization would divide by almost zero.

    All cells of a gate with equal weights have nearly the same value. Normalization divides the
    rounding error of their mean by ``sqrt(1e-8)``, so that results depend on the last bit of each
    value.
    """
    if call.optional_input(LstmInput.FORGET_LAYER_NORM_COEFFICIENTS) is None:
        return None
    gates = LstmInput.RECURRENT_TO_INPUT_WEIGHTS - LstmInput.INPUT_TO_INPUT_WEIGHTS
    for i in range(LstmInput.INPUT_TO_INPUT_WEIGHTS, LstmInput.RECURRENT_TO_INPUT_WEIGHTS):
        weights, recurrent = call.optional_input(i), call.optional_input(i + gates)
        if weights is not None and recurrent is not None and _are_cells_alike(weights, recurrent):
            expected = "rows that differ"
            return Rejection("layer-norm", "", "equal rows", expected, tensor=weights.index)
    return None


def _are_cells_alike(*matrices: Tensor) -> bool:
    """Whether all cells of a gate have equal weights; *matrices* are the gate's weights."""
    return matrices[0].shape[:1] != (1,) and all(map(_are_rows_equal, matrices))


def _are_rows_equal(matrix: Tensor) -> bool:
    """Whether all rows of *matrix* are equal; a vector stands for a diagonal matrix."""
    rows = matrix.data
    return bool((rows == rows[:1]).all() if rows.ndim > 1 else not rows.any())


def _is_hybrid(call: Call) -> bool:
    return call.input(LstmInput.INPUT_TO_OUTPUT_WEIGHTS).type.name == "INT8"


def _check_hybrid(call: Call) -> Rejection | None:
    found = check_layer(call, *HYBRID_TYPES)
    if found is not None:
        return found
    matrices = (
        *range(LstmInput.INPUT_TO_INPUT_WEIGHTS, LstmInput.CELL_TO_INPUT_WEIGHTS),
        LstmInput.PROJECTION_WEIGHTS,
    )
    for tensor in filter(None, map(call.optional_input, matrices)):
        if tensor.type.name != "INT8" or len(tensor.shape) != 2:
            actual = f"{tensor.type.name} {list(tensor.shape)}"
            expected = "INT8 in two dimensions"
            return Rejection("weights", actual=actual, expected=expected, tensor=tensor.index)
        if tensor.shape[1] >= DEEPEST:
            expected = "sums of 32 bits"
            return Rejection("depth", actual=tensor.shape, expected=expected, tensor=tensor.index)
    return None


def lower(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of a float LSTM layer.

    The first calls multiply the inputs of all time steps by weights; the last call computes the
    steps.
    """
    if not call.output().bytes:
        return
    over, is_hybrid = Sequences.of(call), _is_hybrid(call)
    options = LstmOptions.of(call.node)
    level = builder.level
    zero = ACTIVATION_ZERO - level.byte_shift
    layer = FloatLstm(layer_tensors(call), is_hybrid, level.vector_bytes // 4, zero)
    gates = builder.scratch(4 * over.rows * layer.width)
    emit_inputs = _emit_byte_inputs if is_hybrid else _emit_float_inputs
    emit_inputs(call, builder, layer, over, gates)
    emit_steps(
        builder,
        instructions.LSTM,
        layer,
        over,
        gates,
        (4, 4),
        layer.scratch_bytes,
        **layer.words(packer(call, builder)),
        is_hybrid=int(is_hybrid),
        is_asymmetric=int(options.asymmetric),
        activation=_ACTIVATIONS[ActivationFunctionType(options.activation)],
        cell_clip=options.cell_clip,
        projection_clip=options.proj_clip,
    )


def _emit_float_inputs(
    call: Call, builder: ProgramBuilder, layer: FloatLstm, over: Sequences, gates: Memory
) -> None:
    """Add a kernel call that multiplies the inputs of all time steps by the gates' float weights.

    The results, the inputs' part of each gate, are written to *gates*.
    """
    lanes = builder.level.vector_bytes // 4
    weight = builder.packed(
        (call.node.inputs, "input weights", lanes),
        lambda: pack_matrix(layer.input_weights().T, layer.input_bias(), lanes),
        is_own=True,
    )
    emit_products(
        builder,
        Windows.of_rows(over.rows, over.inputs, layer.width),
        (1, 1),
        x=builder.tensor(over.source),
        y=gates,
        weight=weight,
    )


def _emit_byte_inputs(
    call: Call, builder: ProgramBuilder, layer: FloatLstm, over: Sequences, gates: Memory
) -> None:
    """Add kernel calls that quantize all time steps' inputs, and multiply them by int8 weights.

    The results are as of :func:`_emit_float_inputs`.
    """
    weights, scales = layer.input_weights(), layer.scales(layer.tensors.input_weights)
    emit_product(
        call,
        builder,
        pack_windows_record(builder, over.inputs, ONE_PIXEL, zero=ACTIVATION_ZERO, flip=0),
        conv_hybrid.DIRECT,
        (over.rows, over.inputs, padded(over.inputs, 4)),
        LstmOptions.of(call.node).asymmetric,
        (over.rows, over.inputs, layer.width),
        y=gates,
        low=UNLIMITED[0],
        high=UNLIMITED[1],
        **packed_weights(builder, call.node.outputs[0], weights, scales, layer.input_bias()),
    )


@dataclass(frozen=True, slots=True)
class FloatLstm(LstmLayer):
    """Constants of an LSTM layer of floats, in the form that kernels read.

    Attributes:
        is_hybrid: whether matrices are int8.
        lanes: number of float32 values in a register.
        zero: stored value of a quantized activation of 0.
    """

    is_hybrid: bool
    lanes: int
    zero: int

    @property
    def width(self) -> int:
        """Number of columns of all gates, rounded up to whole strips."""
        return padded(self.count * self.row, STRIP)

    @property
    def scratch_bytes(self) -> int:
        """Number of scratch bytes per worker."""
        outputs = padded(self.tensors.n_output, STRIP)
        cells = padded(self.cells, STRIP)
        return 4 * (cells + outputs + STRIP) + padded(max(cells, outputs), DEPTH) + STRIP

    def input_weights(self) -> NDArray[Any]:
        """Return the weights of the input, ``[width, I]``."""
        return self._stacked([tensor.data for tensor in self.tensors.input_weights])

    def input_bias(self) -> Floats:
        """Bias of the gates, ``[width]``; zeros with layer normalization."""
        if self.tensors.layer_norm:
            return np.zeros(self.width, np.float32)
        return self._stacked([tensor.data for tensor in self.tensors.biases])

    def scales(self, tensors: Sequence[Tensor]) -> Floats:
        """Return the scale of each row of *tensors*, the gates' weights, ``[width]``."""
        return self._stacked([np.full(self.cells, t.scale, np.float32) for t in tensors])

    def words(self, packed: Pack) -> dict[str, Memory | int]:
        """Return the kernel's operands, by name, for the layer's constants; 0 for absent constants.

        Args:
            packed: function that packs a constant once, stores it, and returns its memory.
        """
        tensors, is_hybrid = self.tensors, self.is_hybrid
        is_projected = tensors.projection_weights is not None
        is_normalised = bool(tensors.layer_norm)
        parts: dict[str, tuple[bool, Callable[[], NDArray[Any]]]] = {
            "weights": (True, lambda: self._strips(self._recurrent())),
            "headers": (is_hybrid, self._recurrent_headers),
            "bias": (is_normalised, lambda: _rows(tensors.biases)),
            "peephole": (bool(tensors.peephole), lambda: _rows(tensors.peephole)),
            "norm": (is_normalised, lambda: _rows(tensors.layer_norm)),
            "projection": (is_projected, self._projection),
            "projection_headers": (is_projected and is_hybrid, self._projection_headers),
            "projection_bias": (is_projected, self._projection_bias),
        }
        return {
            name: packed(name, make) if is_there else 0 for name, (is_there, make) in parts.items()
        }

    def _recurrent(self) -> NDArray[Any]:
        """Return the weights of the output state, ``[width, O]``."""
        weights = (tensor.data for tensor in self.tensors.recurrent_weights)
        return self._stacked([np.diag(each) if each.ndim == 1 else each for each in weights])

    def _recurrent_headers(self) -> NDArray[np.uint8]:
        scales = self.scales(self.tensors.recurrent_weights)
        return strip_headers(self._recurrent(), scales, self.zero)

    def _projection(self) -> NDArray[Any]:
        weights = self.tensors.projection_weights
        assert weights is not None
        return self._strips(weights.data)

    def _projection_headers(self) -> NDArray[np.uint8]:
        weights = self.tensors.projection_weights
        assert weights is not None
        scales = np.full(self.tensors.n_output, weights.scale, np.float32)
        return strip_headers(weights.data, scales, self.zero)

    def _projection_bias(self) -> Floats:
        bias, outputs = self.tensors.projection_bias, self.tensors.n_output
        return strip_row(np.zeros(outputs, np.float32) if bias is None else bias.data)

    def _stacked(self, gates: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the rows of all gates in one array, with zeros up to a whole number of strips."""
        stacked = stacked_gates(gates)
        missing = self.width - len(stacked)
        return np.pad(stacked, [(0, missing), *[(0, 0)] * (stacked.ndim - 1)])

    def _strips(self, matrix: NDArray[Any]) -> NDArray[Any]:
        return byte_strips(matrix) if self.is_hybrid else float_strips(matrix, 4 * self.lanes)


def _rows(tensors: Sequence[Tensor]) -> Floats:
    """Return the dequantized vectors of *tensors*, stacked."""
    return stacked_gates([dequantized_weights(tensor) for tensor in tensors])


def strip_headers(weights: NDArray[np.int8], scales: Floats, zero: int) -> NDArray[np.uint8]:
    """Return the sums and scales of each strip of columns: ``[strips, HEADER_BYTES], uint8``.

    Args:
        weights: weights, ``[O, K]``.
        scales: scale of each output, ``[O]``.
        zero: stored value of a quantized activation of 0.
    """
    sums = weights.sum(axis=1, dtype=np.int32)
    rows: dict[str, NDArray[Any]] = {
        "bias": -zero * sums,
        "sum": sums,
        "scale": scales,
    }
    headers = np.empty((padded(len(sums), STRIP) // STRIP, instructions.HEADER_BYTES), np.uint8)
    for name, row in rows.items():
        place = instructions.HEADER[name]
        values = strip_row(row).view(np.uint8).reshape(len(headers), -1)
        headers[:, place : place + 4 * STRIP] = values
    return headers
