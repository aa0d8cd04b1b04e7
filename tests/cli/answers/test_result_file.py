from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from delegraph.cli.answers.result_file import write_result


def test_what_json_lacks_is_null(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_result(str(path), {"mean": float("nan"), "count": 2}, "--output")
    assert json.loads(path.read_text(encoding="utf-8")) == {"mean": None, "count": 2}
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_file_that_cannot_be_written_names_its_option(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"--output '.*absent.*': No such file"):
        write_result(str(tmp_path / "absent" / "result.json"), {}, "--output")


def test_where_a_link_leads_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "there.json").touch()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "there.json")
    write_result(str(link), {"count": 2}, "--output")
    assert link.is_symlink()
    assert json.loads((tmp_path / "there.json").read_text()) == {"count": 2}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with a name")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_result(str(path), {"count": 2}, "--output")
        assert json.loads(os.read(reader, 1000)) == {"count": 2}
    finally:
        os.close(reader)
    assert path.is_fifo()
