"""What rows of pooling and resizing touch."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import pooling, resize
from delegraph_numba_cpu.extents.touched import Rule, Touched, rule


def _pool(itemsize: int) -> Rule:
    def touch(row: Touched) -> None:
        pixel = row["channels"] * itemsize
        images = -(-row["rows"] // row["out_height"])
        row.require(row["window_height"] > 0 < row["window_width"], "a window has pixels")
        row.read("source", images * row["height"] * row["width"] * pixel)
        row.write("target", row["rows"] * row["out_width"] * pixel)

    return touch


def _resize(itemsize: int) -> Rule:
    def touch(row: Touched) -> None:
        pixel, height, width = row["channels"] * itemsize, row["out_height"], row["out_width"]
        down, across = (
            row.table(name).reshape(-1, resize.TAP_WORDS) for name in ("down", "across")
        )
        row.require(len(down) >= height and len(across) >= width, "tables name every position")
        down, across = down[:height, :2], across[:width, :2]
        images = -(-row["rows"] // height)
        last = (images - 1) * row["image_bytes"] + int(down.max() + across.max())
        row.read("source", last + pixel, int(down.min() + across.min()))
        row.write("target", row["rows"] * width * pixel)

    return touch


rule(pooling.MAX_F32, pooling.MEAN_F32)(_pool(4))
rule(pooling.MAX_S8, pooling.MAX_U8, pooling.MEAN_S8, pooling.MEAN_U8)(_pool(1))
rule(pooling.MAX_S16, pooling.MEAN_S16)(_pool(2))
rule(resize.BILINEAR_F32)(_resize(4))
rule(resize.BILINEAR_S8, resize.BILINEAR_U8)(_resize(1))
