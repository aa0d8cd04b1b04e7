"""Bytes that attention reads and writes."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.conv_f32 import packed_columns
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.attention_f32 import ATTENTION
from delegraph_numba_cpu.instructions.conv_f32 import HEIGHTS


@rule(ATTENTION)
def attention(row: Touched) -> None:
    """Declare, for the bounds check, the bytes that the kernel ``ATTENTION`` reads and writes."""
    sizes = ("batches", "heads", "queries", "depth", "key_count", "columns", "together")
    row.require(min(row[name] for name in sizes) > 0, "matrices have elements")
    row.require(not row.has("slopes"), "results have no slopes")
    depth, key_count, columns = row["depth"], row["key_count"], row["columns"]
    lanes, last = row.vector_bytes // 4, row["queries"] - 1
    row.read("x", _last_matrix(row, "x") + last * row["x_row"] + 4 * depth)
    row.write("y", _last_matrix(row, "y") + last * row["y_row"] + 4 * columns)
    results = 4 * row["batches"] * row["heads"] * row["queries"] * columns
    row.within("all results", results, row.address("y").memory.size)
    for name, rows, width in (("keys", depth, key_count), ("values", key_count, columns)):
        row.read(name, _last_matrix(row, name) + 4 * (rows + 1) * packed_columns(width, lanes))
    if row.has("factor"):
        row.read("factor", 4)
    if row.has("mask"):
        _mask(row)
    _scratch(row)


def _last_matrix(row: Touched, name: str) -> int:
    """Return the distance in bytes from the first matrix of an operand to its last head's matrix.

    Args:
        row: kernel call that is being checked.
        name: name of the operand, such as ``keys``; the distances are in words that begin with it.
    """
    steps = row[f"{name}_batch"], row[f"{name}_head"]
    row.require(min(steps) >= 0, f"{name}: matrices follow the first")
    return (row["batches"] - 1) * steps[0] + (row["heads"] - 1) * steps[1]


def _mask(row: Touched) -> None:
    """Declare, for the bounds check, the bytes of the attention mask that the kernel call reads.

    Several rows of scores may use the same row of the mask.

    Args:
        row: kernel call that is being checked.
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
    """Declare, for the bounds check, the scratch memory that each thread uses.

    It holds the offset of a tap, the addresses of query rows, and the scores.

    Args:
        row: kernel call that is being checked.
    """
    at_once = row.vector_bytes if row.vector_bytes == 64 else row.vector_bytes // 2
    whole = 4 * (-(-row["key_count"] // at_once) * at_once)
    pixels = row["pixels_at"] + 8 * (row["together"] + HEIGHTS[row.vector_bytes])
    row.within("the offset of the tap", 8, row["pixels_at"])
    row.within("the table of rows", pixels, row["scores_at"])
    row.within("a row of scores", whole, row["score_row"])
    row.scratch(row["scores_at"] + row["together"] * row["score_row"])
