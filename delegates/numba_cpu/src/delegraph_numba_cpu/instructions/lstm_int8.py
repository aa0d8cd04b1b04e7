"""Blocks of ``kernels/lstm_int8.py``: LSTM layers in integers."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "lstm_int8"

PROJECT = Instruction(
    "project",
    FAMILY,
    "source gates input_weights input_bias gate_records rows inputs row width scratch "
    "scratch_bytes tiles",
)
"""What the inputs of all steps add to the gates: ``[rows, width], int16``.

A gate takes ``row`` columns, a multiple of 16, of which the last may be unused. Weights are
in strips of 64 columns, as :mod:`~delegraph_numba_cpu.lowering.recurrent.lstm_packing` makes them.
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
"""All steps of a layer, a tile for each sequence of the batch; gates are overwritten.

``sigmoid``, ``tanh`` and ``cell_tanh`` are tables of all int16. There are ``count`` gates.
``peephole`` is ``[gates but the cell's, batch, cells], int16``, ``norm`` and ``norm_bias`` are
``[gates, cells]``, int16 and int32; they and ``projection`` are 0 where absent, and so
is the limit of the projection's magnitude.
"""

GATE = Instruction(
    "gate",
    FAMILY,
    "input_multiplier input_shift recurrent_multiplier recurrent_shift peephole_multiplier "
    "peephole_shift norm_multiplier norm_shift least_variance",
)
"""A record of a gate's scales; ``gate_records`` are these, one after the other."""

GATE_BYTES = 8 * len(GATE.names)

ROWS = 4
"""Rows that scratch memory of ``PROJECT`` has room for."""
