"""Bytes that rows of resizing read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Rule, Touched, rule
from delegraph_numba_cpu.instructions import resize


def _resize(itemsize: int) -> Rule:
    def touch(row: Touched) -> None:
        pixel, height, width = row["channels"] * itemsize, row["out_height"], row["out_width"]
        down, across = (
            row.table(name).reshape(-1, resize.TAP_WORDS) for name in ("down", "across")
        )
        row.loops(row["rows"], width, row["channels"])
        row.require(len(down) >= height and len(across) >= width, "tables name every position")
        down, across = down[:height, :2], across[:width, :2]
        images = -(-row["rows"] // height)
        last = (images - 1) * row["image_bytes"] + int(down.max()) + int(across.max())
        row.read("source", last + pixel, int(down.min()) + int(across.min()))
        row.write("target", row["rows"] * width * pixel)

    return touch


rule(resize.BILINEAR_F32)(_resize(4))
rule(resize.BILINEAR_S8, resize.BILINEAR_U8)(_resize(1))
