"""Pictures show what the project prints now, in light and in dark colours."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

from delegraph.plugins import installed

SCRIPT = Path(__file__).parents[2] / "docs" / "make_pictures.py"
_spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
assert _spec is not None
assert _spec.loader is not None
make_pictures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_pictures)

OFFERED = {offer.spec.name for offer in installed().offers()}


def words(picture: str) -> str:
    """Return the texts of a picture without blanks: Rich may place them otherwise one day."""
    texts = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return "".join("".join(text.itertext()) for text in texts).replace("\xa0", "")


@pytest.mark.skipif(not {"sin", "add_sub"} <= OFFERED, reason="needs delegraph-example")
@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_picture_is_what_the_script_draws_now(name: str) -> None:
    stored = (make_pictures.FOLDER / name).read_text(encoding="utf-8")
    drawn = make_pictures.PICTURES[name]()
    kept = words if name.removesuffix(".svg") in make_pictures.COMMANDS else str
    assert kept(drawn) == kept(stored), "run: python docs/make_pictures.py"


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_picture_has_light_and_dark_colours_and_loads_nothing(name: str) -> None:
    stored = (make_pictures.FOLDER / name).read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in stored
    assert "http" not in stored.replace('xmlns="http://www.w3.org/2000/svg"', "")
