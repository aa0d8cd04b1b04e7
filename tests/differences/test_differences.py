"""Each entry of docs/differences.md has a check of its name, which shows that it still holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from differences.difference import CHECKS, Check, agree, attempt

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
PART = re.compile(r'^## (?P<section>.+)$|^- <a id="(?P<name>[^"]*)"></a>(?P<text>.*)$', re.M)


def entries(text: str) -> list[tuple[str, str]]:
    """Return the section, as a module name, and the name of each entry of a page."""
    found, section = [], ""
    for part in PART.finditer(text):
        if part["section"] is not None:
            section = part["section"].lower().replace(" ", "_")
        else:
            found.append((section, part["name"]))
    return found


PAGE_TEXT = PAGE.read_text(encoding="utf-8")
ENTRIES = entries(PAGE_TEXT)
for module in sorted(Path(__file__).parent.glob("*.py")):
    if module.name != Path(__file__).name:
        import_module(f"differences.{module.stem}")  # fills CHECKS


def unmatched(listed: list[tuple[str, str]], checks: Mapping[str, Check]) -> list[str]:
    """Return entries without a check, checks without an entry, and duplicates."""
    checked = [(check.section, name) for name, check in checks.items()]
    doubles = [name for i, (_, name) in enumerate(listed) if name in dict(listed[:i]).values()]
    alone = set(listed) ^ set(checked)
    return sorted([f"{section}: {name}" for section, name in alone] + doubles)


def test_entries_and_checks_belong_together() -> None:
    assert unmatched(ENTRIES, CHECKS) == []


def test_every_item_of_the_list_is_an_entry_with_a_plain_name() -> None:
    assert len(re.findall(r"^\s*[-*+] ", PAGE_TEXT, re.M)) == len(ENTRIES)
    assert [name for _, name in ENTRIES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


@pytest.mark.parametrize("name", CHECKS)
def test_the_difference_still_holds(name: str) -> None:
    check = CHECKS[name]
    pytest.importorskip(check.beside)
    for case, (ours, theirs) in enumerate(check.pairs()):
        assert not agree(ours, theirs), (
            f"Delegraph and {check.beside} agree in case {case} now: both give {ours!r}. Take it, "
            f"or all of {name!r}, out of {PAGE.name} and differences/{check.section}.py"
        )


NOTHING = Check("operators", "numpy", lambda: (1, 2))


@pytest.mark.parametrize(
    ("page", "checks", "expected"),
    [
        ('## Operators\n- <a id="a"></a>A.', {"a": NOTHING}, []),
        ('## Operators\n- <a id="a"></a>A.', {}, ["operators: a"]),
        ("## Operators", {"a": NOTHING}, ["operators: a"]),
        ('## Flex\n- <a id="a"></a>A.', {"a": NOTHING}, ["flex: a", "operators: a"]),
    ],
)
def test_an_entry_or_a_check_alone_is_found(
    page: str, checks: dict[str, Check], expected: list[str]
) -> None:
    assert unmatched(entries(page), checks) == expected


def test_a_check_that_cannot_run_shows_no_difference() -> None:
    with pytest.raises(ImportError):
        attempt(lambda: import_module("differences.no_such_module"))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("refused", "refused", True),
        ("refused", "crashed", False),
        ([np.int8([1, 2])], [np.int8([1, 2])], True),
        ([np.int8([1, 2])], [np.int8([1, 3])], False),
        ([np.int8([1, 2])], [np.int16([1, 2])], False),
        ([np.float32([np.nan, 1])], [np.float32([np.nan, 1.000001])], True),
        ([np.float16([1])], [np.float16([1.001])], False),
        ([np.float32([0])], "refused", False),
    ],
)
def test_sides_agree_but_for_rounding(ours: object, theirs: object, expected: bool) -> None:
    assert agree(ours, theirs) is expected
