"""SVG of a memory plan: lifetimes along x, offsets along y; needs no other package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import floor, log10
from xml.sax.saxutils import escape

from delegraph.tools.memory_planners import PlannerResult
from delegraph.tools.memory_report import MemoryReport

_WIDTH, _HEIGHT = 1200, 650
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 20, 50, 60
_LETTER = 7.5  # width of a letter of the labels in boxes
_LINE = 12  # their height
_TICKS = 8  # about so many on an axis
_ROW = 18  # height of a line of the legend
_SAMPLE = 24  # width of its sample lines
_DARK = 38  # lightness in percent up to which white letters read better than black ones
UNITS = (("MB", 10**6), ("kB", 10**3), ("bytes", 1))
"""Units of offsets in pictures, with their bytes, the largest first."""

_STYLE = (
    "text{font:13px sans-serif}.box text{font-size:11px;text-anchor:middle}"
    ".box rect{stroke:white;stroke-width:.5}.end{text-anchor:end}.middle{text-anchor:middle}"
)


def plan_svg(report: MemoryReport, result: PlannerResult, title: str) -> str:
    """Return the picture of a plan as SVG, with a title that the mouse shows for each tensor.

    Args:
        report: tensors with their lifetimes.
        result: the plan: offsets of the tensors.
        title: text above the picture.
    """
    plot = _Plot(report, result)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}"><style>{_STYLE}</style>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text class="middle" x="{_WIDTH / 2}" y="28">{escape(title)}</text>',
        *plot.axes(),
        *plot.boxes(),
        *plot.lines(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Plot:
    """Parts of the picture, in pixels.

    Args:
        report: tensors with their lifetimes.
        result: the plan.
    """

    def __init__(self, report: MemoryReport, result: PlannerResult) -> None:
        self._report, self._result = report, result
        self._top = max(result.bytes, result.bound, 1)
        self._start, self._end = report.start, max(len(report.operators), 1)

    def _x(self, node: float) -> float:
        share = max(node - self._start, 0) / (self._end - self._start)
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * share, 2)

    def _y(self, count: float) -> float:
        """Return the height of an offset; a twentieth above the plan stays free."""
        room = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - room * count / (1.05 * self._top), 2)

    def axes(self) -> Iterator[str]:
        """Yield both axes with their numbers and texts."""
        unit, of_unit = next((u, b) for u, b in UNITS if self._top >= b)
        left, bottom = _LEFT, self._y(0)
        yield _path([(left, _TOP), (left, bottom), (_WIDTH - _RIGHT, bottom)], "black")
        for number in round_ticks(1.05 * self._top / of_unit):
            y = self._y(number * of_unit)
            yield _path([(left - 4, y), (left, y)], "black")
            yield f'<text class="end" x="{left - 8}" y="{y + 4}">{number:g}</text>'
        for node in round_ticks(self._end, least=1):
            if node < self._start:
                continue
            yield _path([(self._x(node), bottom), (self._x(node), bottom + 4)], "black")
            yield f'<text class="middle" x="{self._x(node)}" y="{bottom + 18}">{node:g}</text>'
        middle = _HEIGHT / 2
        yield (
            f'<text class="middle" transform="translate(20 {middle}) rotate(-90)">offset in the '
            f"arena, {unit}</text>"
        )
        below = _HEIGHT - 18
        what = f"{self._report.unit} of the execution plan"
        yield f'<text class="middle" x="{_WIDTH / 2}" y="{below}">{what}</text>'

    def boxes(self) -> Iterator[str]:
        """Yield a box for each tensor, with the operator that writes it if there is room."""
        lasts = self._report.last_positions(self._result)
        places = zip(self._report.tensors, self._result.offsets, lasts, strict=True)
        for tensor, offset, last in places:
            x, y = self._x(tensor.first), self._y(offset + tensor.bytes)
            wide = round(self._x(last + 1) - x, 2)
            high = round(self._y(offset) - y, 2)
            light = round(65 - 35 * min(2 * tensor.bytes / self._top, 1))
            told = (
                f"tensor {tensor.index} {tensor.name} of {tensor.made_by}: {tensor.bytes:,} bytes "
                f"at {offset:,}, {self._report.unit}s {tensor.first} to {last}"
            )
            yield (
                f'<g class="box"><title>{escape(told)}</title><rect x="{x}" y="{y}" '
                f'width="{wide}" height="{high}" fill="hsl(200 60% {light}%)"/>'
                f'<g fill="{"white" if light <= _DARK else "black"}">'
                f"{_label(tensor.made_by, x + wide / 2, y + high / 2, wide, high)}</g></g>"
            )

    def lines(self) -> Iterator[str]:
        """Yield bytes in use, the bound, and the node at which most is in use, with a legend."""
        in_use = self._report.bytes_in_use(self._result)
        steps = [
            (self._x(node + side), self._y(count))
            for node, count in enumerate(in_use)
            if node >= self._start
            for side in (0, 1)
        ]
        yield _path(steps, "black")
        bound = self._y(self._result.bound)
        yield _path([(_LEFT, bound), (_WIDTH - _RIGHT, bound)], "crimson", "6 4")
        legend = [
            ("black", "none", "bytes in use"),
            ("crimson", "6 4", self._result.bound_in_words),
        ]
        peak = self._report.peak_of(self._result)
        if peak is not None:
            x = self._x(peak.position + 0.5)
            yield _path([(x, _TOP), (x, self._y(0))], "gray", "2 3")
            legend.append(("gray", "2 3", f"most in use: {peak.where}"))
        yield from _legend(
            legend, is_left=peak is not None and 2 * peak.position > self._start + self._end
        )


def _legend(entries: Sequence[tuple[str, str, str]], *, is_left: bool) -> Iterator[str]:
    """Yield the lines of the legend, each with a sample of its line.

    Args:
        entries: colour, dashes and text of each line.
        is_left: whether the legend is at the left.
    """
    wide = _SAMPLE + 20 + _LETTER * max(len(text) for _, _, text in entries)
    left, top = (_LEFT + 10 if is_left else _WIDTH - _RIGHT - 10 - wide), _TOP + 26
    high = _ROW * len(entries) + 8
    yield f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="white" opacity=".85"/>'
    for row, (colour, dashes, text) in enumerate(entries):
        y = top + _ROW * (row + 1)
        yield _path([(left + 6, y - 4), (left + 6 + _SAMPLE, y - 4)], colour, dashes)
        yield f'<text x="{left + _SAMPLE + 14}" y="{y}">{escape(text)}</text>'


def round_ticks(top: float, least: float = 0) -> list[float]:
    """Return the round numbers that mark an axis from 0 to *top*, at least *least* apart.

    >>> round_ticks(1.7)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6]
    """
    power = 10.0 ** floor(log10(top / _TICKS))
    steps = [max(power * factor, least) for factor in (1, 2, 5, 10)]
    step = next(step for step in steps if top / step <= _TICKS * 1.25)
    return [round(step * i, 10) for i in range(int(top / step + 1e-9) + 1)]


def _path(points: Iterable[tuple[float, float]], colour: str, dashes: str = "none") -> str:
    places = " ".join(f"{x},{y}" for x, y in points)
    return (
        f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-dasharray="{dashes}"/>'
    )


def _label(name: str, x: float, y: float, wide: float, high: float) -> str:
    """Return *name* in the middle of a box of *wide* and *high* pixels if it fits, also upright."""
    if max(wide, high) < _LETTER * len(name) or min(wide, high) < _LINE:
        return ""
    turned = " rotate(-90)" if wide < high else ""
    place = f"translate({round(x, 2)} {round(y, 2)}){turned} translate(0 4)"
    return f'<text transform="{place}">{escape(name)}</text>'
