"""Pictures of ``speed.md``: ratios of runtimes, and the share of the roof that operators reach.

They follow the reader's light or dark colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from speed_results import (
    Entry,
    Names,
    counts,
    in_words,
    kind_of,
    names_of_networks,
    runtimes_of,
    slowest_first,
    threads_of,
)

DRAWN = {"numba_cpu": "mine", "OpenVINO": "vino", "ONNX Runtime": "onnx", "TFLite builtin": "plain"}
"""The runtimes in the picture, and the classes of their dots; the core is far to the right."""

LEFT, WIDE, STEP, LEAST, MOST = 370, 600, 18, 0.2, 64.0

STYLE = """\
<style>
svg { --page: #ffffff; --line: #cbd5e1; --ink: #1f2937; --soft: #64748b;
  --mine: #0d9488; --vino: #7e22ce; --onnx: #c2410c; --plain: #94a3b8; }
@media (prefers-color-scheme: dark) { svg { --page: #111827; --line: #475569; --ink: #e5e7eb;
  --soft: #94a3b8; --mine: #2dd4bf; --vino: #d8b4fe; --onnx: #fb923c; --plain: #64748b; } }
text { fill: var(--ink);
  font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.head { font-size: 14px; font-weight: 600; }
.page { fill: var(--page); }
.end { text-anchor: end; }
.middle { text-anchor: middle; fill: var(--soft); }
.line { stroke: var(--line); }
.one { stroke: var(--ink); }
.mine { fill: var(--mine); stroke: var(--mine); }
.vino { fill: var(--vino); stroke: var(--vino); }
.onnx { fill: var(--onnx); stroke: var(--onnx); }
.plain { fill: var(--plain); stroke: var(--plain); }
.dot { fill-opacity: 0.35; stroke-opacity: 0.8; }
</style>"""


def picture(kept: dict[str, Any]) -> str:
    """Return a dot plot of the ratios, sorted, with one panel per number of threads."""
    names = names_of_networks()
    parts, top = [_legend(kept["networks"])], 40
    for threads in threads_of(kept["networks"]):
        own = [entry for entry in kept["networks"] if entry["threads"] == threads]
        number = in_words(threads).capitalize()
        title = f"{number}: time divided by that of XNNPACK; left of 1 is faster"
        parts.append(f'<text class="head" x="12" y="{top + 22}">{title}</text>')
        parts += _panel(slowest_first(own), top + 34, names)
        top += 34 + STEP * len(own) + 34
    return _drawn("Ratio of the time of each runtime to XNNPACK's, for each network", parts, top)


def _drawn(about: str, parts: Sequence[str], height: int) -> str:
    """Return an SVG picture of *parts* with the title *about*."""
    size = f'viewBox="0 0 {LEFT + WIDE + 30} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{about}</title>'
    page = f'<rect class="page" width="100%" height="{height}"/>'
    return "\n".join([head, STYLE, page, *parts, "</svg>"]) + "\n"


def _legend(entries: Sequence[Entry]) -> str:
    found, parts, x = runtimes_of(entries), [], LEFT
    for name in (name for name in DRAWN if name in found):
        parts.append(f'<circle class="{DRAWN[name]}" cx="{x}" cy="20" r="4.5"/>')
        parts.append(f'<text x="{x + 10}" y="24">{name}</text>')
        x += 140
    return "\n".join(parts)


def _panel(entries: Sequence[Entry], top: int, names: Names) -> Iterator[str]:
    bottom = top + STEP * len(entries)
    for mark in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
        kind, x = "one" if mark == 1 else "line", _x(mark)
        yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        yield f'<text class="middle" x="{x}" y="{bottom + 16}">{mark:g}</text>'
    for number, entry in enumerate(entries):
        y = top + STEP * number + STEP // 2
        network = str(entry["network"])
        name = names.get(network, {}).get("name", network)
        kind = f"{escape(name)}, {kind_of(entry)}"
        yield f'<text class="end" x="{LEFT - 12}" y="{y + 4}">{kind}</text>'
        by_name = {r["runtime"]: r["ratio"] for r in entry["results"] if counts(r)}
        for runtime in reversed([name for name in DRAWN if name in by_name]):
            ratio, kind = by_name[runtime], DRAWN[runtime]
            low, high = _x(ratio["low"]), _x(ratio["high"])
            yield f'<line class="{kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
            yield f'<circle class="{kind}" cx="{_x(ratio["value"])}" cy="{y}" r="4.5"/>'


def _x(ratio: float) -> float:
    """Return the x coordinate of a ratio on the logarithmic axis, clamped to its ends."""
    bounded = min(MOST, max(LEAST, ratio))
    return round(LEFT + WIDE * math.log(bounded / LEAST) / math.log(MOST / LEAST), 1)


# -- the picture of roofs --------------------------------------------------------------------------

FAMILIES = (
    ("convolutions in one", {"CONV_2D", "DEPTHWISE_CONV_2D"}),
    ("CONV_2D", {"CONV_2D"}),
    ("DEPTHWISE_CONV_2D", {"DEPTHWISE_CONV_2D"}),
    ("TRANSPOSE_CONV", {"TRANSPOSE_CONV"}),
    ("FULLY_CONNECTED", {"FULLY_CONNECTED"}),
    ("attention", {"BATCH_MATMUL", "SOFTMAX"}),
    ("BATCH_MATMUL", {"BATCH_MATMUL"}),
    ("others", set[str]()),
)
"""Families: an operator, fused or not, is in the first whose names it has."""

ROW, FULL = 40, 1.0


def roofs_picture(kept: dict[str, Any]) -> str:
    """Return a plot of the operators' share of the roof, by family and type."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in kept.get("roofs", ()):
        kind = "float32" if entry["kind"] == "FLOAT32" else "integers"
        for each in entry["operators"]:
            if each["delegate"]:
                found.setdefault((family_of(each["operators"]), kind), []).append(each)
    order = [(name, kind) for name, _ in FAMILIES for kind in ("float32", "integers")]
    rows = [key for key in order if key in found]
    top, bottom = 40, 40 + ROW * len(rows)
    title = "Share of the roof that operators reach, one thread"
    parts = [f'<text class="head" x="12" y="24">{title}</text>']
    for mark in (0, 0.2, 0.4, 0.6, 0.8, 1):
        x = _roof_x(mark)
        kind = "one" if mark == FULL else "line"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="middle" x="{x}" y="{bottom + 16}">{mark:.0%}</text>')
    for number, key in enumerate(rows):
        parts += _roof_row(key, found[key], top + ROW * number + ROW // 2)
    return _drawn(title, parts, bottom + 30)


def _roof_row(key: tuple[str, str], operators: Sequence[Entry], y: int) -> Iterator[str]:
    kind = "mine" if key[1] == "float32" else "onnx"
    yield f'<text class="end" x="{LEFT - 12}" y="{y + 4}">{", ".join(key)}</text>'
    for each in sorted(operators, key=lambda each: -each["share"]):
        radius = round(1 + 16 * math.sqrt(each["share"]), 1)
        yield f'<circle class="{kind} dot" cx="{_roof_x(each["of_roof"])}" cy="{y}" r="{radius}"/>'
    shares = sum(each["share"] for each in operators)
    mean = sum(each["share"] * min(each["of_roof"], FULL) for each in operators) / shares
    x = _roof_x(mean)
    yield f'<line class="one" x1="{x}" x2="{x}" y1="{y - 16}" y2="{y + 16}"/>'


def family_of(operators: str) -> str:
    """Return the family of an operator, or of several fused ones joined by ``+``."""
    names = set(operators.split("+"))
    return next(family for family, wanted in FAMILIES if wanted <= names)


def _roof_x(share: float) -> float:
    """Return the x coordinate of a share of the roof, clamped to the axis."""
    return round(LEFT + WIDE * min(share, FULL), 1)
