"""The colours of the page's delegates, seen with each kind of cone missing, and on its ground."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

CSS = (files("delegraph.tools.reporting") / "assets" / "page.css").read_text()
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in re.split("@media", CSS)[:2])
SETS = {"light": LIGHT, "dark": DARK}

SIGHT = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""Linear RGB as it looks. Source: Machado, Oliveira, Fernandes (2009), severity 1."""

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LEAST = 15.0
"""Smallest distance of two colours in CIELAB; 2.3 is just noticeable side by side."""


def linear(colour: str) -> npt.NDArray[np.float64]:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    xyz = TO_XYZ @ rgb / TO_XYZ.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scheme", SETS)
def test_any_two_delegates_have_colours_far_apart(scheme: str, sight: str) -> None:
    names = ("host", *(f"d{i}" for i in range(8)))
    colours = {name: linear(SETS[scheme][name]) for name in names}
    seen = {n: lab(np.clip(np.array(SIGHT[sight]) @ c, 0, 1)) for n, c in colours.items()}
    for one, other in combinations(names, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= LEAST, (one, other)


@pytest.mark.parametrize("scheme", SETS)
def test_colours_stand_out_from_their_ground(scheme: str) -> None:
    def light(name: str) -> float:
        return float(TO_XYZ[1] @ linear(SETS[scheme][name])) + 0.05

    for name, least in {"ink": 4.5, "muted": 4.5, "accent": 4.5, "bad": 4.5}.items():
        pair = sorted((light(name), light("card")))
        assert pair[1] / pair[0] >= least, name
    pair = sorted((light("ink"), light("hot")))
    assert pair[1] / pair[0] >= 4.5
    for name in (f"d{i}" for i in range(8)):
        pair = sorted((light(name), light("card")))
        assert pair[1] / pair[0] >= 3, name
