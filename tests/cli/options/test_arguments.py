"""What ``run`` and ``explain`` share: asking for delegates, rules, failure policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Command, Refused
from support.fake_distributions import write_plugin
from support.isolated import DANGEROUS

RANKED = """\
import dataclasses
from delegraph import DelegateSpec, hookimpl

@dataclasses.dataclass
class Options:
    speed: int = dataclasses.field(default=3, metadata={"help": "how fast"})

def _load():
    raise AssertionError("help must not load a delegate")

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("first", "comes first", _load, Options, rank=-3)]
"""

MINE = """\
from dataclasses import dataclass
from typing import Literal
import numpy as np
from delegraph_example.sin import SinDelegate, SinKernel

@dataclass
class Options:
    fault: Literal["none", "error", "nan", "slow"] = "none"

class Kernel(SinKernel):
    def __init__(self, fault): self.fault = fault
    def eval(self, context, node):
        if self.fault == "error":
            raise OSError("device gone")
        if self.fault == "slow":
            np.ones((300, 300)) @ np.ones((300, 300))
        super().eval(context, node)
        if self.fault == "nan":
            context.tensors[node.outputs[0]].data[...] = np.nan

class Mine(SinDelegate):
    def __init__(self, options: Options): self.options = options
    def name(self): return "mine"
    def create_delegate_kernel_interface(self): return Kernel(self.options.fault)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize("command", ["run", "explain"])
def test_help_shows_every_delegate_by_rank_whatever_else_is_wrong(
    fresh_delegraph: Command, tmp_path: Path, command: str
) -> None:
    write_plugin(tmp_path / "site", "ranked", RANKED)
    write_plugin(tmp_path / "site", "good")
    ran = fresh_delegraph(
        command, "--rules", "not-there", "-d", "help", DELEGRAPH_PLUGINS="ranked,good"
    )
    assert (ran.code, ran.err) == (0, "")
    assert [line for line in ran.lines if line] == [
        "Delegate first",
        "comes first",
        "rank -3",
        "option type meaning",
        "speed int how fast [default: 3]",
        "For example: --delegate first:speed=4",
        "Delegate good",
        "a fake",
        "rank 0",
        "no options",
    ]


def test_help_of_one_delegate(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "ranked", RANKED)
    for address in ("first", "fake-ranked:first"):
        ran = fresh_delegraph("run", "-d", f"{address}:help", DELEGRAPH_PLUGINS="ranked")
        assert (ran.code, ran.lines[0]) == (0, "Delegate first")
    ran = fresh_delegraph("run", "-d", "nope:help", DELEGRAPH_PLUGINS="ranked")
    assert (ran.code, ran.out) == (3, "")
    assert "no installed plugin provides delegate 'nope'" in ran.err


def test_help_of_nothing_says_so(fresh_delegraph: Command) -> None:
    ran = fresh_delegraph("run", "-d", "help", DELEGRAPH_PLUGINS="")
    assert (ran.code, "no delegates are installed" in ran.out) == (0, True)


def test_plugins_info_shows_the_rank(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "ranked", RANKED)
    assert "rank -3" in fresh_delegraph("plugins", "info", "first").lines
    shown = fresh_delegraph("plugins", "info", "first", "--json").json
    assert shown["plugins"][0]["delegates"][0]["rank"] == -3


def test_command_help_imports_no_plugin(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "noisy", "print('imported')\nraise SystemExit(9)")
    ran = fresh_delegraph("run", "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "imported" not in ran.out


def test_all_applies_every_delegate(delegraph: Command, sines: Path) -> None:
    shown = delegraph("explain", sines, "-d", "example:nothing", "-d", "all", "--json")
    assert shown.code == 3  # the first is not there
    shown = delegraph("explain", sines, "-d", "all", "--json").json
    assert {"add_sub", "sin"} <= set(shown["delegates"])


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_file_is_a_delegate(delegraph: Command, sines: Path, mine: Path, command: str) -> None:
    ran = delegraph(command, sines, "--delegate-file", mine)
    assert (ran.code, ran.err) == (0, "")
    assert "5 nodes: mine takes 2 in 2 partitions, 3 stay with Delegraph's kernels" in ran.lines


def test_a_file_comes_behind_installed_delegates(
    delegraph: Command, sines: Path, mine: Path
) -> None:
    ran = delegraph("explain", sines, "--delegate-file", f"{mine}:fault=none", "-d", "sin")
    assert any(line.startswith("5 nodes: sin takes 2 in 2 partitions, mine") for line in ran.lines)


@pytest.mark.parametrize(
    ("suffix", "message"),
    [(":speed=1", "delegate 'mine' has no option 'speed'"), (".old", "no delegate file")],
)
def test_a_file_that_cannot_be_used_is_an_error(
    refused: Refused, sines: Path, mine: Path, suffix: str, message: str
) -> None:
    assert message in refused("run", sines, "--delegate-file", f"{mine}{suffix}")


def test_a_failing_delegate_stops_the_run_or_falls_back(
    delegraph: Command, sines: Path, mine: Path
) -> None:
    words = ("run", sines, "-i", "2", "--delegate-file", f"{mine}:fault=error", "--json")
    ran = delegraph(*words)
    assert ran.code == 3
    assert "device gone (delegate 'mine'" in ran.err
    ran = delegraph(*words, "--on-failure", "fallback")
    assert ran.code == 0
    assert ran.err.count("warning: delegate 'mine', node ") == 2
    assert [incident["phase"] for incident in ran.json["incidents"]] == ["eval", "eval"]
    assert ran.json["outputs"][0]["first"] == pytest.approx([2.152495])


def test_a_delegate_that_crashes_in_a_process_of_its_own_is_a_warning(
    delegraph: Command, sines: Path
) -> None:
    file = f"{DANGEROUS}:at=eval,how=fault"
    words = ("run", sines, "-i", "2", "--delegate-file", file, "--isolate", "process", "--json")
    ran = delegraph(*words, "--timeout", "60")
    assert ran.code == 0
    assert "warning: delegate 'dangerous', node " in ran.err
    assert "SIGSEGV" in ran.json["incidents"][0]["error"]
    assert ran.json["outputs"][0]["first"] == pytest.approx([2.152495])
    ran = delegraph("run", sines, "--timeout", "60", "-d", "sin")
    assert "timeout=60 needs isolate='process'" in ran.err


def test_a_run_without_incidents_has_none(delegraph: Command, sines: Path) -> None:
    ran = delegraph("run", sines, "-d", "sin", "--validate", "--json")
    assert (ran.err, ran.json["incidents"]) == ("", [])


def test_run_follows_rules(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\naction = "exclude"\noperators = ["SIN"]\n')
    ran = delegraph("run", sines, "-d", "sin", "--rules", rules, "--json")
    assert json.dumps(ran.json["placement"]["partitions"]) == "[]", ran.err
    assert delegraph("run", sines, "--rules", tmp_path / "none.toml").code == 2


def test_run_measures_partitions(delegraph: Command, sines: Path, mine: Path) -> None:
    words = ("run", sines, "--delegate-file", f"{mine}:fault=slow", "--json")
    for policy, count in (("largest", 2), ("measured", 0)):
        ran = delegraph(*words, "--partition-policy", policy)
        assert len(ran.json["placement"]["partitions"]) == count, ran.err


def test_run_validates_results(delegraph: Command, sines: Path, mine: Path) -> None:
    words = ("run", sines, "--delegate-file", f"{mine}:fault=nan", "--json")
    assert delegraph(*words).code == 0
    ran = delegraph(*words, "--validate")
    assert (ran.code, ran.json["error"]["type"]) == (3, "DelegateNodeError")
    assert "NaN" in ran.err


def test_none_leaves_out_even_what_the_model_calls_for(delegraph: Command, sines: Path) -> None:
    answer = delegraph("run", sines, "-d", "none", "-i", "1.0", "--json").json
    assert answer["placement"]["delegates"] == []
