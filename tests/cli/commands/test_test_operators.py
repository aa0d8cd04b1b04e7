"""``delegraph test-operators``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="a sweep's workers are POSIX processes")

from delegraph.cli.answers.printing import console
from delegraph.cli.commands.test_operators import print_sweep
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.findings import Finding
from delegraph.testing.sweep.judging import Fault
from delegraph.testing.sweep.sweep import Plan, SweepResult
from support.command import Command, Refused

FAULTY = """
from support.faulty_delegate import Faulty, off_by

delegate = Faulty("ADD", fault=off_by(1))
"""

FAILING = """
from support.faulty_delegate import Faulty

def fail(*_):
    raise OSError(100 * "a long story ")

delegate = Faulty("ADD", fault=fail)
"""


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY)
    return path


def test_a_finding_is_shown_and_its_command_repeats_it(delegraph: Command, faulty: Path) -> None:
    given = ("test-operators", faulty, "--operator", "ADD", "--seed", 2)
    first = delegraph(*given, "--cases", 2, "--jobs", 1, "--json")
    assert first.code == 1
    found = first.json["findings"][0]
    assert found["kind"] == "differs"
    assert first.json["operators"]["ADD"]["different"] == sum(
        f["count"] for f in first.json["findings"]
    )
    program, *words = found["reproduce"].split()
    assert program == "delegraph"
    again = delegraph(*words, "--json")
    assert again.code == 1
    (same,) = again.json["findings"]
    assert (same["model"], same["numbers"]) == (found["model"], found["numbers"][:1])
    assert again.json["cases"] == 1


@pytest.mark.parametrize("option", ["-d", "--delegate"])
def test_a_delegate_is_named_as_for_other_commands(delegraph: Command, option: str) -> None:
    result = delegraph("test-operators", option, "add-sub", "--cases", 20, "--operator", "SUB")
    assert (result.code, result.err) == (0, "")


def test_a_finding_names_the_line_of_a_delegate_file_and_ends_with_dots(
    delegraph: Command, faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.write_text(FAILING)
    monkeypatch.chdir(faulty.parent)
    given = ("--delegate-file", faulty.name, "--operator", "ADD", "--cases", 4, "--jobs", 1)
    result = delegraph("test-operators", *given)
    assert result.code == 1
    assert any(line.startswith("in faulty.py:") for line in result.lines)
    assert " a long story ..." in " ".join(result.lines)


def test_counts_are_shown_by_operator(delegraph: Command, tmp_path: Path) -> None:
    badge = tmp_path / "badge.svg"
    result = delegraph(
        *("test-operators", "add_sub", "--cases", 60, "--operator", "SUB", "--operator", "ABS"),
        *("--badge", badge),
    )
    assert result.code == 0
    outcomes = {line.split()[1]: int(line.split()[0]) for line in result.lines[5:8]}
    assert list(outcomes) == ["equal", "not", "refused"]
    assert sum(outcomes.values()) == 60
    equal = outcomes["equal"]
    assert result.lines[0] == f"add_sub computed {equal} models, all as expected"
    assert result.lines[1].startswith("60 models, seed 0, ")
    assert re.fullmatch(r"it took \d+ nodes: SUB \d+", result.lines[2])
    assert f"no finding in {equal} models" in badge.read_text()
    assert [line.split()[0] for line in result.lines[-2:]] == ["ABS", "SUB"]
    assert "Findings" not in result.out


def test_findings_of_one_place_are_shown_once(delegraph: Command) -> None:
    sines = Path(__file__).parents[3] / "docs" / "demo" / "wrong_sines.py"
    result = delegraph("test-operators", sines, "--operator", "SIN", "--cases", 60, "--jobs", 1)
    assert result.code == 1
    assert result.out.count(" in eval") == 1
    assert result.err.endswith("error: 1 finding\n")
    assert "-o FOLDER writes the models of the findings, with their inputs" in result.lines


def test_equal_failures_without_a_place_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan(Comparison("ending"), operators=("ADD", "MUL", "SUB"))
    fault = Fault("crash", "the process ended with exit code 3")
    found = [Finding(plan.case(number), fault, [number], count=5) for number in range(4)]
    print_sweep(console(), SweepResult(plan, {"ADD": Counter(different=20)}, tuple(found), 1.0))
    shown = capsys.readouterr().out
    assert shown.startswith("ending fails in 20 of 20 models: 4 findings\n")
    assert shown.count("again: ") == 1
    assert "3 more findings of this cause, 15 cases:" in shown
    assert shown.count(": the process ended with exit code 3, --first ") == 3


def test_others_of_a_group_have_lines_up_to_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan(Comparison("wrong"), operators=("ADD",))
    text = (
        "invoke 0, output 0: 1 of 1 values differ, first at [0, 1]: 5 instead of -1 (allowed: no)"
    )
    found = [Finding(plan.case(0), Fault("differs", text), [n], count=n) for n in range(13)]
    print_sweep(console(), SweepResult(plan, {"ADD": Counter(different=78)}, tuple(found), 1.0))
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    at = shown.index("12 more findings of these operators, 78 cases:")
    assert shown[at + 1].endswith(": 5 instead of -1, --first 12")
    assert shown[at + 10].endswith(": 5 instead of -1, --first 3")
    assert shown[at + 11] == "and 2 more; --json lists them"


INTERRUPTING = """
import os, signal
from pathlib import Path
from support.faulty_delegate import Faulty, off_by

def interrupt(context, node, run):
    off_by(1)(context, node, run)
    if any(Path("found").glob("*.txt")):
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()

delegate = Faulty("ADD", fault=interrupt)
"""

INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
runpy.run_module("delegraph", run_name="__main__")
"""


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_prints_the_findings_so_far(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "mine.py").write_text(INTERRUPTING)
    given = [sys.executable, "-c", INTERRUPTIBLE, "test-operators", "mine.py", "--operator", "ADD"]
    given += ["--sweep", "1", "--jobs", "1", "-o", "found"]
    done = subprocess.run(
        [*given, *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.split()) == (130, ["error:", "interrupted"])
    if words:
        answer = json.loads(done.stdout)
        assert (answer["is_interrupted"], answer["error"]["exit_code"]) == (True, 130)
        assert {found["kind"] for found in answer["findings"]} == {"differs"}
    else:
        assert "  interrupted: no more models were tried, " in done.stdout
        assert "): differs, 1 case" in done.stdout
        assert "written to found\n" in done.stdout


def test_cases_are_of_claimed_operators(delegraph: Command) -> None:
    result = delegraph("test-operators", "sin", "--cases", 5, "--json")
    assert result.code == 0, result.err
    assert list(result.json["operators"]) == ["SIN"]


def test_a_delegate_that_takes_nothing_fails(delegraph: Command, tmp_path: Path) -> None:
    idle = tmp_path / "idle.py"
    idle.write_text(FAULTY.replace('"ADD"', '"NOTHING"'))
    result = delegraph("test-operators", idle, "--operator", "ADD", "--cases", 2, "--jobs", 1)
    assert result.code == 1
    assert "error: the delegate takes no node of 2 models: nothing of it is tested" in result.err
    assert "it declares no claims, and took none of the models" in " ".join(result.lines)


CUSTOM_ONLY = """
from delegraph import Capabilities, Claim, SimpleDelegateInterface

class CustomOnly(SimpleDelegateInterface):
    def name(self): return "custom_only"
    def is_node_supported_by_delegate(self, registration, node, context): return False
    def create_delegate_kernel_interface(self): raise AssertionError
    def capabilities(self): return Capabilities([Claim("FlexAbs", "FLOAT32")])
"""


def test_a_delegate_of_custom_operators_alone_is_refused(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "custom_only.py"
    path.write_text(CUSTOM_ONLY)
    err = refused("test-operators", path, "--cases", 1, "--jobs", 1)
    assert err.startswith("error: there are no cases of an operator that '")


def test_in_litert_models_of_which_the_delegate_takes_nothing_are_not_equal(
    delegraph: Command,
) -> None:
    pytest.importorskip("ai_edge_litert")
    given = ("add_sub", "--operator", "ADD", "--cases", 30, "--jobs", 1, "--json")
    here, there = (
        delegraph("test-operators", *given, "--runtime", runtime).json["operators"]["ADD"]
        for runtime in ("delegraph", "litert")
    )
    assert there["not taken"] > 0
    assert there["not taken"] <= here["not taken"] + here["not judged"] + here["refused"]


def test_findings_are_written_to_a_folder(delegraph: Command, faulty: Path, tmp_path: Path) -> None:
    folder = tmp_path / "findings"
    result = delegraph(
        *("test-operators", faulty, "--operator", "ADD", "--seed", 2, "--cases", 2, "--jobs", 1),
        *("--output", folder, "--badge", tmp_path / "badge.svg"),
    )
    assert "1 finding in 1 model" in (tmp_path / "badge.svg").read_text()
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert f"written to {folder}" in result.out
    [saved] = folder.glob("*.tflite")
    assert f"saved: {saved}" in result.lines
    assert saved.with_suffix(".npz").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "nothing"),
        (("core", "--runtime", "litert"), "'core' is no delegate"),
        (("add_sub", "--default"), "'add_sub' is no delegate that Interpreter"),
        (
            (),
            "expected one delegate: DELEGATE, --delegate NAME or --delegate-file FILE.py; none is",
        ),
        (("add_sub", "-d", "sin"), "got 'add_sub' and 'sin'"),
        (("add_sub", "--operator", "CONV_2D"), "'add_sub' claims none of CONV_2D; 'delegraph plu"),
        (("add_sub", "--operator", "AD"), "no cases of an operator 'AD'"),
        (("add_sub", "--badge", "b.png"), "badge is 'b.png', expected a name that ends in .svg"),
    ],
)
def test_what_cannot_be_swept_is_refused(
    delegraph: Command, words: tuple[str, ...], message: str
) -> None:
    result = delegraph("test-operators", *words, "--cases", 1)
    assert result.code in (2, 3)
    assert message in result.err
