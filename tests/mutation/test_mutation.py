"""The mutation script itself: what it changes, what it finds to survive, what it reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation.campaign import Verdicts, sampled
from mutation.judging import Verdict
from mutation.mutants import Module, Mutant
from mutation.report import percent_of, row, text

RUN = Path(__file__).with_name("run.py")

TOY = '''\
"""A toy."""

LIMIT = 3


class Counter:
    def __init__(self):
        self.count = 0

    def add(self, step):
        """Add a step."""
        if step < 0:
            raise ValueError(f"{step + 1} is negative")
        self.count += step
        return min(self.count, LIMIT)


def first(items):
    while items:
        return items[0]


def unreached():
    return 1
'''

TESTS = """\
import pytest
from toy import Counter, first

def test_counts():
    counter = Counter()
    assert counter.add(1) == 1
    assert counter.add(7) == 3

def test_negative_steps_are_refused():
    with pytest.raises(ValueError):
        Counter().add(-1)

def test_first():
    assert first([5]) == 5
    assert first([]) is None

def test_that_fails_always():
    assert False
"""

SURVIVORS = {"Counter.add: step < 0 -> step <= 0", "unreached: return 1 -> return 2"}


def mutants(tmp_path: Path, source: str) -> list[Mutant]:
    file = tmp_path / "made.py"
    file.write_text(source, encoding="utf-8")
    return Module("made", file).mutants


def names(tmp_path: Path, source: str) -> list[str]:
    return [mutant.name.partition(": ")[2] for mutant in mutants(tmp_path, source)]


# -- what is changed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a < b -> a <= b", "a < b -> a > b"]),
        ("a is not b", ["a is not b -> a is b"]),
        ("a == b != c", ["a == b != c -> a != b != c", "a == b != c -> a == b == c"]),
        ("a and b", ["a and b -> a or b"]),
        ("not a", ["not a -> a"]),
        ("-a", ["-a -> a"]),
        ("a + b", ["a + b -> a - b"]),
        ("x = 7", ["x = 7 -> x = 8"]),
        ("x = True", ["x = True -> x = False"]),
        ("x = 'text'", []),
        ("x = f'{a + b}'", []),
        ("x += y", ["x += y -> x -= y", "x += y -> pass"]),
        ("a.b = c", ["a.b = c -> pass"]),
        ("a[b] = c", ["a[b] = c -> pass"]),
        ("f(x, y)", ["f(x, y) -> pass"]),
        ("y = f(x)", ["y = f(x) -> y = x"]),
        ("y = list(x)", []),
        ("y = min(x, z)", ["y = min(x, z) -> y = max(x, z)"]),
        ("raise Error(1)", ["raise Error(1) -> pass"]),
        ("if a:\n    b = c", ["if a -> if not a"]),
        ("if a < 1:\n    b = c", ["a < 1 -> a <= 1", "a < 1 -> a > 1"]),
        ("a == 1", ["a == 1 -> a != 1", "a == 1 -> a == 2"]),
        ("x = a if b else c", ["x = a if b else c -> x = a if not b else c"]),
        ("def f():\n    return x", ["return x -> return None"]),
        ("for a in b:\n    break", ["break -> pass"]),
        ("assert a < b", []),
        ("z = zip(x, y, strict=True)", []),
        ("if TYPE_CHECKING:\n    f(x, y)", []),
        ("Alias = A | B", []),
        ("def f(a: 1) -> 2: ...", []),
        ("@f(1)\ndef g(): ...", []),
        ("'''A docstring.'''", []),
    ],
)
def test_each_kind_of_code_has_its_faults(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert names(tmp_path, source) == expected


def test_names_tell_the_function_and_stay_when_lines_move(tmp_path: Path) -> None:
    before = [mutant.name for mutant in mutants(tmp_path, TOY)]
    assert "Counter.add: step < 0 -> step <= 0" in before
    assert "module: LIMIT = 3 -> LIMIT = 4" in before
    assert [mutant.name for mutant in mutants(tmp_path, "import sys\n\n\n" + TOY)] == before


def test_equal_changes_of_a_function_are_told_apart(tmp_path: Path) -> None:
    source = "def f(a):\n    a += g\n    a += g"
    assert [name for name in names(tmp_path, source) if "pass" in name] == [
        "a += g -> pass",
        "a += g -> pass #2",
    ]


def test_what_runs_at_import_is_known(tmp_path: Path) -> None:
    source = "def f(a=1):\n    return lambda b=2: 3\nx = 4\ny = lambda c: 5"
    late = [mutant.name for mutant in mutants(tmp_path, source) if mutant.is_late]
    assert late == [
        "f: return lambda b=2: 3 -> return None",
        "f.lambda: 2 -> 3",
        "f.lambda: return lambda b=2: 3 -> return lambda b=2: 4",
        "lambda: y = lambda c: 5 -> y = lambda c: 6",
    ]


def test_a_verdict_holds_while_the_function_is_the_same(tmp_path: Path) -> None:
    verdicts = Verdicts(tmp_path / "verdicts")
    first, *_ = mutants(tmp_path, "def f(a):\n    return a < b\n")
    verdicts.add(first, Verdict("survived", "", 3, 0.5))
    again = Verdicts(tmp_path / "verdicts")
    moved, *_ = mutants(tmp_path, "import c\n\ndef f(a):\n    return a < b\n")
    changed, *_ = mutants(tmp_path, "def f(a):\n    return a < b or c\n")
    assert again.of(moved) == Verdict("survived", "", 3, 0.5)
    assert again.of(changed) is None


def test_a_larger_sample_has_the_smaller_one(tmp_path: Path) -> None:
    found = mutants(tmp_path, "".join(f"x{i} = {i}\n" for i in range(1000)))
    small, large = sampled(found, 20, seed=1), sampled(found, 40, seed=1)
    assert 150 < len(small) < 250
    assert set(map(id, small)) < set(map(id, large))
    assert sampled(found, 100, seed=1) == found
    assert sampled(found, 20, seed=2) != small


# -- a campaign ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of one module after a campaign, with current and outdated explanations."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "toy.py").write_text(TOY)
    (folder / "test_toy.py").write_text(TESTS)
    (folder / "targets.toml").write_text("[toys]\nmodules = 'toy.py'\ntests = ['test_toy.py']\n")
    (folder / "explanations.toml").write_text(
        "[toy]\n"
        "'unreached: return 1 -> return 2' = 'nobody calls it'\n"
        "'first: items[0] -> items[9]' = 'was so once'\n"
        "'module: LIMIT = 3 -> LIMIT = 4' = 'was so once'\n"
    )
    return folder


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), "--targets", "targets.toml", *arguments]
    settings = {**os.environ, "PYTHONPATH": str(project)}
    return subprocess.run(
        command, cwd=project, env=settings, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def report(project: Path) -> str:
    done = run(project, "--minimum", "80")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_survivors_are_those_that_no_test_notices(report: str, project: Path) -> None:
    lines = (project / ".mutants" / "toys.jsonl").read_text().splitlines()
    outcomes = {name: verdict[0] for _, name, _, verdict in map(json.loads, lines)}
    assert {name for name, outcome in outcomes.items() if outcome != "killed"} == SURVIVORS
    assert outcomes["unreached: return 1 -> return 2"] == "unreached"
    assert outcomes["module: LIMIT = 3 -> LIMIT = 4"] == "killed"  # what runs at import
    assert outcomes["first: while items -> while not items"] == "killed"


def test_the_report_has_survivors_explanations_and_tests_that_judge_nothing(report: str) -> None:
    assert "toy:12: Counter.add: step < 0 -> step <= 0 (survived)" in report
    assert "nobody calls it" not in report.partition("module ")[0]
    assert "toy: no longer so: first: items[0] -> items[9] (gone)" in report
    assert "toy: no longer so: module: LIMIT = 3 -> LIMIT = 4 (killed by " in report
    assert "fails without a mutant, so it judged none: test_toy.py::test_that_fails" in report
    (row,) = (line.split() for line in report.splitlines() if line.startswith("toy  "))
    mutants, judged, killed, explained = map(int, row[1:5])
    assert (mutants, judged, explained) == (judged, killed + 2, 1)


def test_a_campaign_goes_on_where_it_was(report: str, project: Path) -> None:
    verdicts = project / ".mutants" / "toys.jsonl"
    lines = verdicts.read_text().splitlines(keepends=True)
    verdicts.write_text("".join(lines[2:]))
    done = run(project)
    assert done.stdout.count(" s  toy:") == 2
    assert sorted(verdicts.read_text().splitlines()) != []
    assert run(project, "--again").stdout.count(" s  toy:") == len(SURVIVORS)


def test_too_few_killed_is_a_failure(report: str, project: Path) -> None:
    done = run(project, "--report", "--minimum", "99")
    assert done.returncode == 1
    assert "(at least 99 wanted)" in done.stdout
    assert " s  toy:" not in done.stdout


def test_a_loop_without_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text("def f(n):\n    while n > 0:\n        n -= 1\n    return n\n")
    (tmp_path / "test_toy.py").write_text("import toy\ndef test_f(): assert toy.f(3) == 0")
    (tmp_path / "targets.toml").write_text("[t]\nmodules = 'toy.py'\ntests = ['test_toy.py']\n")
    (tmp_path / "explanations.toml").write_text("")
    assert run(tmp_path, "--patience", "1").returncode == 0
    verdicts = (tmp_path / ".mutants" / "t.jsonl").read_text()
    assert '["killed", "timeout"' in verdicts


def test_tests_that_are_named_by_the_changed_code_judge_it(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text("LIMIT = 3\n")
    (tmp_path / "test_toy.py").write_text(
        "import pytest, toy\n"
        "@pytest.mark.parametrize('limit', [toy.LIMIT])\n"
        "def test_limit(limit): assert limit == 3\n"
        "def test_that_sees_nothing(): assert toy\n"
    )
    (tmp_path / "targets.toml").write_text("[t]\nmodules = 'toy.py'\ntests = ['test_toy.py']\n")
    (tmp_path / "explanations.toml").write_text("")
    assert run(tmp_path).returncode == 0
    assert '["killed"' in (tmp_path / ".mutants" / "t.jsonl").read_text()


def test_a_folder_may_have_settings_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "toy.py").write_text("SEEN = 3\nUNSEEN = 4\n")
    (tmp_path / "tests" / "test_toy.py").write_text("import toy\ndef test(): assert toy.SEEN == 3")
    (tmp_path / "targets.toml").write_text("[t]\nmodules = 'toy.py'\ntests = ['tests']\n")
    (tmp_path / "explanations.toml").write_text("")
    done = run(tmp_path, "--minimum", "50")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "toy:2: module: UNSEEN = 4 -> UNSEEN = 5 (survived)" in done.stdout
    assert "SEEN = 3 -> SEEN = 4 (survived)" not in done.stdout


def test_explained_survivors_do_not_count(tmp_path: Path) -> None:
    found = mutants(tmp_path, "def f(a):\n    return a < b\n")
    verdicts = Verdicts(tmp_path / "verdicts")
    for mutant, outcome in zip(found, ("killed", "survived", "unreached"), strict=True):
        verdicts.add(mutant, Verdict(outcome, "", 1, 0.1))
    bare = row("made", found, verdicts, {})
    explained = row("made", found, verdicts, {found[1].name: "because"})
    assert (round(bare.percent), explained.percent) == (33, 50.0)
    assert round(percent_of([bare, explained])) == 40
    assert "because" not in text([bare])
    assert explained.explained == {found[1].name: "because"}
