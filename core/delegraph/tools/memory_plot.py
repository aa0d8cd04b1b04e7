"""Plot of a memory plan: lifetimes along x, offsets along y."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.tools.memory_planners import PlannerResult
from delegraph.tools.memory_report import MemoryReport
from delegraph.tools.memory_svg import UNITS, plan_svg

FORMATS = (".svg", ".png", ".html")
"""Suffixes of files to which a plan can be drawn."""

_WIDTH, _HEIGHT = 12.0, 6.5  # inches
_LETTER = 0.08  # width of a letter in inches
_BRIGHT = 0.6  # share of the colour map from which black letters read better than white ones


def draw_plan(
    report: MemoryReport, result: PlannerResult, path: str | os.PathLike[str], title: str
) -> None:
    """Draw the arena over time to a file: ``.svg``, ``.png`` or ``.html``.

    Each tensor is a box: as wide as its lifetime in nodes, as high as its bytes, with the name of
    the operator that writes it. A black line shows the bytes in use at each node, and a dashed line
    the lower bound of the plan. A dotted line marks the node at which most memory is in use. In
    ``.svg`` and ``.html`` files, the mouse pointer shows each tensor's name, bytes, offset and
    nodes.

    Raises:
        ArgumentError: the file has another suffix or cannot be written, or matplotlib is missing.
    """
    target = require_drawable(path)
    computed = f" + {report.constant_bytes:,} of constants" if report.constant_bytes else ""
    least = "" if report.open_shape is None else "at least "
    caption = f"{title}: {least}{result.bytes:,} bytes by planner {result.planner}{computed}"
    try:
        suffix = target.suffix.lower()
        if suffix == ".png":
            _figure(report, result, caption).savefig(target, dpi=110)
            return
        svg = plan_svg(report, result, caption)
        head = "<!doctype html>\n<meta charset='utf-8'>\n<title>memory plan</title>\n"
        target.write_text(head + svg if suffix == ".html" else svg, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{str(target)!r}: {error.strerror or error}") from error


def require_drawable(path: str | os.PathLike[str]) -> Path:
    """Return *path* if a plan can be drawn to it.

    Raises:
        ArgumentError: the file has another suffix, or its folder is missing; or matplotlib is, and
            the file is a ``.png``.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise ArgumentError(f"{str(target)!r}: expected a file ending in {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise ArgumentError(f"{str(target)!r}: there is no folder {str(target.parent)!r}")
    if target.suffix.lower() == ".png" and find_spec("matplotlib") is None:
        raise ArgumentError(
            'drawing a .png needs matplotlib: pip install "delegraph[plot]"; .svg and .html need '
            "nothing"
        )
    return target


def _figure(report: MemoryReport, result: PlannerResult, title: str) -> Any:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    top, start, end = (
        max(result.bytes, result.bound, 1),
        report.start,
        max(len(report.operators), 1),
    )
    nodes = end - start
    unit, bytes_of_unit = next((u, b) for u, b in UNITS if top >= b)
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    colours = colormaps["viridis"]
    lasts = report.last_positions(result)
    for tensor, offset, last in zip(report.tensors, result.offsets, lasts, strict=True):
        first = max(tensor.first, start)
        width, height, bottom = (
            last - first + 1,
            tensor.bytes / bytes_of_unit,
            offset / bytes_of_unit,
        )
        share = tensor.bytes / top
        shade = 0.35 + 0.6 * min(share * 2, 1)
        axes.bar(
            first,
            height,
            width,
            bottom,
            align="edge",
            color=colours(shade),
            edgecolor="white",
            linewidth=0.5,
        )
        label = _label(tensor.made_by, width / nodes, share)
        if label:
            axes.annotate(
                label,
                (first + width / 2, bottom + height / 2),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if shade < _BRIGHT else "black",
                rotation=90 if width / nodes < share else 0,
                clip_on=True,
            )
    in_use = [count / bytes_of_unit for count in report.bytes_in_use(result)[start:]]
    edges = range(start, start + len(in_use) + 1)
    axes.stairs(in_use, edges, color="black", linewidth=1, label="bytes in use")
    bound = result.bound / bytes_of_unit
    least = result.bound_in_words
    axes.axhline(bound, linestyle="--", color="tab:red", linewidth=1, label=least)
    peak = report.peak_of(result)
    if peak is not None:
        most = f"most in use: {peak.where}"
        middle = peak.position + 0.5
        axes.axvline(middle, linestyle=":", color="tab:gray", linewidth=1, label=most)
    side = "left" if peak is not None and peak.position > start + nodes / 2 else "right"
    axes.legend(loc=f"upper {side}", bbox_to_anchor=(0 if side == "left" else 1, 0.95))
    axes.set_xlim(start, end)
    axes.set_ylim(0, 1.05 * top / bytes_of_unit)
    axes.set(xlabel=f"{report.unit} of the execution plan", ylabel=f"offset in the arena, {unit}")
    axes.set_title(title)
    return figure


def _label(name: str, width: float, height: float) -> str:
    """Return *name* if it fits into a box of *width* and *height*, else empty text."""
    sides = (width * _WIDTH, height * _HEIGHT)
    fits = max(sides) >= _LETTER * len(name) and min(sides) >= 2 * _LETTER
    return name if fits else ""
