"""Plot of layer differences: nodes along x, noise as a share of the signal along y."""

from __future__ import annotations

import math
import os
from itertools import groupby
from pathlib import Path
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.tools.differing.difference import OutputDifference
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference, noise

FORMATS = (".png", ".svg")
"""Suffixes of files to which layers can be drawn."""

_BANDS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:olive")


def require_drawable(path: str | os.PathLike[str]) -> None:
    """Raise an error unless a plot file with the name *path* can be drawn.

    Raises:
        ArgumentError: the suffix is unknown, or matplotlib is missing.
    """
    if Path(path).suffix not in FORMATS:
        raise ArgumentError(f"--plot {path}: expected a file ending in {', '.join(FORMATS)}")
    try:
        import matplotlib.figure  # noqa: F401 - looked for only
    except ImportError as error:
        raise ArgumentError('drawing needs matplotlib: pip install "delegraph[plot]"') from error


def draw_layers(found: LayersDifference, path: str | os.PathLike[str]) -> None:
    """Draw *drift* and *same inputs* of each tensor in *found* to the file *path*.

    Equal tensors are at the bottom, those that cannot be compared at the top.

    Raises:
        ArgumentError: the suffix is unknown, matplotlib is missing, or *path* cannot be written.
    """
    require_drawable(path)
    try:
        _figure(found).savefig(path, dpi=110)
    except OSError as error:
        raise ArgumentError(f"--plot {path}: {error.strerror or error}") from error


def _figure(found: LayersDifference) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 5.5), layout="constrained")
    axes: Any = figure.add_subplot()
    drift = [_height(layer.drift) for layer in found.layers]
    same = [_height(layer.same_inputs) for layer in found.layers]
    floor, ceiling = _limits([*drift, *same])
    _draw_bands(axes, found.layers)
    for heights, label, style in (
        (drift, "drift", {"color": "tab:red", "linewidth": 1.2, "marker": "."}),
        (same, "same inputs", {"color": "black", "linestyle": "", "marker": "x", "markersize": 5}),
    ):
        points = [(x, h) for x, h in enumerate(heights) if h is not None]
        shown = [min(max(h, floor), ceiling) for _, h in points]
        axes.plot([x for x, _ in points], shown, label=label, **style)
    axes.set_yscale("log")
    axes.set_ylim(floor / 2, ceiling * 2)
    axes.set_xlim(-0.5, max(len(found.layers), 1) - 0.5)
    if 0 in (*drift, *same):
        _draw_line(axes, floor, "equal")
    if math.inf in (*drift, *same):
        _draw_line(axes, ceiling, "NaN, infinite, or not to be compared")
    _label_nodes(axes, found.layers)
    axes.set_ylabel("noise as a share of the signal")
    axes.set_title(f"{found.test} against {found.reference}", fontsize=10)
    axes.legend(loc="upper left", fontsize=8, framealpha=0.9)
    return figure


def _height(difference: OutputDifference | None) -> float | None:
    return None if difference is None else noise(difference)


def _limits(heights: list[float | None]) -> tuple[float, float]:
    """Return two heights, one below and one above all *heights*.

    The plot draws equal tensors at the lower height, and incomparable tensors at the upper one.
    """
    found = [h for h in heights if h is not None and 0 < h < math.inf] or [1e-6]
    return min(found) / 5, max(found) * 5


def _draw_line(axes: Any, height: float, label: str) -> None:
    axes.axhline(height, color="tab:gray", linestyle=":", linewidth=1)
    axes.annotate(
        label,
        (1, height),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 2),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color="tab:gray",
    )


def _draw_bands(axes: Any, layers: tuple[LayerDifference, ...]) -> None:
    """Colour the background of *layers* by delegate; nodes without a delegate have no colour.

    Args:
        axes: Matplotlib axes.
        layers: differences of the nodes, in order.
    """
    names = list(dict.fromkeys(layer.delegate for layer in layers if layer.delegate))
    colours = {name: _BANDS[i % len(_BANDS)] for i, name in enumerate(names)}
    labelled: set[str] = set()
    places = groupby(enumerate(layers), key=lambda item: (item[1].delegate, item[1].partition))
    for (delegate, _), group in places:
        where = [position for position, _ in group]
        if delegate is not None:
            label = None if delegate in labelled else delegate
            labelled.add(delegate)
            edges = where[0] - 0.45, where[-1] + 0.45
            axes.axvspan(*edges, color=colours[delegate], alpha=0.15, linewidth=0, label=label)


def _label_nodes(axes: Any, layers: tuple[LayerDifference, ...]) -> None:
    """Label as many nodes of *layers* on the x axis as fit, with operator and number.

    Args:
        axes: Matplotlib axes.
        layers: differences of the nodes, in order.
    """
    step = max(1, math.ceil(len(layers) / 60))
    places = range(0, len(layers), step)
    axes.set_xticks(list(places))
    names = [f"{layers[i].op} {layers[i].node}" for i in places]
    axes.set_xticklabels(names, rotation=90, fontsize=6)
