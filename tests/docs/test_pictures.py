"""Pictures show what the project prints now, in light and in dark colours."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from delegraph.plugins import installed
from support.scripts import script

make_pictures = script("make_pictures.py")

OFFERED = {offer.spec.name for offer in installed().offers()}


def words(picture: str) -> str:
    """Return the texts of a picture without blanks: Rich may place them otherwise one day."""
    texts = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return "".join("".join(text.itertext()) for text in texts).replace("\xa0", "")


@pytest.mark.repetition(4)
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
