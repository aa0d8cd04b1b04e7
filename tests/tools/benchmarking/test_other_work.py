from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from delegraph.tools.benchmarking.other_work import OtherWork


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="Linux tells the work of processors")
def test_cores_of_others_are_all_busy_ones_without_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick, status = os.sysconf("SC_CLK_TCK"), tmp_path / "stat"
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    used = os.times_result((1.0, 0.5, 0.0, 0.0, 0.0))
    monkeypatch.setattr(os, "times", lambda: used)
    status.write_text(f"cpu {10 * tick} 0 0 500 0 0 0 0 0 0\ncpu0 0\n")
    work = OtherWork(str(status))
    assert work.cores() is None  # no time has passed
    now[0], used = 110.0, os.times_result((5.0, 0.5, 1.0, 0.0, 0.0))
    status.write_text(f"cpu {20 * tick} 0 {4 * tick} 900 9 0 0 {tick} 0 0\ncpu0 0\n")
    assert work.cores() == pytest.approx((15 - 5) / 10)


def test_it_is_unknown_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert OtherWork(str(tmp_path / "absent")).cores() is None
