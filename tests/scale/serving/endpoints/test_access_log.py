"""The access log has a line of JSON for each request, and fails without harm."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.scale.serving.endpoints.access_log import AccessLog


def test_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for _ in range(2):  # it is appended to
        log = AccessLog(str(path))
        log.write(method="GET", path="/v2\n", model=None)
        log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 2
    assert {key: value for key, value in lines[0].items() if key != "time"} == {
        "method": "GET",
        "path": "/v2\n",
    }


def test_no_log() -> None:
    log = AccessLog(None)
    assert not log.is_on
    log.write(method="GET")
    log.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    log = AccessLog("/dev/full")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log.write(method="GET")
        log.close()
    assert caplog.text.count("lines of the access log are lost: [Errno 28]") == 1


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"--access-log .* cannot be opened: No such file"):
        AccessLog(str(tmp_path / "missing" / "log"))
