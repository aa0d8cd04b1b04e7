"""SVG of a memory plan: lifetimes along x, offsets along y; needs no other package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from delegraph.tools.memory_report import MemoryReport, PlannerResult

_WIDTH, _HEIGHT = 1200, 650
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 20, 50, 60
_LETTER = 7.5  # width of a letter of the labels in boxes
_LINE = 12  # their height
_TICKS = 8
UNITS = (("MB", 10**6), ("kB", 10**3), ("bytes", 1))
"""Units of offsets in pictures, with their bytes, the largest first."""

_STYLE = (
    "text{font:13px sans-serif}.box text{font-size:11px;text-anchor:middle;fill:white}"
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
        self._nodes = max(len(report.operators), 1)

    def _x(self, node: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * node / self._nodes, 2)

    def _y(self, count: float) -> float:
        """Return the height of an offset; a twentieth above the plan stays free."""
        room = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - room * count / (1.05 * self._top), 2)

    def axes(self) -> Iterator[str]:
        """Yield both axes with their numbers and texts."""
        unit, of_unit = next((u, b) for u, b in UNITS if self._top >= b)
        left, bottom = self._x(0), self._y(0)
        yield _path([(left, _TOP), (left, bottom), (_WIDTH - _RIGHT, bottom)], "black")
        for step in range(_TICKS + 1):
            count = self._top * step / _TICKS
            y, number = self._y(count), f"{count / of_unit:.3g}"
            yield f'<text class="end" x="{left - 6}" y="{y + 4}">{number}</text>'
        for node in range(0, self._nodes + 1, -(-self._nodes // _TICKS)):
            yield f'<text class="middle" x="{self._x(node)}" y="{bottom + 18}">{node}</text>'
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
            light = round(30 + 35 * min(2 * tensor.bytes / self._top, 1))
            told = (
                f"tensor {tensor.index} {tensor.name} of {tensor.made_by}: {tensor.bytes:,} bytes "
                f"at {offset:,}, {self._report.unit}s {tensor.first} to {last}"
            )
            yield (
                f'<g class="box"><title>{escape(told)}</title><rect x="{x}" y="{y}" '
                f'width="{wide}" height="{high}" fill="hsl(200 60% {95 - light}%)"/>'
                f"{_label(tensor.made_by, x + wide / 2, y + high / 2, wide, high)}</g>"
            )

    def lines(self) -> Iterator[str]:
        """Yield bytes in use, the bound, and the node at which most is in use, with a legend."""
        in_use = self._report.bytes_in_use(self._result)
        steps = [
            (self._x(node + side), self._y(count))
            for node, count in enumerate(in_use)
            for side in (0, 1)
        ]
        yield _path(steps, "black")
        bound = self._y(self._result.bound)
        yield _path([(_LEFT, bound), (_WIDTH - _RIGHT, bound)], "crimson", "6 4")
        legend = [("black", "bytes in use"), ("crimson", "no plan needs less")]
        peak = self._report.peak
        fullest = in_use.index(max(in_use))
        if peak is not None and in_use[peak.position] == in_use[fullest]:
            fullest = peak.position
        is_late = peak is not None and fullest > self._nodes / 2
        if peak is not None:
            x = self._x(fullest + 0.5)
            yield _path([(x, _TOP), (x, self._y(0))], "gray", "2 3")
            where = f"{self._report.unit} {fullest}, {self._report.operators[fullest]}"
            shown = peak.where if fullest == peak.position else where
            legend.append(("gray", f"most in use: {shown}"))
        side = f'x="{_LEFT + 10}"' if is_late else f'class="end" x="{_WIDTH - _RIGHT - 10}"'
        for row, (colour, text) in enumerate(legend):
            shown = f'{side} y="{_TOP + 40 + 18 * row}" fill="{colour}"'
            yield f"<text {shown}>{escape(text)}</text>"


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
