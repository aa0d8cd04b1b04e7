from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from delegraph import collector as module
from delegraph.collector import collector_paused


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Collection is on before and after each test."""
    gc.enable()
    yield
    gc.enable()


def test_collection_is_off_inside_and_on_again_after() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="damaged"), collector_paused():
        raise ValueError("damaged")
    assert gc.isenabled()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_what_the_first_pauses_have_made_counts_as_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "times_left", 1)
    lasting: list[object] = []
    for is_old in (True, False):
        before = collections()
        with collector_paused():
            lasting += [[number] for number in range(5000)]
        lasting += [{number} for number in range(300)]
        assert (collections() == before) is is_old
    assert not gc.get_freeze_count()


def collections() -> int:
    return sum(each["collections"] for each in gc.get_stats())
