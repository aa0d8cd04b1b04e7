from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from delegraph.errors import printable
from delegraph.tools import Setup, report
from delegraph.tools.reporting.page import in_script, page
from support.hostile_model import ATTRIBUTE, STEERING, TEXTS, hostile_model


class Elements(HTMLParser):
    """Collects the elements of a document, each with its attributes and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = [("", {}, "")]
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        tag, attributes, text = self.found.pop()
        self.found.append((tag, attributes, text + data))

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for found, attributes, text in self.found if found == tag]


@pytest.mark.parametrize("text", [*TEXTS, STEERING, "", "é𝄞"])
def test_any_text_comes_back_from_the_script_element(text: str) -> None:
    written = in_script({"name": text})
    assert not set("<>&") & set(written)
    assert written.isascii()
    assert json.loads(written) == {"name": printable(text)}


def test_what_json_lacks_becomes_null() -> None:
    assert in_script({"a": [float("nan"), (float("inf"), 1.5)]}) == '{"a":[null,[null,1.5]]}'


@pytest.mark.parametrize("text", [*TEXTS, STEERING])
def test_no_text_adds_an_element(text: str) -> None:
    usual, hostile = (Elements(page(t, {"name": t})) for t in ("usual", text))
    assert [tag for tag, _, _ in hostile.found] == [tag for tag, _, _ in usual.found]


def test_nothing_is_loaded_from_elsewhere() -> None:
    elements = Elements(page("m", {}))
    for tag, attributes, _ in elements.found:
        assert not {"src", "href", "srcset", "action"} & attributes.keys(), tag
    assert "@import" not in elements.all("style")[0][1]
    assert "url(" not in elements.all("style")[0][1]


def test_the_policy_allows_the_pages_own_scripts_and_nothing_to_be_loaded() -> None:
    policy = Elements(page("m", {})).all("meta")[1][0]["content"]
    assert policy is not None
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert allowed["default-src"] == "'none'"
    assert len(allowed["script-src"].split()) == 2
    assert "unsafe" not in policy


def test_the_page_without_a_models_data_is_small() -> None:
    assert len(page("m", {}).encode()) <= 400_000


def test_a_hostile_model_changes_no_element(tmp_path: Path, sines: Path) -> None:
    usual = Elements(report(Setup(str(sines))).html())
    hostile = Elements(report(Setup(str(hostile_model(tmp_path)))).html())
    assert [tag for tag, _, _ in hostile.found] == [tag for tag, _, _ in usual.found]
    assert "&lt;img src=x" not in hostile.all("title")[0][1]  # the parser has read it as text
    assert hostile.all("title")[0][1].startswith("<img src=x onerror=window.hacked=1>$policy")
    data = next(text for attributes, text in hostile.all("script") if attributes.get("id"))
    assert json.loads(data)["subgraphs"][0]["tensors"][3]["name"] == ATTRIBUTE
