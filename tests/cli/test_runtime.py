"""``--runtime litert``: the same commands in the official interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import Command

pytest.importorskip("ai_edge_litert")

FAILING = """
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface

class Failing(SimpleDelegateInterface):
    def name(self):
        return "failing"
    def is_node_supported_by_delegate(self, registration, node, context):
        return registration.name == "SIN"
    def create_delegate_kernel_interface(self):
        return Kernel()

class Kernel(SimpleDelegateKernelInterface):
    def init(self, context, params):
        pass
    def prepare(self, context, node):
        pass
    def eval(self, context, node):
        raise OSError("device lost")
"""


def test_run_gives_the_same_outputs_in_both_runtimes(delegraph: Command, sines: Path) -> None:
    words = ("run", sines, "-d", "sin", "-i", "2.0", "--json")
    ours = delegraph(*words).json
    theirs = delegraph(*words, "--runtime", "litert").json
    assert ours["outputs"] == theirs["outputs"]
    taken = [node["delegate"] for node in theirs["placement"]["nodes"]]
    assert taken[0] == taken[3] == "sin"
    assert theirs["incidents"] == []


def test_explain_shows_who_runs_what_there(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "sin", "--runtime", "litert")
    assert ran.code == 0
    start = ran.lines.index("In execution order")
    assert ran.lines[start + 2].startswith("0 sin 1 0 4 B 4 B SIN")
    rest = {line.split()[1] for line in ran.lines[start + 3 : start + 6]}
    assert rest <= {"sin", "XNNPACK", "LiteRT"}
    assert any("op: is MUL, needs SIN" in line for line in ran.lines)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--validate"),
        ("run", "--time-limit", "1"),
        ("run", "--memory-limit", "1G"),
        ("explain", "--time-limit", "1"),
        ("explain", "--partition-policy", "measured"),
        ("explain", "--lock", "lock.json"),
    ],
)
def test_what_only_delegraphs_interpreter_has_is_refused(
    delegraph: Command, sines: Path, words: tuple[str, ...]
) -> None:
    command, option, *value = words
    ran = delegraph(command, sines, "-d", "sin", "--runtime", "litert", option, *value)
    assert ran.code == 2
    assert f"{option} needs --runtime delegraph" in ran.err


def test_failing_delegates_fall_back_there(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "failing.py"
    path.write_text(FAILING)
    words = ("run", sines, "-i", "2", "--delegate-file", path, "--runtime", "litert", "--json")
    assert "device lost" in delegraph(*words).err
    ran = delegraph(*words, "--on-failure", "fallback")
    assert ran.code == 0
    assert "warning: delegate 'failing', node " in ran.err
    assert [incident["phase"] for incident in ran.json["incidents"]] == ["eval", "eval"]
    assert ran.json["outputs"][0]["first"] == pytest.approx([2.152495])
    ran = delegraph(*words, "--on-failure", "shadow")
    assert ran.code == 2
    assert "on_failure in LiteRT: 'shadow'; it is one of" in ran.json["error"]["message"]


def test_rules_and_require_hold_there(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'exclude'\nnodes = 3\ndelegate = 'sin'")
    words = (sines, "-d", "sin", "--runtime", "litert", "--no-default-delegates")
    ran = delegraph("run", *words, "--rules", rules, "--json")
    nodes = ran.json["placement"]["nodes"]
    assert [node["delegate"] for node in nodes] == ["sin", None, None, None, None]
    ran = delegraph("run", *words, "--require", "full")
    assert (ran.code, ran.out) == (1, "")
    assert "require='full': 3 nodes stay behind: ADD" in ran.err


def test_a_rule_that_xnnpack_breaks_exits_with_1(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'exclude'\noperators = 'ADD'")
    for command in ("run", "explain"):
        ran = delegraph(command, sines, "-d", "sin", "--runtime", "litert", "--rules", rules)
        assert (ran.code, ran.out) == (1, "")
        assert "XNNPACK has nodes that rules keep from it: node 1 (ADD): rule 1" in ran.err


def test_numerics_choose_the_official_kernels(delegraph: Command, sines: Path) -> None:
    words = ("run", sines, "-i", "0.5", "--runtime", "litert", "--numerics", "reference", "--json")
    shown = delegraph(*words).json
    assert {node["delegate"] for node in shown["placement"]["nodes"]} == {None}
