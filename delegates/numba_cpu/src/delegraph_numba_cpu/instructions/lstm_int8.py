"""Instructions of ``kernels/lstm_int8.py``: LSTM layers in integers."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "lstm_int8"

PROJECT = Instruction(
    "project",
    FAMILY,
    "source gates input_weights input_bias gate_records rows inputs row width scratch "
    "scratch_bytes tiles",
)
"""The inputs' part of the gates for all time steps: ``[rows, width], int16``.

A gate has ``row`` columns, a multiple of 16, of which the last may be unused. Weights are in strips
of 64 columns; see :mod:`~delegraph_numba_cpu.lowering.recurrent.lstm_packing`.
"""

LSTM = Instruction(
    "lstm",
    FAMILY,
    """
    gates target output_state cell_state recurrent_weights recurrent_bias gate_records
    sigmoid tanh cell_tanh peephole norm norm_bias projection projection_bias
    steps batch cells outputs count row width gates_step gates_batch target_step target_batch
    cell_shift cell_low cell_high hidden_multiplier hidden_shift hidden_zero
    projection_multiplier projection_shift projection_zero projection_limit
    scratch scratch_bytes tiles
    """,
)
"""All time steps of a layer, a tile for each sequence of the batch; gates are overwritten.

``sigmoid``, ``tanh`` and ``cell_tanh`` are tables for all int16 values. There are ``count`` gates.
``peephole`` is ``[gates but the cell's, batch, cells], int16``. ``norm`` and ``norm_bias`` are
``[gates, cells]``, int16 and int32. These words, ``projection`` and the projection's limit are 0 if
the operand is absent.
"""

GATE = Instruction(
    "gate",
    FAMILY,
    "input_multiplier input_shift recurrent_multiplier recurrent_shift peephole_multiplier "
    "peephole_shift norm_multiplier norm_shift least_variance",
)
"""Record of the scales of one gate; ``gate_records`` is an array of such records."""

GATE_BYTES = 8 * len(GATE.names)

ROWS = 4
"""Number of rows for which the scratch memory of ``PROJECT`` has room."""
