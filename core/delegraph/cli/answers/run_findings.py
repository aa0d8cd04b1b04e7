"""Prints the objects that were recognized in a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, print_table
from delegraph.quantities import percent

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.recognition.findings import Box, Findings, Pose, Segmentation


_CLASSES_SHOWN = 20


def print_findings(
    out: Console, findings: Findings, size: tuple[int, int] | None, is_cut: bool = False
) -> None:
    """Print boxes, poses or classes of pixels.

    *size* is width and height of the user's picture, or of a part that was cut out if *is_cut*.
    Coordinates are printed in its pixels, or as shares of the size if it is None.
    """
    whole = "the part that was cut out" if is_cut else "the picture"
    unit = f"parts of {whole}" if size is None else f"pixels of {whole}"
    if findings.boxes is not None:
        where = f", in {unit}" if findings.boxes else ""
        heading(out, f"Detections: {_how_many(findings, len(findings.boxes))}{where}")
        _print_boxes(out, findings.boxes, size)
    for number, pose in enumerate(findings.poses or ()):
        heading(out, f"Pose {number + 1}, score {pose.score:.2f}, in {unit}")
        _print_pose(out, pose, size)
    if findings.poses is not None and not findings.poses:
        heading(out, f"Poses: {_how_many(findings, 0)}")
    if findings.segmentation is not None:
        _print_segmentation(out, findings.segmentation)


def has_findings(findings: Findings) -> bool:
    """Whether there is a box, a pose or a class of pixels to print."""
    return bool(findings.boxes or findings.poses or findings.segmentation is not None)


def _how_many(findings: Findings, kept: int) -> str:
    advice = "" if kept or not findings.candidates else "; --threshold changes that"
    least = f"with a score of at least {findings.threshold:g}"
    return f"{kept} of {findings.candidates} {least}{advice}"


def _print_boxes(out: Console, boxes: tuple[Box, ...], size: tuple[int, int] | None) -> None:
    labelled = any(box.label for box in boxes)
    rows = [
        (
            f"{box.score:.3f}",
            box.index,
            *([box.label or ""] * labelled),
            *(_place(side, size, axis) for side, axis in _sides(box)),
        )
        for box in boxes
    ]
    columns = ("score", "class", *["label"] * labelled, "left", "top", "right", "bottom")
    print_table(out, columns, rows, right=("score", "class", "left", "top", "right", "bottom"))


def _sides(box: Box) -> list[tuple[float, int]]:
    return [(box.left, 0), (box.top, 1), (box.right, 0), (box.bottom, 1)]


def _print_pose(out: Console, pose: Pose, size: tuple[int, int] | None) -> None:
    rows = [
        (f"{point.score:.2f}", point.name, _place(point.x, size, 0), _place(point.y, size, 1))
        for point in pose.points
    ]
    print_table(out, ("score", "point", "x", "y"), rows, right=("score", "x", "y"))


def _print_segmentation(out: Console, found: Segmentation) -> None:
    height, width = found.mask.shape
    heading(out, f"Classes of {width} x {height} pixels")
    shown = found.classes[:_CLASSES_SHOWN]
    labelled = any(c.label for c in shown)
    rows = [
        (percent(c.pixels / found.mask.size), c.index, *([c.label or ""] * labelled)) for c in shown
    ]
    print_table(out, ("share", "class", *["label"] * labelled), rows, right=("share", "class"))
    if len(shown) < len(found.classes):
        out.print(f"  and {len(found.classes) - len(shown)} smaller classes")


def _place(part: float, size: tuple[int, int] | None, axis: int) -> str:
    return f"{part:.3f}" if size is None else f"{part * size[axis]:.0f}"
