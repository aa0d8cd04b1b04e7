"""Blocks of ``kernels/recurrent.py``: layers with a state."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import Block

SVDF = Block(
    "svdf",
    "recurrent",
    """
    source target state features times bias sums batch inputs units rank window
    multiplier_in shift_in multiplier_out shift_out zero_out tiles
    """,
)
"""A step of an integer SVDF layer, as ``delegraph.kernels.svdf`` describes it.

``sums`` is what to add to the products with each filter, for the input's zero point: int32, as
``bias``. ``window`` results are kept of each filter.
"""

LSTM = Block(
    "lstm",
    "recurrent",
    """
    source target output_state cell_state weights bias peephole norm projection
    projection_bias scratch scratch_bytes steps batch inputs cells outputs gates
    source_step source_batch target_step target_batch activation cell_clip:f projection_clip:f tiles
    """,
)
"""All steps of a float LSTM layer, a tile for each sequence of the batch.

Rows of vectors are padded with zeros to whole vectors. ``weights`` are strips of four vectors of
``gates * cells`` results, each with a row of factors for every element of input and output state;
``projection`` has the same form. ``peephole``, ``norm`` and ``projection`` are 0 where absent.
``scratch`` holds input and output state, gates, and what is projected; a piece for each worker.
"""

TANH, SIGN_BIT, LINEAR, RELU, RELU_N1_TO_1, RELU6 = range(6)
"""Values of ``activation``."""
