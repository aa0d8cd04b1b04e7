"""Blocks of ``kernels/lstm_f32.py``: LSTM layers of floats."""

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
"""All steps of a float LSTM layer, a tile for each sequence of the batch.

``gates`` holds what the inputs add to them, ``width`` a step, and is overwritten. Each of the
``count`` gates takes ``row`` columns. ``peephole``, ``norm`` and ``bias`` (with ``norm`` alone) are
rows of vectors; they and ``projection`` are 0 where absent.

Float ``weights`` are in strips of four vectors; bytes in strips of 64 columns, with a ``HEADER``
each. ``projection`` has the same form.
"""

HEADER = {"bias": 0, "sum": 256, "scale": 512}
"""Where 64 of each are in a header of ``HEADER_BYTES``: what is added to sums, int32; the sum of
weights, int32; the scale of weights, float32."""

HEADER_BYTES = 768

TANH, SIGN_BIT, LINEAR, RELU, RELU_N1_TO_1, RELU6 = range(6)
"""Values of ``activation``."""
