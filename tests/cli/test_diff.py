from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Command


def test_it_prints_how_far_outputs_are_off(delegraph: Command, sines: Path) -> None:
    done = delegraph("diff", sines, "-d", "sin", "--runs", "3")
    assert done.code == 0, done.err
    assert "reference: sines.tflite" in done.out
    assert "5 stay with Delegraph's kernels" in done.out
    assert "3 runs: seed 0 to seed 2" in done.out


def test_json_has_all_of_it(delegraph: Command, sines: Path) -> None:
    done = delegraph("diff", sines, "--runs", "2", "--seed", "5", "--json")
    answer = json.loads(done.out)
    assert answer["runs"] == ["seed 5", "seed 6"]
    assert answer["outputs"][0]["raw"]["max"] == {"avg": 0.0, "std": 0.0, "min": 0.0, "max": 0.0}
    assert answer["test"]["latency"]["count"] == 2


def test_another_reference_is_named_by_what_differs(delegraph: Command, sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    done = delegraph(
        "diff", sines, "--runs", "1", "--json", "--reference", "--runtime litert --threads 1"
    )
    setup = json.loads(done.out)["reference"]["setup"]
    assert (setup["runtime"], setup["threads"]) == ("litert", 1)


def test_a_tolerance_that_does_not_hold_is_exit_code_1(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    words = ["diff", sines, "--runs", "1", "--delegate-file", wrong, "--tolerance"]
    assert delegraph(*words, "y=9").code == 0
    done = delegraph(*words, "1e-3,1e-3")
    assert done.code == 1
    assert "further off than the tolerance: y: 1 of 1 elements" in done.err
    assert "greatest difference at [0" in done.out


WRONG = """
from support.faulty_delegate import Faulty, off_by


class Wrong(Faulty):
    def __init__(self):
        super().__init__("SIN", fault=off_by(1.0))
"""


@pytest.mark.parametrize("word", ["much", "y=", "-1", "y=1,2,3", "nan"])
def test_a_tolerance_that_is_none_is_refused(delegraph: Command, sines: Path, word: str) -> None:
    done = delegraph("diff", sines, f"--tolerance={word}")
    assert done.code == 2
    assert "expected [OUTPUT=]ABSOLUTE[,RELATIVE]" in done.err
