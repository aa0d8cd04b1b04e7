"""SVDF of integers, and UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.kernels.fixed_point import quantize_multiplier
from delegraph.kernels.lstm_cell import LstmOptions
from delegraph.kernels.lstm_tensors import LstmInput, LstmTensors
from delegraph.kernels.svdf import SvdfInput
from delegraph.schema.enums import ActivationFunctionType
from delegraph_numba_cpu.blocks import recurrent as blocks
from delegraph_numba_cpu.blocks.recurrent import LSTM, SVDF
from delegraph_numba_cpu.operators import lstm_int8
from delegraph_numba_cpu.operators.lstm import Sequences, check_layer, layer_tensors
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    register,
    register_variants,
)
from delegraph_numba_cpu.program import Memory, ProgramBuilder

Floats = NDArray[np.float32]

SVDF_TYPES = ("INT8", "INT16", "INT32")

WORK_A_TILE = 1 << 16
"""Products, some microseconds."""


def check_svdf(call: Call) -> Rejection | None:
    """Let pass integer layers with constant weights and RELU, as the official kernel has it."""
    if len(call.node.inputs) != len(SvdfInput) or call.options is None:
        return Rejection("operands", expected=f"{len(SvdfInput)} inputs, and options")
    if call.options.fused_activation_function != ActivationFunctionType.RELU:
        return Rejection("activation", expected="RELU")
    for i in (SvdfInput.WEIGHTS_FEATURE, SvdfInput.WEIGHTS_TIME, SvdfInput.BIAS):
        tensor = call.optional_input(i)
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constants", tensor=tensor.index)
        if tensor is not None and tensor.sparsity is not None:
            return Rejection("sparse", expected="dense constants", tensor=tensor.index)
    if not call.input(SvdfInput.STATE).is_variable:
        return Rejection("state", expected="a variable", tensor=call.input(SvdfInput.STATE).index)
    if call.input(SvdfInput.INPUT).type.name != "INT8":
        actual = call.input(SvdfInput.INPUT).type.name
        return Rejection("dtype", actual=actual, expected="INT8")
    return check_types(call, *SVDF_TYPES)


def lower_svdf(call: Call, builder: ProgramBuilder) -> None:
    """Emit one step."""
    x, features, times = (call.input(i) for i in range(3))
    bias, state, y = call.optional_input(3), call.input(4), call.output()
    if not y.bytes:
        return
    weights = features.data.astype(np.int32)
    units = y.shape[1]
    into = quantize_multiplier(x.scale * features.scale / state.scale)
    out = quantize_multiplier(state.scale * times.scale / y.scale)
    builder.emit(
        SVDF,
        max(1, min(y.bytes, x.shape[0] * weights.size // WORK_A_TILE, 4 * builder.workers)),
        source=builder.tensor(x.index),
        target=builder.tensor(y.index),
        state=builder.tensor(state.index),
        features=builder.tensor(features.index),
        times=builder.tensor(times.index),
        bias=builder.constant(np.zeros(units, np.int32) if bias is None else bias.data),
        sums=builder.constant((-x.zero_point * weights.sum(1, dtype=np.int32)).astype(np.int32)),
        batch=x.shape[0],
        inputs=x.shape[1],
        units=units,
        rank=features.shape[0] // units,
        window=times.shape[1],
        multiplier_in=into[0],
        shift_in=into[1],
        multiplier_out=out[0],
        shift_out=out[1],
        zero_out=y.zero_point,
    )


_ACTIVATIONS = {
    ActivationFunctionType.NONE: blocks.LINEAR,
    ActivationFunctionType.RELU: blocks.RELU,
    ActivationFunctionType.RELU_N1_TO_1: blocks.RELU_N1_TO_1,
    ActivationFunctionType.RELU6: blocks.RELU6,
    ActivationFunctionType.TANH: blocks.TANH,
    ActivationFunctionType.SIGN_BIT: blocks.SIGN_BIT,
}


def check_lstm(call: Call) -> Rejection | None:
    """Let pass float layers with constant weights."""
    return check_layer(call, "FLOAT32")


def lower_lstm(call: Call, builder: ProgramBuilder) -> None:
    """Emit all steps."""
    x, y = call.input(LstmInput.INPUT), call.output()
    if not y.bytes:
        return
    over = Sequences.of(call)
    layer = FloatLstm.of(call, builder.level.vector_bytes // 4)
    options = LstmOptions.of(call.node)
    source_step, source_batch = over.strides(4 * over.inputs)
    target_step, target_batch = over.strides(4 * over.outputs)

    def packed(part: str, make: Callable[[], Floats | None]) -> Memory | int:
        values = make()
        if values is None:
            return 0
        return builder.packed((call.node.inputs, part), lambda: values)

    builder.emit(
        LSTM,
        over.batch,
        source=builder.tensor(x.index),
        target=builder.tensor(y.index),
        output_state=builder.tensor(call.node.inputs[LstmInput.OUTPUT_STATE]),
        cell_state=builder.tensor(call.node.inputs[LstmInput.CELL_STATE]),
        weights=packed("weights", layer.weights),
        bias=packed("bias", lambda: layer.rows(layer.tensors.biases)),
        peephole=packed("peephole", lambda: layer.rows(layer.tensors.peephole)),
        norm=packed("norm", lambda: layer.rows(layer.tensors.layer_norm)),
        projection=packed("projection", layer.projection),
        projection_bias=packed("projection bias", layer.projection_bias),
        scratch=builder.scratch(layer.scratch_bytes * builder.workers),
        scratch_bytes=layer.scratch_bytes,
        steps=over.steps,
        batch=over.batch,
        inputs=layer.inputs,
        cells=layer.cells,
        outputs=layer.outputs,
        gates=len(layer.tensors.biases),
        source_step=source_step,
        source_batch=source_batch,
        target_step=target_step,
        target_batch=target_batch,
        activation=_ACTIVATIONS[ActivationFunctionType(options.activation)],
        cell_clip=options.cell_clip,
        projection_clip=options.proj_clip,
    )


@dataclass(frozen=True, slots=True)
class FloatLstm:
    """The weights of a float layer in the form of the kernel.

    Attributes:
        tensors: the layer's tensors.
        lanes: elements of a vector.
    """

    tensors: LstmTensors
    lanes: int

    @classmethod
    def of(cls, call: Call, lanes: int) -> FloatLstm:
        """Return the layer of a node."""
        return cls(layer_tensors(call), lanes)

    @property
    def inputs(self) -> int:
        """Length of the input."""
        return self.tensors.input_weights[-1].shape[1]

    @property
    def cells(self) -> int:
        """Length of the cell state."""
        return self.tensors.n_cell

    @property
    def outputs(self) -> int:
        """Length of the output state."""
        return self.tensors.n_output

    @property
    def scratch_bytes(self) -> int:
        """Bytes that a worker needs."""
        row = self._padded(self.cells, self.lanes)
        gates = self._padded(len(self.tensors.biases) * row, 4 * self.lanes)
        vector = self._padded(self.inputs + self.outputs, self.lanes)
        return 4 * (vector + gates + row + self._padded(self.outputs, 4 * self.lanes))

    def weights(self) -> Floats:
        """Return the factors of input and output state, strip by strip."""
        gates = []
        for into, again in zip(
            self.tensors.input_weights, self.tensors.recurrent_weights, strict=True
        ):
            recurrent = np.diag(again.data) if again.data.ndim == 1 else again.data
            gates.append(np.concatenate([into.data, recurrent], axis=1))
        missing = self._padded(self.cells, self.lanes) - self.cells
        padded = np.pad(np.stack(gates), [(0, 0), (0, missing), (0, 0)])
        return self._strips(padded.reshape(-1, padded.shape[-1]))

    def rows(self, tensors: Sequence[Tensor]) -> Floats | None:
        """Return vectors below one another; None when there are none."""
        if not tensors:
            return None
        missing = self._padded(self.cells, self.lanes) - self.cells
        return np.pad(np.stack([tensor.data for tensor in tensors]), [(0, 0), (0, missing)])

    def projection(self) -> Floats | None:
        """Return the factors of the hidden state, strip by strip; None without projection."""
        weights = self.tensors.projection_weights
        return None if weights is None else self._strips(weights.data)

    def projection_bias(self) -> Floats | None:
        """Return what is added to the projection; None without one."""
        bias = self.tensors.projection_bias
        if self.tensors.projection_weights is None:
            return None
        return np.zeros(self.outputs, np.float32) if bias is None else np.asarray(bias.data)

    def _strips(self, matrix: Floats) -> Floats:
        """Return ``[R, K]`` as ``[strips, K, 4 * lanes]``, rows of zeros added."""
        width = 4 * self.lanes
        rows = self._padded(len(matrix), width)
        padded = np.pad(matrix, [(0, rows - len(matrix)), (0, 0)])
        return np.ascontiguousarray(padded.reshape(-1, width, matrix.shape[1]).swapaxes(1, 2))

    @staticmethod
    def _padded(count: int, unit: int) -> int:
        return -(-count // unit) * unit


FEATURES = ("activation", "empty")

LAYER = "UNIDIRECTIONAL_SEQUENCE_LSTM"

register({"SVDF": Operator(check_svdf, lower_svdf, SVDF_TYPES, FEATURES)})
register_variants("FLOAT32", {LAYER: Operator(check_lstm, lower_lstm, ("FLOAT32",), FEATURES)})
register_variants(
    "INT8", {LAYER: Operator(lstm_int8.check, lstm_int8.lower, lstm_int8.TYPES, FEATURES)}
)
