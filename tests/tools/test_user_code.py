"""Errors of an author's code at the command line: they end with the place in that code."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.testing import run_command

SINES = Path(__file__).parents[2] / "docs" / "demo" / "models" / "sines.tflite"
CODE = """\
from delegraph import NodeByNodeKernel, SimpleDelegateInterface


class Mine(SimpleDelegateInterface):
    def name(self):
        return "mine"

    def is_node_supported_by_delegate(self, registration, node, context):
        return registration.name == "SIN"

    def create_delegate_kernel_interface(self):
        return Kernel()


class Kernel(NodeByNodeKernel):
    def prepare_node(self, call):
        x, y = call.input(0), call.output()

        def compute():
            y.data[...] = abs(x.data)

        return compute
"""
MISTAKES = {
    "eval": ("abs(x.data)", "{}['sine']", "KeyError: 'sine'", 20, " in compute"),
    "prepare": ("call.output()", "call.outptu()", "no attribute 'outptu'", 17, " in prepare_node"),
    "claim": ("registration.name", "node.name", "no attribute 'name'", 9, " in is_node_supported_"),
    "kernel": ("return Kernel()", "return Kernl()", "'Kernl' is not", 12, " in create_delegate_"),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


@pytest.mark.parametrize("runtime", ["delegraph", "litert", "litert2"])
@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_ends_with_file_line_and_function(file: Path, name: str, runtime: str) -> None:
    if runtime != "delegraph":
        pytest.importorskip("ai_edge_litert")
    right, wrong, words, line, function = MISTAKES[name]
    file.write_text(CODE.replace(right, wrong))
    options = ["run", SINES, "--input", "x=2", "--delegate-file", "mine.py", "--runtime", runtime]
    ran = run_command(*options)
    last = ran.err.splitlines()[-1]
    assert words in last
    assert f"; at mine.py:{line}{function}" in last
    assert last.endswith(" (--traceback shows more)")
    assert "site-packages" not in last


def test_the_delegate_is_named_in_every_runtime(file: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    file.write_text(CODE.replace('registration.name == "SIN"', "None"))
    options = ["run", SINES, "--delegate-file", "mine.py", "--runtime"]
    said = "asked about node 0 (SIN): its answer is None, not a bool or a Rejection"
    assert f"error: delegate 'mine' failed in claim: {said}" in run_command(*options, "litert").err
    assert "error: delegate 'mine' could not be applied" in run_command(*options, "delegraph").err


def test_json_has_the_place_and_no_hint(file: Path) -> None:
    file.write_text(CODE.replace("abs(x.data)", "1 / 0"))
    ran = run_command("run", SINES, "--input", "x=2", "--delegate-file", "mine.py", "--json")
    assert "; at mine.py:20 in compute (" in ran.err


def test_a_model_that_a_delegate_refuses_on_purpose_has_no_line_of_code(file: Path) -> None:
    error = "(_ for _ in ()).throw(errors.OperatorError('another model is wanted'))"
    file.write_text("from delegraph import errors\n" + CODE.replace("abs(x.data)", error))
    ran = run_command("run", SINES, "--input", "x=2", "--delegate-file", "mine.py")
    assert "another model is wanted" in ran.err
    assert "mine.py:" not in ran.err


def test_the_home_folder_is_shortened(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(CODE.replace("abs(x.data)", "1 / 0"))
    monkeypatch.setenv("HOME", str(file.parent))
    (file.parent / "elsewhere").mkdir()
    monkeypatch.chdir(file.parent / "elsewhere")
    ran = run_command("run", SINES, "--input", "x=2", "--delegate-file", "../mine.py")
    assert "; at ~/mine.py:20 in compute (" in ran.err


def test_a_line_is_named_once(file: Path) -> None:
    file.write_text("\nimport nothing_of_this_name\n")
    ran = run_command("run", SINES, "--delegate-file", "mine.py")
    assert "'mine.py', line 2: ModuleNotFoundError" in ran.err
    assert "; at mine.py" not in ran.err
