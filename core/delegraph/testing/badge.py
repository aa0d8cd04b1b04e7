"""Badges for a package's README, which show the result of the kit or of a sweep."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from delegraph.errors import ArgumentError

ENDINGS = (".json", ".svg")

_COLORS = {"brightgreen": "#347d39", "blue": "#316dca", "red": "#c93c37"}
"""Mapping from shields.io's name of a colour to the colour in the picture."""

_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"
 aria-label="{label}: {message}">
<title>{label}: {message}</title>
<clipPath id="round"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#round)"><rect width="{left}" height="20" fill="#444c56"/>
<rect x="{left}" width="{right}" height="20" fill="{color}"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{label_middle}" y="14">{label}</text><text x="{message_middle}" y="14">{message}</text></g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Badge:
    """Content of a badge: a small picture in a README that shows the result of a check.

    Attributes:
        message: result of the check, the right half of the badge.
        state: ``passed``, ``sampled`` for a run that tried only a part, or ``failed``.
        label: name of the check, the left half of the badge.
    """

    message: str
    state: str
    label: str = "Delegraph kit"

    @property
    def color(self) -> str:
        """Name of the badge's colour, as the service shields.io writes it."""
        return {"passed": "brightgreen", "sampled": "blue"}.get(self.state, "red")

    def svg(self) -> str:
        """Return the badge as an SVG picture, which needs no network service."""
        left, right = (round(6.7 * len(text)) + 12 for text in (self.label, self.message))
        return _SVG.format(
            label=escape(self.label),
            message=escape(self.message),
            width=left + right,
            left=left,
            right=right,
            color=_COLORS[self.color],
            label_middle=left / 2,
            message_middle=left + right / 2,
        )

    def to_json(self) -> dict[str, object]:
        """Return the JSON that the endpoint badge of shields.io reads.

        Source: https://shields.io/badges/endpoint-badge.
        """
        shown = {"label": self.label, "message": self.message, "color": self.color}
        return {"schemaVersion": 1, **shown}

    def write(self, path: str) -> None:
        """Write the badge: a picture if *path* ends in ``.svg``, else JSON for shields.io.

        Raises:
            ArgumentError: the file cannot be written.
        """
        is_picture = Path(path).suffix == ".svg"
        content = self.svg() if is_picture else json.dumps(self.to_json()) + "\n"
        try:
            Path(path).write_text(content, encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"badge {path!r} cannot be written: {error}") from error


def require_badge_ending(path: str) -> None:
    """Check that the badge's file *path* ends in ``.json`` or ``.svg``.

    Raises:
        ArgumentError: *path* has another ending.
    """
    if Path(path).suffix not in ENDINGS:
        raise ArgumentError(f"badge is {path!r}, expected a name that ends in .svg or .json")
