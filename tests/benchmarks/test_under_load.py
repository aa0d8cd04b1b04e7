"""What ``under_load.py`` computes: percentiles, and a neighbour that ends with its turn."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # where scripts find each other
import under_load


def test_percentiles_are_in_milliseconds() -> None:
    seconds = [1e-3] * 98 + [9e-3] * 2
    assert under_load.percentiles(seconds) == {"50": 1.0, "99": 9.0}


def test_all_runtimes_take_turns_without_and_with_load() -> None:
    taken: list[str] = []

    def runtime(name: str, seconds: float) -> list[float]:
        taken.append(name)
        return [seconds]

    found = under_load.turns({name: partial(runtime, name) for name in "ab"}, 8.0)
    share = 2.0 / under_load.BLOCKS
    keys = [(name, is_busy) for name in "ab" for is_busy in (False, True)]
    assert found == dict.fromkeys(keys, [share] * under_load.BLOCKS)
    assert taken[:8] == ["a", "b", "a", "b", "b", "a", "b", "a"]
