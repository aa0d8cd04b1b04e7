from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import numpy as np

from delegraph.tools.benchmarking.machine import machine


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
