"""LSTM layers in integers: int8 activations and weights, int16 cell state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import (
    logistic_table,
    quantize_multiplier,
    quantized_clip,
    scale_exponent,
    tanh_table,
)
from delegraph.operators import LstmInput, LstmOptions
from delegraph_numba_cpu.instructions.lstm_int8 import GATE, LSTM, PROJECT, ROWS
from delegraph_numba_cpu.instructions.memory import padded
from delegraph_numba_cpu.lowering.checks import first_rejection
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
    stacked_gates,
    strip_row,
)
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, WorkerScratch

TYPES = ("INT8", "INT16", "INT32")

INTERMEDIATES = 5
"""Number of intermediate tensors: four gates before normalization, and the hidden state."""

_ACC_BYTES = 4 * STRIP * ROWS
_GATE_BITS = 3  # number of integer bits of a gate, which is Q3.12
_WORK_A_TILE = 1 << 19
"""Number of products of a tile, which take some microseconds."""


def check(call: Call) -> Rejection | None:
    """Return a rejection unless weights are constant, and all intermediates are there.

    The scale of the cell state must be 2**-15 or more.
    """
    return first_rejection(check_layer(call, *TYPES), _check_intermediates(call), _check_cell(call))


def _check_intermediates(call: Call) -> Rejection | None:
    if len(call.node.intermediates) != INTERMEDIATES:
        count = len(call.node.intermediates)
        return Rejection("operands", actual=count, expected=f"{INTERMEDIATES} intermediates")
    return None


def _check_cell(call: Call) -> Rejection | None:
    state = call.input(LstmInput.CELL_STATE)
    if scale_exponent(state) < -15:  # the official kernel has no tanh for smaller scales
        return Rejection("scale", actual=state.scale, expected="2**-15 or more", tensor=state.index)
    return None


def lower(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of an integer LSTM layer.

    The first call multiplies the inputs of all time steps by weights; the second computes the
    steps.
    """
    if not call.output().bytes:
        return
    layer = IntegerLstm.of(call, builder.level.byte_shift)
    over, packed = Sequences.of(call), packer(call, builder)
    gates = builder.scratch(2 * over.rows * layer.width)
    _emit_inputs(builder, layer, over, gates, packed)
    size = _ACC_BYTES + padded(max(layer.cells, over.outputs), DEPTH) + STRIP
    emit_steps(
        builder,
        LSTM,
        layer,
        over,
        gates,
        (2, 1),
        size,
        recurrent_weights=packed("recurrent", layer.recurrent_weights),
        recurrent_bias=packed("recurrent bias", layer.recurrent_bias),
        gate_records=packed("records", layer.records),
        **layer.tables(builder),
        **layer.optional_words(packed, over),
        **layer.output_words(packed),
    )


def _emit_inputs(
    builder: ProgramBuilder, layer: IntegerLstm, over: Sequences, gates: Memory, packed: Pack
) -> None:
    """Add a kernel call that multiplies the inputs of all time steps by the gates' int8 weights.

    The results, the inputs' part of each gate, are written to *gates*.
    """
    work = over.rows * over.inputs * layer.width
    tiles = max(1, min(-(-over.rows // ROWS), work // _WORK_A_TILE, 4 * builder.workers))
    size = _ACC_BYTES + ROWS * padded(over.inputs, DEPTH) + STRIP
    builder.emit(
        PROJECT,
        tiles,
        source=builder.tensor(over.source),
        gates=gates,
        input_weights=packed("input", layer.input_weights),
        input_bias=packed("input bias", layer.input_bias),
        gate_records=packed("records", layer.records),
        rows=over.rows,
        inputs=over.inputs,
        row=layer.row,
        width=layer.width,
        scratch=WorkerScratch(size),
    )


@dataclass(frozen=True, slots=True)
class IntegerLstm(LstmLayer):
    """Constants of an integer LSTM layer, in the form that kernels read.

    Attributes:
        x: input tensor.
        y: output tensor.
        intermediates: tensors that have the scales of the gates before normalization, and of the
            hidden state.
        options: clipping ranges.
        unsigned: number that kernels add to int8 values before they multiply them.
    """

    x: Tensor
    y: Tensor
    intermediates: tuple[Tensor, ...]
    options: LstmOptions
    unsigned: int

    @classmethod
    def of(cls, call: Call, byte_shift: int) -> IntegerLstm:
        """Return the layer of the node *call*; *byte_shift* is ``CpuLevel.byte_shift``."""
        intermediates = tuple(call.context.tensors[i] for i in call.node.intermediates)
        options = LstmOptions.of(call.node)
        unsigned = 128 - byte_shift
        return cls(
            layer_tensors(call), call.input(0), call.output(), intermediates, options, unsigned
        )

    def records(self) -> NDArray[np.int64]:
        """Return each gate's multipliers, ``[gates, len(GATE.names)], int64``."""
        scales = self.tensors.gate_scales(self.intermediates)
        parts = zip(self.tensors.input_weights, self.tensors.recurrent_weights, scales, strict=True)
        peepholes = dict(zip(self._with_peephole, self.tensors.peephole, strict=False))
        norms = self.tensors.layer_norm
        return np.stack(
            [
                _record(
                    _multiplier(into, self.x, scale),
                    _multiplier(again, self.tensors.output_state, scale),
                    self._peephole_multiplier(peepholes.get(k), scale),
                    norms[k] if norms else None,
                )
                for k, (into, again, scale) in enumerate(parts)
            ]
        )

    @property
    def _with_peephole(self) -> list[int]:
        return [k for k in range(self.count) if k != self.count - 2]  # without the cell gate

    def _peephole_multiplier(self, weights: Tensor | None, scale: float) -> float:
        if weights is None:
            return 0.0
        cell = 2.0 ** scale_exponent(self.tensors.cell_state)
        return float(np.float32(cell * weights.scale / scale))

    def input_weights(self) -> NDArray[np.int8]:
        """Return the weights of the layer's input, packed in strips of 64 columns."""
        return byte_strips(_stacked(self.tensors.input_weights))

    def recurrent_weights(self) -> NDArray[np.int8]:
        """Return the weights of the output state, packed in strips of 64 columns."""
        return byte_strips(_stacked(self.tensors.recurrent_weights))

    def input_bias(self) -> NDArray[np.int32]:
        """Bias that corrects products of unsigned inputs, int32, padded to whole strips."""
        bias = self._zero_point_sums(_stacked(self.tensors.input_weights), self.x)
        if not self.tensors.layer_norm:
            bias = bias + _stacked(self.tensors.biases)
        return strip_row(bias)

    def recurrent_bias(self) -> NDArray[np.int32]:
        """Bias that corrects products of unsigned output states, int32, padded to whole strips."""
        state = self.tensors.output_state
        return strip_row(self._zero_point_sums(_stacked(self.tensors.recurrent_weights), state))

    def tables(self, builder: ProgramBuilder) -> dict[str, Memory]:
        """Return the kernel's operands for tables of all int16 values; layers share the tables."""
        bits = 15 + scale_exponent(self.tensors.cell_state)
        return {
            "sigmoid": builder.packed("lstm sigmoid", lambda: logistic_table(_GATE_BITS)),
            "tanh": builder.packed(("lstm tanh", _GATE_BITS), lambda: tanh_table(_GATE_BITS)),
            "cell_tanh": builder.packed(("lstm tanh", bits), lambda: tanh_table(bits)),
        }

    def optional_words(self, packed: Pack, over: Sequences) -> dict[str, Any]:
        """Return the kernel's operands, by name, for peepholes and layer normalization.

        Args:
            packed: function that packs a constant once, stores it, and returns its memory.
            over: number of sequences and time steps.
        """
        tensors = self.tensors
        words: dict[str, Any] = {"peephole": 0, "norm": 0, "norm_bias": 0}
        if tensors.peephole:
            name = f"peephole of {over.batch}"
            words["peephole"] = packed(name, lambda: self._peephole_rows(over))
        if tensors.layer_norm:
            words["norm"] = packed("norm", lambda: np.stack([t.data for t in tensors.layer_norm]))
            words["norm_bias"] = packed("bias", lambda: np.stack([t.data for t in tensors.biases]))
        return words

    def _peephole_rows(self, over: Sequences) -> NDArray[np.int16]:
        """Return the peephole weights of each cell, ``[gates - 1, batch, cells]``.

        *over* is the geometry of the sequences.

        The official kernel reads as many weights as the output state has values, see
        ``delegraph.kernels.recurrent.lstm_integer_cell``. If the cell state is longer, the last
        cells get no weights.
        """
        rows = []
        for tensor in self.tensors.peephole:
            weights = tensor.data[: over.outputs]
            row = np.zeros((over.batch, self.cells), np.int16)
            if over.is_time_major:
                row.reshape(-1)[: over.batch * len(weights)] = np.tile(weights, over.batch)
            else:
                row[:, : len(weights)] = weights
            rows.append(row)
        return np.stack(rows)

    def output_words(self, packed: Pack) -> dict[str, Any]:
        """Return the kernel's operands, by name, for cell state, hidden vector and projection.

        Args:
            packed: function that packs a constant once, stores it, and returns its memory.
        """
        tensors, hidden = self.tensors, self.intermediates[4]
        clip = quantized_clip(self.options.cell_clip, tensors.cell_state, 32767)
        scale = np.float32(2.0**-15 / hidden.scale * 2.0**-15)
        multiplier, shift = quantize_multiplier(float(scale))
        is_projected = tensors.projection_weights is not None
        return self._projection_words(packed) | {
            "cell_shift": 30 + scale_exponent(tensors.cell_state),
            "cell_low": -clip if clip else -32768,
            "cell_high": clip or 32767,
            "hidden_multiplier": multiplier,
            "hidden_shift": shift,
            # The official kernel takes the wrong sign before a projection.
            "hidden_zero": -hidden.zero_point if is_projected else hidden.zero_point,
        }

    def _projection_words(self, packed: Pack) -> dict[str, Any]:
        tensors = self.tensors
        weights, hidden = tensors.projection_weights, self.intermediates[4]
        if weights is None:
            return dict.fromkeys((name for name in LSTM.names if name.startswith("projection")), 0)
        ratio = np.float32(weights.scale) * np.float32(hidden.scale)
        multiplier, shift = quantize_multiplier(
            float(ratio / np.float32(tensors.output_state.scale))
        )
        return {
            "projection": packed("projection", lambda: byte_strips(weights.data)),
            "projection_bias": packed("projection bias", self._projection_bias),
            "projection_multiplier": multiplier,
            "projection_shift": shift,
            "projection_zero": tensors.output_state.zero_point,
            "projection_limit": quantized_clip(self.options.proj_clip, self.y, 127),
        }

    def _zero_point_sums(self, weights: NDArray[np.int8], x: Tensor) -> NDArray[np.int32]:
        """Return the correction of products of *x* and *weights* for unsigned activations.

        It accounts for the zero point of *x*.
        """
        zero = x.zero_point + self.unsigned
        sums: NDArray[np.int32] = -zero * weights.sum(axis=1, dtype=np.int32)
        return sums

    def _projection_bias(self) -> NDArray[np.int32]:
        weights, bias = self.tensors.projection_weights, self.tensors.projection_bias
        assert weights is not None
        factor = self.intermediates[4].zero_point - self.unsigned
        sums = factor * weights.data.sum(axis=1, dtype=np.int32)
        return strip_row((sums if bias is None else sums + bias.data).astype(np.int32))


def _stacked(tensors: Sequence[Tensor]) -> NDArray[Any]:
    return stacked_gates([tensor.data for tensor in tensors])


def _multiplier(weights: Tensor, x: Tensor, scale: float) -> float:
    return float(np.float32(weights.scale) * np.float32(x.scale) / np.float32(scale))


def _record(into: float, again: float, peephole: float, norm: Tensor | None) -> NDArray[np.int64]:
    """Return a gate's record: multipliers of inputs, state and peephole, and the norm's constants.

    *into*, *again* and *peephole* are these multipliers as real numbers. *norm* has the weights of
    the layer normalization, if any.
    """
    scale = np.float32(0 if norm is None else norm.scale)
    words = [
        part for real in (into, again, peephole, float(scale)) for part in quantize_multiplier(real)
    ]
    words[-1] += 12  # normalised gates are Q3.12
    words.append(max(1, int(np.float32(10000) * scale)))
    return GATE.pack(**dict(zip(GATE.names, words, strict=True)))
