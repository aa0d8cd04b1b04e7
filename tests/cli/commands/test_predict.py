"""``delegraph predict``: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from delegraph.schema.options import GatherOptions
from delegraph.testing import constant, graph_model, tensor
from support.command import Command


@pytest.fixture
def lookup(tmp_path: Path) -> Path:
    """Rows of a table of 10; other positions are an error."""
    table = constant(np.arange(20, dtype=np.float32).reshape(10, 2))
    tensors = {"x": tensor((1,), "INT32"), "table": table, "y": tensor((1, 2))}
    node = ("GATHER", "table x", "y", GatherOptions())
    path = tmp_path / "lookup.tflite"
    path.write_bytes(graph_model([node], inputs="x", outputs="y", tensors=tensors))
    return path


def data(folder: Path, *places: int) -> Path:
    path = folder / "places.jsonl"
    path.write_text("".join(json.dumps({"place": place}) + "\n" for place in places))
    return path


def test_a_summary_tells_of_bad_rows(delegraph: Command, lookup: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    words = ["predict", lookup, data(tmp_path, 1, 99, 3), "-o", output, "--processes", 1]
    ran = delegraph(*words, "--input-column", "x=place", "--output-column", "y=pair")
    assert ran.code == 0
    assert f"3 rows: 3 written to {output}\n" in ran.out
    assert "rows a second in " in ran.out
    assert "1 process, rows together\n\n1 bad row\n  1: " in ran.out
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["pair"] for row in rows] == [[2, 3], [None, None], [6, 7]]
    ran = delegraph(*words, "--input-column", "x=place", "--on-error", "raise")
    assert ran.code == 1
    assert ran.err.startswith("error: row 1: ")


def test_json_and_no_good_row(delegraph: Command, lookup: Path, tmp_path: Path) -> None:
    words = ["predict", lookup, data(tmp_path, 99), "-o", tmp_path / "out.npz", "--json"]
    ran = delegraph(*words, "--input-column", "x=place", "--processes", 1)
    answer = json.loads(ran.out)
    assert (answer["rows"], answer["written"], answer["bad"][0]["row"]) == (1, 1, 0)
    assert ran.code == answer["error"]["exit_code"] == 1
    assert "none of 1 row is good; row 0: " in answer["error"]["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "out.csv"], "expected a file ending in .jsonl, .npz, .parquet"),
        (["-o", "nowhere/out.npz"], "there is no folder 'nowhere'"),
        (["-o", "out.npz", "--row-timeout", "3"], "--row-timeout needs --isolate-rows"),
        (["-o", "out.npz", "--input-column", "x"], "'x': expected NAME=COLUMN"),
        (["-o", "out.npz", "--output-column", "z=a"], "no output 'z'"),
        (["-o", "out.npz"], "has no 'x'; its keys are place"),
    ],
)
def test_mistakes(
    delegraph: Command,
    lookup: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    path = data(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    ran = delegraph("predict", lookup, path, *words)
    assert ran.code == 2
    assert message in ran.err
