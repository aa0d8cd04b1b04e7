from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from delegraph_edgetpu.devices import VARIABLE, devices

os.environ["DELEGRAPH_DEFAULT_DELEGATES"] = ""  # tests name the delegates they are about


@pytest.fixture(autouse=True)
def _new_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test two empty devices, the default number."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for device in devices():
        device.reset()


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    """Fail a test that leaves a segment's thread behind."""
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("segment-")]
    assert not left
