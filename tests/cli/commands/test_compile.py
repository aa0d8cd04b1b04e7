"""``delegraph compile``, and what other commands say of the files it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph import SimpleDelegateInterface
from delegraph.schema.options import GatherOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from support import keeping_plugin
from support.by_name import sines
from support.command import Command, Refused
from support.compiling_plugin import change_compiler, install_compiler, uninstall_compiler
from support.keeping_plugin import install_keeping


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, and delegate engine for it, which leaves SIN."""
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    path = tmp_path / "model.tflite"
    path.write_bytes(sines())
    return path


@pytest.fixture
def compiled(model: Path, delegraph: Command) -> Path:
    out = model.with_name("out.tflite")
    assert delegraph("compile", model, "-d", "engine:level=2", "-o", out).code == 0
    return out


def test_it_says_what_was_compiled_and_what_was_left(model: Path, delegraph: Command) -> None:
    out = model.with_name("out.tflite")
    result = delegraph("compile", model, "-d", "engine:level=2", "-o", out)
    assert result.code == 0
    assert any("2 partitions compiled in " in line for line in result.lines)
    assert any("engine:level=2 fake-engine 1.0 1.0 2 " in line for line in result.lines)
    assert any("SIN x2 op 0, 3" in line for line in result.lines)
    assert out.is_file()


def test_a_note_of_a_compiling_delegate_is_printed(
    model: Path, delegraph: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimpleDelegateInterface, "note", lambda delegate: "for tests only")
    words = "compile", model, "-d", "engine", "--dry-run"
    assert delegraph(*words).lines.count("engine: for tests only") == 1
    assert delegraph(*words, "--json").json["notes"] == {"engine": "for tests only"}


def test_json_has_all_of_it(model: Path, delegraph: Command) -> None:
    out = model.with_name("out.tflite")
    answer = delegraph("compile", model, "-d", "engine", "-o", out, "--json").json
    assert answer["output"] == str(out)
    assert answer["bytes"] == out.stat().st_size
    first, second = answer["compiled"]
    assert (first["delegate"], first["operators"]) == ("engine", {"ADD": 1, "MUL": 1})
    assert (second["distribution"], second["version"]) == ("fake-engine", "1.0")
    assert [stage["delegate"] for stage in answer["stages"]] == [None, "engine"] * 2


def test_nothing_compiled_is_exit_1_and_no_file(model: Path, delegraph: Command) -> None:
    out = model.with_name("out.tflite")
    result = delegraph("compile", model, "-d", "engine:least=9", "-o", out)
    assert (result.code, out.exists()) == (1, False)
    assert "nothing of model.tflite was compiled" in result.err
    assert any("it has too few nodes" in line for line in result.lines)


def test_what_will_be_inside_is_shown_before_it_is_written(model: Path, delegraph: Command) -> None:
    out = model.with_name("out.tflite")
    words = ("compile", model, "-d", "engine")
    shown = delegraph(*words, "--dry-run")
    assert shown.code == 0
    assert "Compiled" in shown.lines
    assert shown.lines[-1] == "dry run: nothing is written"
    assert delegraph(*words, "-o", out, "--dry-run", "--json").json["output"] is None
    assert not out.exists()
    written = delegraph(*words, "-o", out)
    assert written.lines.index("Compiled") < written.lines.index(f"written to {out}")


def test_the_written_file_is_run_and_compared(model: Path, delegraph: Command) -> None:
    words = ("compile", model, "-d", "engine", "-o", model.with_name("out.tflite"))
    ran = delegraph(*words)
    assert "run once on random inputs: all outputs equal those of model.tflite" in ran.lines
    assert delegraph(*words, "--json").json["check"]["is_equal"] is True
    assert "run once" not in delegraph(*words, "--no-check").out


@pytest.mark.parametrize(
    ("computed", "code", "told"),
    [
        ("values + 1e-3", 0, "output y differs from that of model.tflite by 0.00"),
        (
            "values * np.nan",
            1,
            "computes other outputs than model.tflite: output 'y': nan in place",
        ),
        ("missing", 1, "computes other outputs than model.tflite: "),
    ],
)
def test_a_file_that_computes_something_else_is_told(
    model: Path,
    delegraph: Command,
    monkeypatch: pytest.MonkeyPatch,
    computed: str,
    code: int,
    told: str,
) -> None:
    change_compiler(
        model.parent,
        monkeypatch,
        'data[...] = self.engine.get_tensor(detail["index"])',
        f'data[...] = (lambda np, values: {computed})(__import__("numpy"), '
        'self.engine.get_tensor(detail["index"]))',
    )
    out = model.with_name("out.tflite")
    ran = delegraph("compile", model, "-d", "engine", "-o", out)
    assert ran.code == code
    assert told in ran.out + ran.err
    assert out.exists()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (1, "not compared, as model.tflite itself does not run on random inputs: "),
        (2, "run once on random inputs: all outputs equal"),
    ],
)
def test_a_model_is_compared_if_it_runs_on_random_inputs_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command, rows: int, told: str
) -> None:
    install_compiler(tmp_path, monkeypatch, left=("GATHER",))
    table = constant(np.zeros((rows, 2), np.float32))
    tensors = {"x": tensor((9,), "INT32"), "table": table, "z": tensor((9, 2)), "y": tensor((9, 2))}
    nodes = [("GATHER", "table x", "z", GatherOptions()), ("ABS", "z", "y", None)]
    path = tmp_path / "model.tflite"
    path.write_bytes(graph_model(nodes, inputs="x", outputs="y", tensors=tensors))
    ran = delegraph("compile", path, "-d", "engine", "-o", tmp_path / "out.tflite")
    assert ran.code == 0
    assert any(line.startswith(told) for line in ran.lines)


def test_a_delegate_that_cannot_says_what_else_there_is(
    model: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_compiler(model.parent, monkeypatch, "def delegraph_compilers", "def _unused")
    change_compiler(model.parent, monkeypatch, "@hookimpl\ndef _unused", "def _unused")
    err = refused("compile", model, "-d", "engine", code=3)  # a missing -o matters less
    assert "delegate 'engine' cannot be compiled ahead of time: plugin " in err
    assert "offers no compiler for it. Instead it is applied when the model is loaded" in err
    assert "Those that compile into the file: " in err


def test_help_lists_delegates_that_compile_and_names_the_others(
    model: Path, delegraph: Command
) -> None:
    ran = delegraph("compile", "-d", "help")
    assert ran.code == 0
    named = [line.split()[1] for line in ran.lines if line.startswith("Delegate ")]
    assert "engine" in named
    assert "sin" not in named
    others = " ".join(ran.lines).partition("applied when a model is loaded: ")[2].split(", ")
    assert "sin" in others
    assert "sin' cannot be compiled" in delegraph("compile", "-d", "sin:help").err


def test_an_unknown_delegate_has_no_advice_for_python(model: Path, delegraph: Command) -> None:
    ran = delegraph("compile", model, "-d", "nothing-like-it", "--dry-run")
    assert "delegate 'nothing-like-it'; pip installs delegates; available: " in ran.err
    assert "MyDelegate" not in ran.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-d", "all", "-o", "out.tflite"), 2, "--delegate all: name the delegates to compile"),
        (("-d", "./my.so", "-o", "out.tflite"), 2, "in a file is applied when the model is loaded"),
        (("-d", "engine"), 2, "Missing option '-o'"),
        (("-d", "engine:speed=1", "-o", "out.tflite"), 2, "has no option 'speed'"),
        (("-d", "engine", "-o", "out.tflite", "--require", "full"), 1, "SIN"),
    ],
)
def test_wrong_words_have_their_exit_codes(
    model: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(model.parent)
    assert message in refused("compile", model, *words, code=code)
    assert not (model.parent / "out.tflite").exists()


def test_inspect_tells_of_compiled_partitions(
    compiled: Path, delegraph: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = delegraph("inspect", compiled).lines
    assert "delegraph-compiled runs with fake-engine" in lines
    assert "compiled for delegate engine:level=2, by fake-engine 1.0" in lines
    assert "nodes 2: ADD, MUL" in lines
    assert "runs yes" in lines
    install_compiler(compiled.parent, monkeypatch, release="1.1")
    lines = delegraph("inspect", compiled).lines
    assert "delegraph-compiled runs with: pip install fake-engine" in lines
    assert any(line.startswith("runs no: it was compiled by fake-engine 1.0 as") for line in lines)


@pytest.mark.parametrize("runtime", ["delegraph", "litert", "litert2"])
def test_explain_and_run_name_the_package_that_is_missing(
    compiled: Path, delegraph: Command, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    pytest.importorskip("ai_edge_litert")
    lines = delegraph("explain", compiled, "--runtime", runtime).lines
    assert "(3 nodes compiled by fake-engine 1.0)" in " ".join(lines[1:3])
    assert delegraph("run", compiled, "--runtime", runtime).code == 0
    uninstall_compiler(compiled.parent, monkeypatch)
    explained = delegraph("explain", compiled, "--runtime", runtime)
    assert explained.code == 0
    told = " ".join(explained.out.split())
    for text in (told, delegraph("run", compiled, "--runtime", runtime).err.rstrip()):
        assert "whose delegate 'engine' is not installed: pip install" in text
        assert "'fake-engine==1.0'" in text


@pytest.mark.parametrize("command", ["memory", "benchmark", "report"])
def test_other_commands_take_a_compiled_file(
    compiled: Path, delegraph: Command, command: str
) -> None:
    page = compiled.with_name("page.html")
    words = {"report": ["-o", page], "benchmark": ["--runs", "1", "--min-seconds", "0"]}
    result = delegraph(command, compiled, *words.get(command, []))
    assert result.code == 0, result.err
    if command == "report":
        assert '"compiled for":"delegate engine:level=2, by fake-engine 1.0"' in page.read_text()


def test_a_compiled_file_is_compared_with_its_source(
    model: Path, compiled: Path, delegraph: Command, refused: Refused
) -> None:
    assert delegraph("diff", compiled, "--reference", str(model)).code == 0
    assert "the file's own delegates are switched off" in refused("diff", compiled, code=1)


def test_what_a_delegate_keeps_is_listed_by_level_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command, refused: Refused
) -> None:
    install_keeping(tmp_path, monkeypatch)
    model, out = tmp_path / "model.tflite", tmp_path / "out.tflite"
    model.write_bytes(sines())
    words = ("compile", model, "-d", "keeping", "-o", out, "--cpu", "one,two", "--threads", "1,4")
    result = delegraph(*words)
    assert result.code == 0
    assert "run once on random inputs: all outputs equal those of model.tflite" in result.lines
    assert any("keeping:cpu=two" in line and "1 2 6" in line for line in result.lines)
    answer = delegraph(*words, "--json").json
    assert [each["threads"] for each in answer["kept"]] == [1, 4, 1, 4]
    assert {each["is_used_here"] for each in answer["kept"]} == {False}
    told = "keeping is not applied here unless --delegate names it"
    assert {each["why"] for each in answer["kept"]} == {told}
    assert answer["bytes"] == out.stat().st_size
    assert delegraph("inspect", out, "--json").json["kept"] == {"keeping": 12}
    shown = delegraph("inspect", out).lines
    assert "Kept by delegates, after the model" in shown
    assert any(line.startswith("keeping:cpu=two fake-keeping") for line in shown)
    err = refused("compile", model, "-d", "keeping", "-o", out, "--threads", "0")
    assert "0 is out of range" in err


def test_a_delegate_that_keeps_nothing_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    install_keeping(tmp_path, monkeypatch)
    model, out = tmp_path / "model.tflite", tmp_path / "out.tflite"
    model.write_bytes(one_op_model("ABS", [tensor((4,))], [tensor((4,))]))
    result = delegraph("compile", model, "-d", "keeping", "-o", out)
    assert (result.code, out.exists()) == (1, False)


def test_nodes_that_need_no_program_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    source = keeping_plugin.SOURCE.replace("entries.keep(VERSION, key, self.decision)", "pass")
    monkeypatch.setattr(keeping_plugin, "SOURCE", source)
    install_keeping(tmp_path, monkeypatch)
    install_compiler(tmp_path, monkeypatch)
    model = tmp_path / "model.tflite"
    model.write_bytes(sines())
    result = delegraph("compile", model, "-d", "keeping", "-o", tmp_path / "out.tflite")
    told = "need no program made beforehand"
    assert f"the nodes that keeping takes {told}: the model starts as fast without" in result.err
    result = delegraph("compile", model, "-d", "keeping", "-d", "engine", "--dry-run")
    assert f"keeping: nothing kept; the 2 nodes that it takes {told}" in result.lines


def test_delegates_take_nodes_in_the_order_in_which_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    source = keeping_plugin.SOURCE.replace('"sines", load,', '"sines", lambda: 1 / 0,')
    monkeypatch.setattr(keeping_plugin, "SOURCE", source)  # as for another processor
    install_keeping(tmp_path, monkeypatch)
    install_compiler(tmp_path, monkeypatch)
    model = tmp_path / "model.tflite"
    model.write_bytes(sines())
    words = ("compile", model, "-d", "keeping", "-d", "engine", "-o", tmp_path / "out.tflite")
    answer = delegraph(*words, "--json").json
    assert answer["check"]["is_equal"]
    assert [each["entries"] for each in answer["kept"]] == [2]
    assert all("SIN" not in each["operators"] for each in answer["compiled"])
    assert "nothing kept" not in delegraph(*words).out
    after = delegraph("compile", model, "-d", "engine", "-d", "keeping", "--dry-run")
    told = "keeping: nothing kept; it takes no node that engine (5 nodes) leaves"
    assert told in after.lines


def test_levels_that_cannot_run_here_are_not_said_to_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    refuse = "from delegraph.errors import DelegateError\n"
    source = keeping_plugin.SOURCE.replace("VERSION =", f"{refuse}\n\nVERSION =").replace(
        "        self.options = options\n\n    def name",
        "        self.options = options\n        if options.cpu == 'far' and self.runs:\n"
        "            raise DelegateError('cpu=far: not here')\n\n    def name",
    )
    source = source.replace(
        "def __init__(self, options)", "runs = True\n\n    def __init__(self, options)", 1
    )
    source = source.replace("load_compiling=load)", "load_compiling=lambda: Far)").replace(
        "@hookimpl", "class Far(KeepingDelegate):\n    runs = False\n\n\n@hookimpl"
    )
    monkeypatch.setattr(keeping_plugin, "SOURCE", source)
    install_keeping(tmp_path, monkeypatch)
    model, out = tmp_path / "model.tflite", tmp_path / "out.tflite"
    model.write_bytes(sines())
    words = ("compile", model, "-d", "keeping", "-o", out, "--cpu")
    alone = delegraph(*words, "far")
    assert alone.code == 0
    told = "not checked: no program in it is for this processor; keeping:cpu=far cannot run"
    assert any(line.startswith(told) for line in alone.lines)
    assert delegraph(*words, "far", "--json").json["check"]["is_equal"] is None
    both = delegraph(*words, "far,here")
    assert "run once on random inputs: all outputs equal those of model.tflite" in both.lines
    assert "not checked: keeping:cpu=far cannot run on this processor" in both.lines


def test_the_written_file_runs_on_the_entries_that_are_used_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    """Kernels of other levels may have to be compiled first, for a minute."""
    lines = "    def eval(self, context, node):\n"
    wrong = f"{lines}        assert self.options.cpu == 'here'\n"
    monkeypatch.setattr(keeping_plugin, "SOURCE", keeping_plugin.SOURCE.replace(lines, wrong))
    install_keeping(tmp_path, monkeypatch)
    monkeypatch.setenv("DELEGRAPH_DEFAULT_DELEGATES", "keeping")
    model = tmp_path / "model.tflite"
    model.write_bytes(sines())
    words = ("compile", model, "-d", "keeping", "-o", tmp_path / "out.tflite", "--threads", "1,2")
    ran = delegraph(*words, "--cpu", "other,here")
    assert (ran.code, ran.err) == (0, "")
    assert "run once on random inputs: all outputs equal those of model.tflite" in ran.lines


def test_entries_that_a_new_plan_loses_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    install_keeping(tmp_path, monkeypatch)
    install_compiler(tmp_path, monkeypatch)
    model, kept = tmp_path / "model.tflite", tmp_path / "kept.tflite"
    model.write_bytes(sines())
    assert delegraph("compile", model, "-d", "keeping", "-o", kept).code == 0
    ran = delegraph("compile", kept, "-d", "engine", "--dry-run")
    assert any("B that delegates kept in kept.tflite are not in the new" in x for x in ran.lines)
    words = ("compile", kept, "-d", "engine", "--dry-run", "--json")
    assert delegraph(*words).json["dropped_bytes"] > 0


def test_reasons_of_a_compiling_delegate_stand_beside_a_keeping_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    install_keeping(tmp_path, monkeypatch)
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    model = tmp_path / "model.tflite"
    model.write_bytes(sines())
    words = ("compile", model, "-d", "engine", "-d", "keeping", "--dry-run")
    lines = delegraph(*words).lines
    assert any("SIN x2 op 0, 3 keeping" in line for line in lines)
    assert not any("not compiled ahead of time" in line for line in lines)


def test_what_is_not_compiled_names_no_delegate_that_was_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delegraph: Command
) -> None:
    install_keeping(tmp_path, monkeypatch)
    install_compiler(tmp_path, monkeypatch)
    model, compiled = tmp_path / "model.tflite", tmp_path / "compiled.tflite"
    model.write_bytes(sines())
    assert delegraph("compile", model, "-d", "engine", "-o", compiled).code == 0
    ran = delegraph("compile", compiled, "-d", "keeping", "--dry-run")
    assert ran.code == 1
    assert "was compiled: keeping takes no node that engine leaves" in ran.err
