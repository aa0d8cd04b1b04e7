"""The instruction of ``kernels/attention_f32.py``; distances are bytes."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.conv_f32 import LIMITS

ATTENTION = Instruction(
    "attention",
    "attention_f32",
    f"""
    x keys values y factor mask scratch scratch_bytes pixels_at scores_at
    batches heads queries depth key_count
    x_batch x_head x_row keys_batch keys_head values_batch values_head y_batch y_head y_row
    mask_rows mask_inner mask_outer_step mask_middle_step mask_inner_step mask_step
    score_row together beta:f {LIMITS} tiles
    """,
)
"""``softmax((x keys) * factor + mask) values`` of float32, ``together`` rows of ``x`` at a time.

Of the first product, only the scores of these rows are ever stored. They are in a worker's
``scratch_bytes`` bytes of scratch memory, at ``scores_at``, ``score_row`` bytes apart.

Words:
    x: rows of ``depth`` values, ``queries`` for each of ``heads`` heads of ``batches`` batches.
    keys, values: matrices as in ``conv_f32``: ``depth`` rows by ``key_count`` columns, and
        ``key_count`` rows by ``columns`` columns.
    x_batch, x_head, x_row: bytes between batches, heads and rows, as for other operands. They are 0
        where all share an operand.
    factor: address of one float32, or 0 if scores are not multiplied.
    mask: address of rows that are added, or 0 without a mask. Row *i* of all scores gets the one at
        ``i // mask_rows * mask_outer_step + i % mask_rows // mask_inner * mask_middle_step + i %
        mask_inner * mask_inner_step``.
    mask_step: 4, or 0 if a row of the mask is a single value.
    low, high: infinite, as products are not clamped.
    residual_pitch, residual_columns, slopes: 0, as results have neither residual nor slopes.
"""
