"""How many threads make sense: so many for each processor that this process may use."""

from __future__ import annotations

import os

import pytest

from delegraph.delegation import num_threads
from delegraph.delegation.num_threads import limited_num_threads, usable_processors


def test_more_than_8_for_each_processor_are_too_many(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(num_threads, "usable_processors", lambda: 3)
    assert [limited_num_threads(count) for count in (0, 1, 24)] == [0, 1, 24]
    assert caplog.messages == []
    assert limited_num_threads(25) == 24
    assert caplog.messages == [
        "num_threads is 25; 24 are used, the most for the 3 processors that this process may use"
    ]


def test_processors_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 5, 7}, raising=False)
    assert usable_processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_processors() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_processors() == 1
