"""Instructions of ``kernels/lstm_f32.py``: LSTM layers of floats."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

LSTM = Instruction(
    "lstm",
    "lstm_f32",
    """
    gates target output_state cell_state weights headers bias peephole norm
    projection projection_headers projection_bias is_hybrid is_asymmetric
    steps batch cells outputs count row width gates_step gates_batch target_step target_batch
    scratch scratch_bytes activation cell_clip:f projection_clip:f tiles
    """,
)
"""All time steps of a float LSTM layer, a tile for each sequence of the batch.

``gates`` holds the inputs' part of the gates, ``width`` values per step, and is overwritten. Each
of the ``count`` gates has ``row`` columns. ``peephole``, ``norm`` and ``bias`` are rows of vectors;
``bias`` belongs to ``norm``. These words and ``projection`` are 0 if the operand is absent.

Float ``weights`` and ``projection`` are in strips of four vectors. Int8 weights are in strips of 64
columns, each with a ``HEADER``.
"""

HEADER = {"bias": 0, "sum": 256, "scale": 512}
"""Offset in bytes of each field of a header of ``HEADER_BYTES`` bytes, which has 64 values a field.

``bias``: number added to sums, int32. ``sum``: sum of weights, int32. ``scale``: scale of weights,
float32.
"""

HEADER_BYTES = 768

TANH, SIGN_BIT, LINEAR, RELU, RELU_N1_TO_1, RELU6 = range(6)
"""Values of the word ``activation``."""
