from __future__ import annotations

import json
import os
import platform
import re
import time
from pathlib import Path

import numpy as np
import pytest

from delegraph.tools.benchmarking.machine import OtherWork, machine


def test_it_tells_what_times_depend_on() -> None:
    found = machine()
    assert found.processor.usable_cores >= 1
    assert found.python == platform.python_version()
    assert found.versions["numpy"] == np.__version__
    assert None not in found.versions.values()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.date)
    assert json.loads(json.dumps(found.to_json()))["processor"]["cores"] == found.processor.cores


def test_governors_are_those_of_all_cores(tmp_path: Path) -> None:
    for core, governor in enumerate(["powersave", "performance", "powersave"]):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
    assert machine(tmp_path).governors == ("performance", "powersave")


def test_a_system_that_tells_no_governor_has_none(tmp_path: Path) -> None:
    assert machine(tmp_path).governors == ()


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
