"""Delegates that crash or hang cost the check that finds it, and nothing else."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from delegraph.testing import check_runner
from delegraph.testing.check_runner import place_of

pytest_plugins = ("pytester",)

LIGHT = "addopts = -p no:hypothesispytest -p no:xdist"
"""Setting that leaves out plugins whose import is a third of the start of a pytest."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="faults are signals of POSIX")

AUTHOR = """
from delegraph.testing import DelegateConformance
from support import seeded_faults as faulty

class TestFaulty(DelegateConformance):
    examples = 5
    def make_delegate(self):
        return {fault}()
"""

KILLED = "faulty.with_kernel(faulty.{})"


class Author:
    """Runs some checks of the kit, quickly, on a delegate with a fault."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def run(self, fault: str, checks: str, *options: str) -> pytest.RunResult:
        self.pytester.makepyfile(test_author=AUTHOR.format(fault=fault))
        return self.pytester.runpytest_inprocess("--delegate-quick", "-k", checks, *options)


@pytest.fixture
def author(pytester: pytest.Pytester, pytestconfig: pytest.Config) -> Author:
    pytester.makeini(f"[pytest]\npythonpath = {pytestconfig.rootpath / 'tests'}\n{LIGHT}\n")
    return Author(pytester)


@pytest.mark.repetition(2, "crashes")
def test_a_crash_fails_the_numbers_of_its_operator_alone(author: Author) -> None:
    result = author.run(
        KILLED.format("Crashes"), "numbers or claims or no_views", "--delegate-report=c.json"
    )
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "MUL of FLOAT32: the delegate 'careful' crashed (SIGSEGV)",
            "  File *seeded_faults.py*, line * in result",
            "  model: MUL v1 *",
            "  saved: *careful-MUL-died.tflite",
            "  again: Interpreter('*careful-MUL-died.tflite', delegates=*",
            "careful: FAILED",
            "  a sample (--quick): each claimed type of 2 operators once, not each *",
            "  contract * 1 * 0 * 0",
            "  numbers  * 1 * 1 * 0",
            "  numbers: MUL: MUL of FLOAT32: the delegate 'careful' crashed (SIGSEGV)",
        ]
    )
    (card,) = json.loads((author.pytester.path / "c.json").read_text())["delegates"]
    assert card["sample"].startswith("each claimed type of 2 operators")


@pytest.mark.repetition(2, "hangs")
def test_a_hang_is_ended_and_says_where_it_was(author: Author) -> None:
    result = author.run(KILLED.format("Hangs"), "numbers", "--delegate-timeout=2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "MUL of FLOAT32: the delegate 'careful' hung: ended after 2 s with nothing done "
            "(--delegate-timeout); if it is slow and not stuck, give it more seconds, *",
            "  File *seeded_faults.py*, line * in result",
            "  saved: *careful-MUL-died.tflite",
        ]
    )


@pytest.mark.repetition(2, "hangs")
def test_checks_after_too_many_hangs_are_not_tried(
    author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_runner, "_MOST_HANGS", 1)
    result = author.run(KILLED.format("Hangs"), "numbers or threads", "--delegate-timeout=1")
    result.assert_outcomes(failed=1, skipped=2)
    result.stdout.fnmatch_lines(["  section    passed  failed  not applicable  not tried", "*2"])


def test_checks_that_need_a_right_model_are_not_tried_without_one(author: Author) -> None:
    broken = "type('Broken', (faulty.SoundDelegate,), {'kernel': None})"
    author.run(broken, "threads").stdout.fnmatch_lines(["*not tried", "  contract*0*0*0*1"])


@pytest.mark.repetition(2, "crashes")
def test_a_crash_in_one_check_leaves_the_others(author: Author) -> None:
    result = author.run(KILLED.format("CrashesAfterAResize"), "dynamic or no_views")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "in the check 'dynamic shapes are followed' the delegate 'careful' crashed (SIGSEGV)",
            "  File *seeded_faults.py*, line * in prepare",
            "  saved: *-died.tflite",
            "  contract * 1 * 1 * 0",
        ]
    )


@pytest.mark.repetition(2, "crashes")
def test_a_crash_at_a_question_names_the_operator(author: Author) -> None:
    result = author.run("faulty.CrashesWhenAsked", "every_operator or reasons")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["asked about a model of FLOOR: it crashed (SIGSEGV)*"])


@pytest.mark.repetition(2, "crashes")
def test_a_delegate_that_crashes_when_it_is_made_cannot_be_collected(author: Author) -> None:
    result = author.run("faulty.CrashesWhenMade", "")
    result.stdout.fnmatch_lines(
        [
            "UsageError: the delegate of TestFaulty crashed (SIGABRT)",
            "*in __init__",
            "  when it was loaded and made",
            "TestFaulty: FAILED",
            "  contract: is loaded: the delegate of TestFaulty crashed (SIGABRT)",
        ]
    )


def test_without_a_limit_checks_run_in_the_process_of_pytest(author: Author) -> None:
    author.pytester.makeconftest(
        "import os\n"
        "def pytest_runtest_call(item): print('ran in', os.getpid())\n"
        "def pytest_sessionfinish(session): print('session', os.getpid())\n"
    )
    for limit in (0, 9):
        result = author.run("faulty.SoundDelegate", "name_is", f"--delegate-timeout={limit}", "-s")
        text = result.stdout.str() + result.stderr.str()
        ran, session = (re.findall(rf"{word} (\d+)", text) for word in ("ran in", "session"))
        assert (ran == session) == (limit == 0)


def test_what_other_tests_have_set_up_ends_with_the_checks_after_them(author: Author) -> None:
    author.pytester.makeconftest(
        "import pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def ends_badly():\n"
        "    yield\n"
        "    raise ValueError('it ended badly')\n"
    )
    author.pytester.makepyfile(
        test_both="def test_first(ends_badly): pass\n"
        + AUTHOR.format(fault="faulty.SoundDelegate"),
        test_later="def test_last(): pass\n",
    )
    words = ("--delegate-quick", "-k", "first or name_is or last")
    result = author.pytester.runpytest_inprocess(*words)
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*it ended badly*"])


def test_options_of_the_run_are_for_one_process_alone(author: Author) -> None:
    result = author.run(
        "faulty.SoundDelegate", "name_is", "--junit-xml=found.xml", "-x", "--lf", "-v"
    )
    result.assert_outcomes(passed=1)
    assert (author.pytester.path / "found.xml").read_text().count("<testcase ") == 1


def test_negative_limit_is_refused(author: Author) -> None:
    result = author.run("faulty.SoundDelegate", "", "--delegate-timeout=-1")
    result.stderr.fnmatch_lines(["*--delegate-timeout is negative; 0 is for no limit"])


@pytest.mark.repetition(1, "states")
def test_a_fault_that_depends_on_state_is_called_so(author: Author) -> None:
    words = ("generated or numbers", "--delegate-report=c.json")
    result = author.run(KILLED.format("WrongAfterManyModels"), *words)
    result.stdout.fnmatch_lines(
        [
            "a generated model of * comes out wrong: *",
            "  saved: *-generated.tflite",
            "  alone, in a new process, this model comes out right: the fault depends on state *",
        ]
    )
    assert "depends on state" in (author.pytester.path / "c.json").read_text()


@pytest.mark.repetition(1, "states")
def test_a_model_that_was_made_too_small_by_state_is_saved_as_it_was(author: Author) -> None:
    result = author.run(KILLED.format("WrongAfterManyElements"), "numbers")
    result.stdout.fnmatch_lines(
        [
            "ADD of * comes out wrong in *",
            "  saved: *careful-ADD-wrong.tflite",
            "  alone, in a new process, * depends on state *; this larger one comes out wrong *:",
            "  saved: *careful-ADD-original.tflite",
        ]
    )


@pytest.mark.repetition(1, "states")
def test_a_fault_of_the_model_alone_is_not_called_one_of_state(author: Author) -> None:
    result = author.run(KILLED.format("WrongIntegers"), "numbers")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*depends on state*")


HUNG = "hung: ended after 2 s with nothing done (--delegate-timeout); *"


@pytest.mark.repetition(2, "hangs")  # each waits for the end of a hang
@pytest.mark.parametrize(
    ("fault", "checks", "lines"),
    [
        (
            "hangs_in('is_node_supported_by_delegate')",
            "nothing_unclaimed",
            ["in the check 'nothing unclaimed is taken' the delegate 'careful' " + HUNG],
        ),
        (
            "hangs_in('prepare', from_call=4)",
            "prepare_is",
            ["in the check 'prepare is idempotent' the delegate 'careful' " + HUNG],
        ),
        ("hangs_in('close')", "numbers", ["in the check 'ADD' the delegate 'careful' " + HUNG]),
    ],
)
def test_a_hang_names_check_model_and_place(
    author: Author, fault: str, checks: str, lines: list[str]
) -> None:
    result = author.run(f"faulty.{fault}", checks, "--delegate-timeout=2")
    result.stdout.fnmatch_lines(
        [*lines, "  File *, line * in hang", "  model: *", "  saved: *", "careful: FAILED"]
    )


@pytest.mark.repetition(2, "hangs")
def test_a_hang_when_it_is_loaded_is_in_the_scorecard(author: Author) -> None:
    result = author.run("faulty.hangs_in('capabilities')", "", "--delegate-timeout=2")
    result.stdout.fnmatch_lines(
        [
            "UsageError: the delegate of TestFaulty hung: ended after 2 s with nothing done *",
            "  File *, line * in hang",
            "  when it was asked what it claims",
            "TestFaulty: FAILED",
            "  contract: is loaded: the delegate of TestFaulty hung: *",
        ]
    )


@pytest.mark.repetition(2, "hangs")
@pytest.mark.parametrize("options", [(), ("--delegate-timeout=0",)])
def test_the_limit_of_pytest_itself_names_check_and_model(
    author: Author, options: tuple[str, ...]
) -> None:
    result = author.run(KILLED.format("Hangs"), "numbers and MUL", "--timeout=5", *options)
    result.stdout.fnmatch_lines(
        [
            "in the check 'MUL' the delegate 'careful' took *; raise that *--timeout*",
            "  model: *",
            "  saved: *",
            "careful: FAILED",
        ]
    )


@pytest.mark.parametrize(
    ("test", "values", "section", "check"),
    [
        ("test_contract", "mine-no_views_are_kept", "contract", "no views are kept"),
        ("test_numbers", "mine-ADD", "numbers", "ADD"),
        ("test_generated_models", "mine", "numbers", "generated models"),
        ("test_nothing_unclaimed_is_taken", "mine", "soundness", "nothing unclaimed is taken"),
    ],
)
def test_a_check_that_is_not_tried_has_its_place_in_the_scorecard(
    test: str, values: str, section: str, check: str
) -> None:
    item: Any = SimpleNamespace(name=f"{test}[{values}]", callspec=SimpleNamespace(id=values))
    assert place_of(item, "mine") == {"section": section, "check": check}
