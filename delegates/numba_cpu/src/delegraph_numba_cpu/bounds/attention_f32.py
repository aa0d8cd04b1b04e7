"""Bytes that attention reads and writes."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.attention_f32 import ATTENTION, head_bytes


@rule(ATTENTION)
def attention(row: Touched) -> None:
    sizes = ("batches", "heads", "queries", "depth", "key_count", "columns", "together")
    row.require(min(row[name] for name in sizes) > 0, "matrices have elements")
    depth, key_count, columns = row["depth"], row["key_count"], row["columns"]
    last = row["queries"] - 1
    row.require(min(row["x_row"], row["y_row"]) >= 0, "rows follow the first")
    row.read("x", _last_matrix(row, "x") + last * row["x_row"] + 4 * depth)
    row.write("y", _last_matrix(row, "y") + last * row["y_row"] + 4 * columns)
    row.loops(row["batches"], row["heads"], row["queries"], columns)
    for name, width in (("keys", depth), ("values", columns)):
        steps = row[f"{name}_row"], row[f"{name}_column"]
        row.require(min(steps) >= 0, f"{name}: values follow the first")
        end = (key_count - 1) * steps[0] + (width - 1) * steps[1] + 4
        row.read(name, _last_matrix(row, name) + end)
    if row.has("factor"):
        row.read("factor", 4)
    if row.has("mask"):
        _mask(row)
    _scratch(row)


def _last_matrix(row: Touched, name: str) -> int:
    """Return the distance in bytes from the first matrix of an operand to its last head's matrix.

    The distances are in words that begin with its *name*, such as ``keys``.
    """
    steps = row[f"{name}_batch"], row[f"{name}_head"]
    row.require(min(steps) >= 0, f"{name}: matrices follow the first")
    return (row["batches"] - 1) * steps[0] + (row["heads"] - 1) * steps[1]


def _mask(row: Touched) -> None:
    """Declare the bytes of the attention mask that the kernel call reads.

    Several rows of scores may use the same row of the mask.
    """
    rows, inner = row["mask_rows"], row["mask_inner"]
    row.require(0 < inner <= rows and rows % inner == 0, "rows of the mask repeat evenly")
    row.require(row["mask_step"] in (0, 4), "values of a row are adjacent or the same")
    all_rows = row["batches"] * row["heads"] * row["queries"]
    counts = -(-all_rows // rows), rows // inner, inner
    steps = [row[f"mask_{name}_step"] for name in ("outer", "middle", "inner")]
    row.require(min(steps) >= 0, "rows of the mask follow the first")
    last = sum((n - 1) * step for n, step in zip(counts, steps, strict=True))
    row.read("mask", last + (row["key_count"] - 1) * row["mask_step"] + 4)


def _scratch(row: Touched) -> None:
    """Declare the scratch memory that each thread uses.

    It holds a fixed part, which blocks of all sizes share, the queries, and the scores.
    """
    lanes = row.vector_bytes // 4
    row.within("a block of queries", row["together"], 2 * lanes)
    pitch = 4 * (2 * lanes if row["together"] > lanes else lanes)
    turned = -(-max(row["depth"], row["columns"]) // lanes) * lanes * pitch
    row.within("the head of scratch memory", head_bytes(row.vector_bytes), row["turned_at"])
    row.within("the turned queries", row["turned_at"] + turned, row["scores_at"])
    row.scratch(row["scores_at"] + row["key_count"] * pitch)
