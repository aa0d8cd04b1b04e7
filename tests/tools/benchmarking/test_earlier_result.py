from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.benchmarking.earlier_result import read_result, require_same_model, since_then
from tools.benchmarking.test_result import result


def times(scale: float, seed: int) -> list[float]:
    """Return times of a busy machine: no run is quicker than *scale*, many are slower."""
    return list(scale * (1 + np.random.default_rng(seed).exponential(0.3, 400)))


def saved(folder: Path, scale: float) -> str:
    path = folder / "then.json"
    path.write_text(json.dumps(result(times(scale, 1)).to_json()), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("now", "verdict"), [(1.0, "same within 5 %"), (0.8, "faster"), (1.3, "slower")]
)
def test_the_quickest_runs_decide(tmp_path: Path, now: float, verdict: str) -> None:
    found = since_then(result(times(now, 2)), read_result(saved(tmp_path, 1.0)))
    assert found.verdict == verdict
    assert found.ratio.value == pytest.approx(now, rel=0.03)
    assert found.ratio.low <= found.ratio.value <= found.ratio.high
    assert found.is_slower_than(0.1) is (now > 1.1)
    assert found.changes == ()


def test_times_that_vary_too_much_have_no_verdict(tmp_path: Path) -> None:
    wild = [0.01, 9.0] * 3
    assert since_then(result(wild[1:]), read_result(saved(tmp_path, 1.0))).verdict == "too noisy"


def test_what_has_changed_besides_the_code_is_told(tmp_path: Path) -> None:
    now = result(times(1.0, 2))
    now = replace(now, threads=2, machine=replace(now.machine, python="4"))
    changes = since_then(now, read_result(saved(tmp_path, 1.0))).changes
    assert changes[0] == "threads: default then, 2 now"
    assert changes[1].endswith(", 4 now")


def test_another_placement_and_options_are_told_in_words(tmp_path: Path) -> None:
    now = result(times(1.0, 2))
    now = replace(now, placement="4 nodes: 4 stay", setup={**now.setup, "memory_limit": 9})
    then = read_result(saved(tmp_path, 1.0))
    assert since_then(now, then).changes == (
        "memory limit: default then, 9 now",
        f"placement: {result([1.0]).placement} then, 4 nodes: 4 stay now",
    )


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"samples": {"runs": "x"}}', "[" * 100_000, "\x00"]
)
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ArgumentError, match="is no result of a benchmark of one set-up"):
        read_result(str(path))


def test_a_result_of_another_model_is_refused(tmp_path: Path) -> None:
    then = read_result(saved(tmp_path, 1.0))
    model = then.conditions["model"]
    require_same_model(then, f"elsewhere/{model}")
    with pytest.raises(ArgumentError, match=f"of another model: {model} then, other.tflite now"):
        require_same_model(then, "other.tflite")


def test_few_runs_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, 1.0)
    with pytest.raises(ArgumentError, match="'the present result' has 2 runs, expected 5"):
        since_then(result([1.0, 1.0]), read_result(path))
