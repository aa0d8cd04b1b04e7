"""The kit as authors meet it: a class, a command, and a scorecard at the end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest_plugins = ("pytester",)

LIGHT = "addopts = -p no:hypothesispytest -p no:xdist"
"""Setting that leaves out plugins whose import is a third of the start of a pytest."""

AUTHOR = """
import pytest
from delegraph.testing import DelegateConformance
from support import seeded_faults as faulty

class TestSound(DelegateConformance):
    examples = 5
    def make_delegate(self):
        return faulty.SoundDelegate()

class TestWrong(DelegateConformance):
    def make_delegate(self):
        return faulty.with_kernel(faulty.WrongIntegers)()
"""

NUMBERS = (
    *("--delegate-quick", "-k", "numbers or name_is_stable or options"),
    *("-p", "no:cacheprovider"),
)
SOUND = ("--delegate-quick", "-k", "TestSound and (numbers or name_is_stable)")


@pytest.fixture
def author(pytester: pytest.Pytester, pytestconfig: pytest.Config) -> pytest.Pytester:
    """A folder with an author's test file; the plugin comes by its entry point."""
    pytester.makeini(f"[pytest]\npythonpath = {pytestconfig.rootpath / 'tests'}\n{LIGHT}\n")
    pytester.makepyfile(AUTHOR)
    return pytester


def test_scorecard_counts_sections_and_compares_operators_by_type(author: pytest.Pytester) -> None:
    result = author.runpytest_inprocess(*NUMBERS)
    result.assert_outcomes(passed=5, failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "ADD of INT32 comes out wrong in * of * models: output 0: *",
            "  saved: *careful-ADD-wrong.tflite",
            "  again: Interpreter('*careful-ADD-wrong.tflite', delegates=*",
            "*= delegate conformance =*",
            "careful: FAILED",
            "  section * passed * failed * not applicable",
            "  contract * 2 * 0 * 2",
            "  numbers  * 3 * 1 * 0",
            "  models right * FLOAT32 *INT32",
            "  ADD *",
            "  numbers: ADD: ADD of INT32 comes out wrong in *",
        ]
    )


def test_an_override_wins_over_the_attribute(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from delegraph.testing import DelegateConformance

        class TestMine(DelegateConformance):
            delegate = "numba_cpu"
            def make_delegate(self):
                raise AssertionError("made here")
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-k", "name_is_stable")
    result.stdout.fnmatch_lines(["*made here*"])


def test_reports_and_badges_are_written_as_their_endings_say(author: pytest.Pytester) -> None:
    for words, card, badge in (
        (SOUND, "card.json", "badge.svg"),
        (SOUND[1:], "card.md", "badge.json"),
    ):
        options = (f"--delegate-report={card}", f"--delegate-badge={badge}")
        result = author.runpytest_inprocess(*words, *options)
        assert result.ret == 0
        result.stdout.fnmatch_lines([f"written to {badge}"])
    (told,) = json.loads((author.path / "card.json").read_text())["delegates"]
    assert (told["name"], told["passed"]) == ("careful", True)
    assert told["sections"]["numbers"] == {"passed": 2}
    assert set(told["operators"]["ADD"]) == {"FLOAT32", "INT32"}
    assert [check["check"] for check in told["checks"]] == ["name is stable", "ADD", "MUL"]
    markdown = (author.path / "card.md").read_text()
    assert "## careful\n" in markdown
    assert "| contract | 1 | 0 | 0 |" in markdown
    assert json.loads((author.path / "badge.json").read_text()) == {
        "schemaVersion": 1,
        "label": "Delegraph kit",
        "message": "2 operators",
        "color": "brightgreen",
    }
    assert "Delegraph kit: 2 operators, a sample" in (author.path / "badge.svg").read_text()


def test_badge_of_another_ending_is_refused_before_anything_runs(author: pytest.Pytester) -> None:
    result = author.runpytest_inprocess("--delegate-badge=badge.png")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--delegate-badge 'badge.png' ends neither in .svg nor in .json"])


def test_report_of_another_ending_is_refused_before_anything_runs(author: pytest.Pytester) -> None:
    result = author.runpytest_inprocess("--delegate-report=card.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--delegate-report 'card.txt' ends in '.txt', not .json or .md"])


def test_class_that_names_no_delegate_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from delegraph.testing import DelegateConformance\n"
        "class TestNothing(DelegateConformance): pass\n"
    )
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["*TestNothing names no delegate: set `delegate`, or override *"])


def test_command_tests_the_delegates_it_is_given(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(
        "--pyargs", "delegraph.testing", "--delegate", "sin", "--delegate", "add_sub",
        "-k", "name_is_stable",
    )  # fmt: skip
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["sin: passed", "add_sub: passed"])


@pytest.mark.repetition(1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say which delegate to test: --delegate NAME"),
        (("--delegate", "nobody"), "UnknownDelegateError: no installed plugin provides *nobody*"),
        (("--delegate", "add_sub:no=1"), "PluginOptionError: * has no option 'no'; valid *"),
    ],
)
def test_command_explains_what_it_cannot_test(
    pytester: pytest.Pytester, arguments: tuple[str, ...], message: str
) -> None:
    result = pytester.runpytest_inprocess("--pyargs", "delegraph.testing", *arguments)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*{message}*"])


def test_other_projects_keep_their_own_delegate_option(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.addoption('--delegate', type=int)\n"
    )
    pytester.makepyfile("def test_option(request): assert request.config.option.delegate == 3\n")
    result = pytester.runpytest_inprocess("--delegate", "3")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*delegate conformance*")


def test_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, delegraph.testing.pytest_plugin\n"
        "print(*(m for m in sys.modules if m.startswith('delegraph.') or m in "
        "('numpy', 'hypothesis', 'flatbuffers')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light = ["delegraph.collector", "delegraph.exports"]
    testing = ["delegraph.testing", "delegraph.testing.pytest_plugin"]
    assert sorted(done.stdout.split()) == [*light, *testing]
