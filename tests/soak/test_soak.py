"""A short soak finds nothing; one with a planted fault finds it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("resource", reason="a soak forks and interrupts itself as POSIX can")

from delegraph.delegation.configuration import CACHE_VARIABLE
from soak import run
from soak.acts import IN_THREADS, Owned, invoke
from soak.cache import private_cache, vanish
from soak.subjects import Subject, subjects
from soak.watch import FEWEST, MEMORY_GROWTH, Sample, growth

HOURS = 4 / 3600
STEADY = Sample(bytes=100 << 20, files=6, threads=2, python_threads=1)


@pytest.mark.timeout(200)
def test_a_short_soak_finds_nothing_wrong(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["--hours", str(HOURS), "--threads", "2", "--no-cache", "--json", str(report)]
    done = subprocess.run(
        [sys.executable, run.__file__, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert report.exists(), done.stderr
    told = json.loads(report.read_text())
    assert done.returncode == int(bool(told["wrong"]))
    few = ("bytes", "files")  # a short run shows no trend of what open interpreters hold
    assert not [text for text in told["wrong"] if not text.startswith(few)]
    assert {"invoke", "interrupt"} <= set(told["acts"])


def owned(name: str) -> Owned:
    return Owned(next(s for s in subjects(0) if s.name == name), Random(0))


@pytest.mark.parametrize("act", IN_THREADS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("name", ["sines", "counting"])
def test_each_act_leaves_a_right_answer(act: Any, name: str) -> None:
    subject = owned(name)
    act(subject)
    subject.check()


def test_a_wrong_answer_is_noted() -> None:
    subject = owned("sines")
    subject.subject._right = [y + 1 for y in subject.subject._right]
    soak = run.Soak()
    soak.do(invoke, subject)
    (failure,) = soak.failures
    assert "invoke on sines: AssertionError: sines: wrong answer" in failure


def test_memory_files_and_threads_that_grow_are_noted() -> None:
    grown = replace(
        STEADY, bytes=STEADY.bytes + MEMORY_GROWTH + 1, files=9, threads=9, python_threads=2
    )
    found = growth([STEADY] * 2 * FEWEST + [grown] * FEWEST)
    assert [text.split()[0] for text in found] == ["bytes", "files", "threads", "python_threads"]


def test_what_grows_at_first_only_is_no_growth() -> None:
    sizes = itertools.chain([1, 2, 3], [100] * 2 * FEWEST)
    assert growth([replace(STEADY, bytes=n << 20) for n in sizes]) == []


@pytest.mark.timeout(280)
def test_a_file_that_vanishes_from_the_kernel_cache_costs_no_right_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("delegraph_numba_cpu")
    monkeypatch.setenv(CACHE_VARIABLE, "")
    monkeypatch.delenv(CACHE_VARIABLE)
    private_cache(tmp_path)
    vanish(tmp_path, Random(1))


def test_subjects_know_their_answers() -> None:
    for subject in subjects(3):
        assert isinstance(subject, Subject)
        with subject.open() as interpreter:
            interpreter.allocate_tensors()
            subject.check(interpreter, Random(1))
