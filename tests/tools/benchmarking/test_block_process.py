from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError, DelegateError, DelegraphError
from delegraph.tools import InputRequest, Setup
from delegraph.tools.benchmarking.block_process import BlockRequest, block_here, block_in_a_process

SINES = str(Path(__file__).parents[3] / "docs/demo/models/sines.tflite")

DELEGATE = """
import os, signal, sys
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface

class Own(Exception):
    pass

class Kernel(SimpleDelegateKernelInterface):
    def init(self, context, params):
        print("printed by the delegate")
        os.write(1, b"written by the delegate\\n")
    def prepare(self, context, node):
        {prepare}
    def eval(self, context, node):
        {evaluate}

class Delegate(SimpleDelegateInterface):
    def name(self):
        return "mine"
    def is_node_supported_by_delegate(self, registration, node, context):
        return True
    def create_delegate_kernel_interface(self):
        return Kernel()
"""


def request(setups: Mapping[str, Setup], seconds: float = 0.01) -> BlockRequest:
    return BlockRequest(setups, InputRequest(), None, seconds, (0, 0))


def delegate_file(folder: Path, *, prepare: str = "pass", evaluate: str = "pass") -> Setup:
    path = folder / "mine.py"
    path.write_text(DELEGATE.format(prepare=prepare, evaluate=evaluate), encoding="utf-8")
    return Setup(SINES, delegate_files=(str(path),))


def test_each_set_up_takes_turns() -> None:
    found = block_here(request({"a": Setup(SINES), "b": Setup(SINES, "litert")}))
    assert found.failures == {}
    assert len(found.times["a"]) == len(found.times["b"]) >= 1
    assert all(second > 0 for pair in found.times["a"] for turn in pair for second in turn)


def test_set_ups_are_made_first_in_turn_and_the_others_in_a_random_order() -> None:
    seconds = set[str]()
    for number in range(18):
        marks = list[str]()
        block = request(dict.fromkeys("abc", Setup(SINES)), 0)
        found = block_here(
            BlockRequest(block.setups, block.inputs, None, 0, (0, number)), mark=marks.append
        )
        made = list(dict.fromkeys(marks))
        assert made[0] == "abc"[number % 3]
        assert [*found.memory] == made[:1]
        seconds |= {made[1]} if made[0] == "a" else set()
    assert seconds == {"b", "c"}


def test_who_cannot_be_made_or_run_is_listed_and_the_others_go_on(tmp_path: Path) -> None:
    setups = {
        "absent": Setup("absent.tflite"),
        "good": Setup(SINES),
        "unknown": Setup(SINES, delegates=("unknown",)),
        "failing": delegate_file(tmp_path, evaluate="raise ValueError('no voltage')"),
    }
    for found in (block_here(request(setups)), block_in_a_process(request(setups))):
        assert list(found.times) == ["good"]
        assert sorted(found.failures) == ["absent", "failing", "unknown"]
        assert "no installed plugin provides delegate 'unknown'" in str(found.failures["unknown"])
        assert "no voltage" in str(found.failures["failing"])
        assert isinstance(found.failures["absent"], ArgumentError)
        assert isinstance(found.failures["failing"], DelegateError)


def test_a_process_tells_how_far_it_is_now_and_then() -> None:
    told = list[tuple[str, float, float | None]]()
    block_in_a_process(request({"a": Setup(SINES)}, 1.0), lambda *now: told.append(now))
    assert 1 <= len(told) <= 5
    assert {total for *_, total in told} == {1.0}


@pytest.mark.repetition(1)
@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("phase", ["prepare", "evaluate"])
def test_who_ends_the_process_is_listed_and_the_others_go_on(tmp_path: Path, phase: str) -> None:
    ends = "print('out of order', file=sys.stderr); os.kill(os.getpid(), signal.SIGABRT)"
    setups = {"good": Setup(SINES), "bad": delegate_file(tmp_path, **{phase: ends})}
    found = block_in_a_process(request(setups))
    assert list(found.times) == ["good"]
    assert "its process ended with SIGABRT" in str(found.failures["bad"])


def test_the_last_words_of_a_process_are_kept(tmp_path: Path) -> None:
    ends = "print('out of order', file=sys.stderr, flush=True); os._exit(3)"
    found = block_in_a_process(request({"bad": delegate_file(tmp_path, evaluate=ends)}))
    assert str(found.failures["bad"]) == "its process ended with exit code 3: out of order"


def test_no_process_is_blamed_on_a_set_up_that_had_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", sys.executable + "-which-is-not-there")
    with pytest.raises(OSError, match="which-is-not-there"):
        block_in_a_process(request({"a": Setup(SINES)}))
    monkeypatch.undo()
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(DelegraphError, match="a process for a block of times ended with exit code"):
        block_in_a_process(request({"a": Setup(SINES)}))
