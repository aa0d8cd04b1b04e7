from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from delegraph.collector import MANY, collector_paused


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Collection is on, and nothing is frozen, as the test run freezes its own objects."""
    gc.enable()
    gc.unfreeze()
    yield
    gc.enable()
    gc.freeze()


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


class Noted:
    """Adds to a list when it is freed."""

    def __init__(self, gone: list[int]) -> None:
        self._gone = gone

    def __del__(self) -> None:
        self._gone.append(1)


def test_many_lasting_objects_are_old_afterwards_and_young_garbage_is_gone() -> None:
    gone: list[int] = []
    cycle: list[object] = [Noted(gone)]
    cycle.append(cycle)
    del cycle
    with collector_paused(lasting=MANY):
        assert gone == [1]
        lasting = [[i] for i in range(MANY)]
    young = {id(each) for generation in (0, 1) for each in gc.get_objects(generation)}
    assert not young.intersection(map(id, lasting))
    assert gc.get_freeze_count() == 0


def test_objects_that_the_program_has_frozen_stay_frozen() -> None:
    gc.freeze()
    try:
        with collector_paused(lasting=MANY):
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
