"""The generated part of docs/speed.md and its picture are what the kept results give."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.scripts import script

results = script("speed_results.py")  # which the other two import
pictures = script("speed_pictures.py")
speed = script("generate_speed.py")

ROOT = Path(__file__).parents[2]
AGAIN = "run: python docs/generate_speed.py"


@pytest.fixture
def kept() -> Any:
    return json.loads(results.RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_what_the_results_give(kept: Any) -> None:
    text = speed.PAGE.read_text(encoding="utf-8")
    assert text.count(speed.BEGIN) == text.count(speed.END) == 1
    assert speed.page(text, kept) == text, AGAIN


def test_the_readme_has_the_figures_of_the_page(kept: Any) -> None:
    rows = (line.split(" | ") for line in speed.part(kept).splitlines())
    _, _, networks, mean, *_, slower = next(row for row in rows if row[:2] == ["| 1", "numba_cpu"])
    words = f"{mean} of XNNPACK's time, the mean of {networks} networks; slower in none (AVX-512, "
    assert slower == "0 |"
    assert words in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["PICTURE", "ROOFS"])
def test_the_pictures_are_what_the_results_give(kept: Any, name: str) -> None:
    drawn = pictures.picture(kept) if name == "PICTURE" else pictures.roofs_picture(kept)
    assert drawn == getattr(speed, name).read_text(encoding="utf-8"), AGAIN
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize(
    ("operators", "family"),
    [
        ("CONV_2D+PRELU", "CONV_2D"),
        ("CONV_2D+DEPTHWISE_CONV_2D+CONV_2D+ADD", "convolutions in one"),
        ("BATCH_MATMUL+MUL+SOFTMAX+BATCH_MATMUL", "attention"),
        ("SOFTMAX", "others"),
    ],
)
def test_an_operator_is_in_one_family(operators: str, family: str) -> None:
    assert pictures.family_of(operators) == family


def test_every_network_is_in_the_table_of_its_threads(kept: Any) -> None:
    part = speed.part(kept)
    names = results.names_of_networks()
    shown = [names.get(e["network"], {"name": e["network"]})["name"] for e in kept["networks"]]
    assert all(part.count(f"| [{name}] |") + part.count(f"| {name} |") >= 3 for name in shown)


def test_a_changed_result_changes_page_and_picture(kept: Any) -> None:
    other = copy.deepcopy(kept)
    result = next(r for r in other["networks"][0]["results"] if r["runtime"] == "numba_cpu")
    result["ratio"]["value"] *= 2
    assert speed.part(other) != speed.part(kept)
    assert pictures.picture(other) != pictures.picture(kept)
