"""The instruction of ``kernels/attention_f32.py``; distances are bytes."""

from delegraph_numba_cpu.instructions import Instruction

ATTENTION = Instruction(
    "attention",
    "attention_f32",
    """
    x keys values y factor mask scratch scratch_bytes turned_at scores_at
    batches heads queries depth key_count columns
    x_batch x_head x_row keys_batch keys_head keys_row keys_column
    values_batch values_head values_row values_column y_batch y_head y_row
    mask_rows mask_inner mask_outer_step mask_middle_step mask_inner_step mask_step
    together beta:f tiles
    """,
)
"""``softmax((x keys) * factor + mask) values`` of float32, ``together`` rows of ``x`` at a time.

Only the scores of these rows are stored at a time. They are in a worker's ``scratch_bytes`` bytes
of scratch memory, at ``scores_at``: a row for each key, with a column for each query. At
``turned_at`` are the queries, and later the results, also in columns.

Words:
    x: rows of ``depth`` values, ``queries`` for each of ``heads`` heads of ``batches`` batches.
    keys: ``key_count`` rows of ``depth`` values.
    values: ``key_count`` rows of ``columns`` values.
    x_batch, x_head, x_row: bytes between batches, heads and rows, as for other operands. A distance
        is 0 if all batches, heads or rows share the operand.
    keys_column, values_column: bytes between the values of a row; 4 for other operands.
    factor: address of one float32, or 0 if scores are not multiplied.
    mask: address of rows that are added, or 0 without a mask. Row *i* of all scores gets the row at
        ``i // mask_rows * mask_outer_step + i % mask_rows // mask_inner * mask_middle_step + i %
        mask_inner * mask_inner_step``.
    mask_step: 4, or 0 if a row of the mask is a single value.
    together: number of queries, from 1 to two registers.
"""


CHUNK = 128
"""Number of keys that a step computes before the next step uses them, so that they stay cached."""


def head_bytes(vector_bytes: int) -> int:
    """Return the size of the fixed part of a worker's scratch memory, at its beginning.

    It has ``CHUNK`` rows that each step reuses, a row of zeros, the largest scores, and addresses
    of rows. A row has a float32, or an address, for each lane of two registers.

    Args:
        vector_bytes: bytes of a vector register.
    """
    wide = vector_bytes // 2
    return 4 * wide * (CHUNK + 2) + 8 * wide
