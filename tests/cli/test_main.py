from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from delegraph.cli import _ELSEWHERE, COMMANDS, SECTIONS, CommandGroup, main
from delegraph.cli import delegraph as root
from delegraph.cli.exit_codes import exit_code_of
from delegraph.errors import (
    ArgumentError,
    DelegateError,
    MalformedModelError,
    NodeError,
    PluginOptionError,
    UnknownDelegateError,
)
from delegraph.plugins import installed
from delegraph.testing import command, graph_model
from support.command import Command, Refused
from support.fake_distributions import write_plugin

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"

SINES = DIGITS.with_name("sines.tflite")

BASH = shutil.which("bash")
FOLDER = Path(sys.executable).parent

COMPLETE = """\
eval "$(_DELEGRAPH_COMPLETE=bash_source delegraph)"
compopt() { [[ $2 == nospace ]] || FILES=1; }
COMP_WORDS=(delegraph "$@")
COMP_CWORD=$#
_delegraph_completion delegraph
printf '%s\\n' "${COMPREPLY[@]}" ${FILES:+files}
"""


def finished(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a process that ends well; return what it printed."""
    command, env = [str(word) for word in words], os.environ | variables
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True)


def test_help_lists_commands_and_exit_codes(delegraph: Command) -> None:
    ran = delegraph("--help")
    assert ran.code == 0
    for start in (
        *SECTIONS,
        *COMMANDS,
        "0 all is well",
        "1 a check",
        "2 usage",
        "3 plugin trouble",
    ):
        assert any(line.startswith(start) for line in ran.lines), start


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_takes_traceback(delegraph: Command, name: str) -> None:
    ran = delegraph(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "--traceback" in ran.out


def every_command(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that is no group, with those of the plugins."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    names = command.list_commands(context)
    if command is root:
        names = [*names, *installed().commands()]
    for name in names:
        found = command.get_command(context, name)
        assert found is not None
        yield from every_command(found, (*path, name))


def test_every_command_has_json_for_errors_too(delegraph: Command) -> None:
    found = list(every_command(root))
    assert {("run",), ("doctor",), ("new",), ("plugins", "list")} <= set(found)
    for words in found:
        ran = delegraph(*words, "--help")
        assert "--json" in ran.out, words
        assert delegraph(*words, "--jsno", "--json").json["error"]["exit_code"] == 2


@pytest.mark.parametrize("words", ["--help", "plugins list", "inspect no.tflite --json"])
def test_a_fork_prints_what_a_new_process_prints(fresh_delegraph: Command, words: str) -> None:
    forked = fresh_delegraph(*words.split())
    assert forked == fresh_delegraph(*words.split(), PYTHONUNBUFFERED="1")


def test_help_fits_80_columns_and_is_not_cut_off(fresh_delegraph: Command) -> None:
    for group in ((), ("plugins",), ("evaluate",), *((name,) for name in installed().commands())):
        shown = fresh_delegraph(*group, "--help", COLUMNS="80").out
        assert "..." not in shown.replace("[ARGS]...", ""), group
        assert max(map(len, shown.splitlines())) <= 80, group


def test_version_names_the_plugins_and_imports_none(
    fresh_delegraph: Command, tmp_path: Path
) -> None:
    write_plugin(tmp_path / "site", "boom", "raise SystemExit(9)")
    ran = fresh_delegraph("--version")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0].startswith("delegraph 0.")
    assert "fake-boom 1.0 (plugin boom)" in ran.lines
    ran = fresh_delegraph("--version", DELEGRAPH_DISABLE_PLUGINS="boom")
    assert "fake-boom 1.0 (plugin boom, disabled)" in ran.lines


def test_python_m_runs_the_command() -> None:
    done = finished(sys.executable, "-m", "delegraph", "--version")
    assert done.stdout.startswith("delegraph 0.")


@pytest.mark.parametrize("group", [(), ("plugins",), ("tools",)])
def test_a_group_without_a_subcommand_shows_its_help(
    delegraph: Command, monkeypatch: pytest.MonkeyPatch, group: tuple[str, ...]
) -> None:
    @click.group()
    def tools() -> None:
        """Do things, as the command of a plugin."""

    if group == ("tools",):
        monkeypatch.setattr(CommandGroup, "get_command", lambda *_: tools)
    ran = delegraph(*group)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(" ".join(("Usage: delegraph", *group)))
    assert len(ran.err.splitlines()) > 5


@pytest.mark.parametrize("word", sorted(_ELSEWHERE))
def test_a_command_of_other_tools_leads_to_one_that_exists(delegraph: Command, word: str) -> None:
    assert f"no command {word!r}: 'delegraph {_ELSEWHERE[word]}' does that" in delegraph(word).err
    words = _ELSEWHERE[word].split()
    assert delegraph(*words, *["--help"] * (words != ["--version"])).code == 0


@pytest.mark.parametrize("words", [("explain",), ("plugins", "list")])
def test_help_before_a_command_shows_its_help(delegraph: Command, words: tuple[str, ...]) -> None:
    ran = delegraph("help", *words)
    assert (ran.code, ran.out) == (0, delegraph(*words, "--help").out)
    assert "no command 'nosuch'" in delegraph("help", "nosuch").err


@pytest.mark.parametrize(
    ("words", "type", "code"),
    [
        (["ruin"], "UsageError", 2),
        (["inspect"], "UsageError", 2),
        (["plugins"], "UsageError", 2),
        (["inspect", __file__], "MalformedModelError", 1),
        (["run", __file__], "MalformedModelError", 1),
        (["memory", __file__], "MalformedModelError", 1),
        (["explain", DIGITS, "-d", "nosuch"], "UnknownDelegateError", 3),
        (["plugins", "info", "nosuch"], "UnknownDelegateError", 3),
        (["run", DIGITS, "--input", "gone=1"], "ArgumentError", 2),
    ],
)
def test_errors_have_one_shape_in_json(
    delegraph: Command, words: list[object], type: str, code: int
) -> None:
    ran = delegraph(*words, "--json")
    assert ran.code == code
    error = ran.json.pop("error")
    assert ran.json.keys() == {"error"}
    assert (error["type"], error["exit_code"]) == (type, code)
    assert ran.err == f"error: {error['message']}\n"


def test_a_failed_check_stands_beside_the_answer_in_json(delegraph: Command) -> None:
    ran = delegraph("memory", DIGITS, "--planner", "best", "--budget", "1K", "--json")
    assert (ran.code, ran.json["needed"]) == (1, 3072)
    message = "over budget: 3,072 bytes needed, 1,024 allowed (core alone, planner best)"
    assert ran.json["error"] == {"type": "CheckFailed", "message": message, "exit_code": 1}


@pytest.mark.parametrize("command", [("inspect",), ("run",), ("explain", "-d", "x")])
def test_a_damaged_model_exits_with_1(
    refused: Refused, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "damaged.tflite"
    path.write_bytes(b"\x1c\0\0\0TFL3" + b"\xff" * 40)
    assert refused(*command, path, code=1).startswith("error: ")


HOSTILE = "a\x1b]0;b\x07\x9b2J\x7f\u202ec"


@pytest.mark.parametrize(
    "words",
    [
        ["inspect"],
        ["inspect", "--json"],
        ["explain"],
        ["explain", "--json", "--traceback"],
        ["run"],
        ["run", "--json"],
        ["memory"],
        ["memory", "--json"],
        ["memory", "--micro", "--traceback"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("op", ["SIN", HOSTILE], ids=["runs", "fails"])
def test_nothing_in_a_file_steers_the_terminal(
    delegraph: Command, tmp_path: Path, words: list[str], op: str
) -> None:
    path = tmp_path / "hostile.tflite"
    nodes = [("SIN", "x", f"m{HOSTILE}"), (op, f"m{HOSTILE}", f"y{HOSTILE}")]
    path.write_bytes(graph_model(nodes, inputs="x", outputs=f"y{HOSTILE}"))
    ran = delegraph(*words, path)
    printed = ran.out + ran.err
    assert [c for c in printed if not c.isprintable() and c != "\n"] == []
    assert "2J" in printed or (words[0] == "explain" and op == "SIN")  # it needs a delegate
    if words == ["inspect", "--json"]:
        assert ran.json["subgraphs"][0]["outputs"][0]["name"] == f"y{HOSTILE}"


def test_a_folder_and_another_format_are_named(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00" * 4)
    err = refused("run", tmp_path)
    assert "it is a SavedModel, no TFLite model: convert it: delegraph flex convert" in err
    err = refused("inspect", tmp_path / "saved_model.pb", code=1)
    assert "it is a SavedModel (saved_model.pb), no TFLite model" in err
    assert "download it again" not in err


def test_traceback_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "damaged.tflite"
    path.write_bytes(b"nothing")
    for words in (["inspect", "--traceback", path], ["--traceback", "inspect", path]):
        done = subprocess.run(
            [sys.executable, "-m", "delegraph", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.startswith("Traceback (most recent call last)")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownDelegateError("x"), 3),
        (PluginOptionError("x"), 2),
        (DelegateError("x"), 3),
        (ArgumentError("x"), 2),
        (MalformedModelError("x"), 1),
        (NodeError("x", node_index=0, op="ADD"), 1),
        (ZeroDivisionError(), None),
    ],
)
def test_an_error_has_its_exit_code(error: Exception, code: int | None) -> None:
    assert exit_code_of(error) == code


def test_an_unexpected_error_is_one_line_that_names_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def broken() -> None:
        raise ZeroDivisionError("by zero\nindeed.\n  Yes")

    monkeypatch.setattr(CommandGroup, "get_command", lambda *_: broken)
    assert main(["run"]) == 1
    assert capsys.readouterr().err == (
        "error: unexpected ZeroDivisionError: by zero; indeed. Yes (--traceback shows where; "
        "for a report of this fault: delegraph doctor --report FILE.md)\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
@pytest.mark.parametrize(
    "words", [["inspect", DIGITS], ["inspect", DIGITS, "--json"], ["memory", DIGITS]]
)
def test_a_reader_that_leaves_ends_the_command_without_a_word(words: list[object]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "delegraph", *map(str, words)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["inspect", DIGITS], ["memory", DIGITS], ["--version"]])
def test_output_that_cannot_be_written_is_no_fault(words: list[object], unbuffered: str) -> None:
    command = [sys.executable, "-m", "delegraph", *map(str, words)]
    env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env
        )
    assert done.returncode == 1
    assert re.fullmatch(
        r"error: .*output cannot be written: No space left on device\n", done.stderr
    )


def test_ctrl_c_exits_with_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(root, "invoke", interrupt)
    assert main(["run", __file__]) == 130
    assert "error: interrupted" in capsys.readouterr().err


def loaded_by(words: list[str], packages: str) -> str:
    """What of *packages*, a regular expression, a fresh process imports for a command line."""
    code = (
        f"import re, sys; from delegraph.cli import main; main({words})\n"
        f"print('loaded:', *(m for m in sys.modules if re.match({packages!r}, m)))"
    )
    return finished(sys.executable, "-c", code).stdout.splitlines()[-1]


def test_help_imports_neither_numpy_nor_rich() -> None:
    assert loaded_by(["--help"], r"(numpy|rich|PIL)\b") == "loaded:"


def test_help_of_a_command_imports_no_plugins_either() -> None:
    packages = r"(numpy|rich|PIL|importlib_metadata|delegraph_\w+)\b"
    assert loaded_by(["run", "--help"], packages) == "loaded:"


def test_output_into_a_pipe_has_neither_colour_nor_trailing_blanks(sines: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    for words in (["inspect", sines], ["explain", sines, "-d", "sin"], ["plugins", "list"]):
        done = subprocess.run(
            [sys.executable, "-m", "delegraph", *words],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        assert "\x1b" not in done.stdout
        assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.skipif(not (FOLDER / "delegraph").exists(), reason="delegraph is not installed here")
@pytest.mark.repetition(3)  # each is a process
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["insp"], {"inspect"}),
        (["plugins", "d"], {"doctor"}),
        (["explain", "--partition-policy", ""], {"largest", "measured"}),
        (["run", "--sign"], {"--signature"}),
        (["run", "mod"], {"files"}),
        (["run", "m.tflite", "--delegate", "add"], {"add_sub"}),
        (["run", "m.tflite", "--delegate", "no"], {"none"}),
        (["plugins", "info", "si"], {"sin"}),
        (["evaluate", "class"], {"classification"}),
        (["evaluate", "no-task", "--a"], {""}),
        (["evaluate", "custom", "--met"], {"--metric"}),
        (["fle"], {"flex"}),
        (["test", "numb"], {"numba_cpu"}),
        (["compile", "m.tflite", "-d", ""], {"numba_cpu", "edgetpu"}),
        (["compile", "m.tflite", "-d", "si"], {""}),
        (["compile", "m.tflite", "-d", "numba_cpu", "--cpu", "avx2,ne"], {"avx2,neon"}),
        (["nothing-starts-so"], {""}),
        (["run", "m.tflite", "-d", "add_sub", ":", "min"], {"min_nodes="}),
        (["run", "m.tflite", "-d", "add_sub", ":"], {"min_nodes="}),
        (["run", "m.tflite", "--delegate", "=", "add"], {"add_sub"}),
        (["run", "m.tflite", "-d", "numba_cpu", ":", "exact", "=", "t"], {"true"}),
        (["run", DIGITS, "--sig", ""], {""}),
        (["run", DIGITS, "--signature", ""], {"serving_default"}),
        (["run", DIGITS, "--input", ""], {"image=", "files"}),
        (["diff", DIGITS, "--tolerance", ""], {"digit="}),
        (["predict", DIGITS, "rows.csv", "--output-column", ""], {"digit="}),
        (["run", "gone.tflite", "--signature", ""], {""}),
        (["run", __file__, "--signature", ""], {""}),
        (["run", "gone.tflite", "--input", "x"], {"files"}),
        (["run", DIGITS, "--save", "x"], {"files"}),
        (["cache", "warm", "docs/d"], {"files"}),
        (["edgetpu", "compile", "docs/d"], {"files"}),
        (["flex", "convert", "docs/d"], {"files"}),
        (["flex", "flexify", SINES, "--node", "S"], {"SIN"}),
        (["memory", DIGITS, "--planner", "greedy_by_s"], {"greedy_by_size"}),
        (["test-operators", "core", "--operator", "CONV_"], {"CONV_2D", "CONV_3D"}),
        (["test-operators", "sin", "--operator", "S"], {"SIN\n"}),
        (["test-operators", "co"], {"core", "files"}),
        (["test", "./min"], {"files"}),
        (["edgetpu", "compile", DIGITS, "-i", "digits_1/pool_1"], {"digits_1/pool_1/MaxPool2d"}),
    ],
)
def test_bash_completes(words: list[object], expected: set[str]) -> None:
    plugins = installed()
    known = {offer.spec.name for offer in plugins.offers()} | set(plugins.commands())
    if (
        not {*map(str, words), *expected} & {"add_sub", "sin", "flex", "numba_cpu", "edgetpu"}
        <= known
    ):
        pytest.skip("a plugin is not installed")
    path = f"{FOLDER}{os.pathsep}{os.environ['PATH']}"
    done = finished(BASH, "--norc", "-c", COMPLETE, "bash", *words, PATH=path)
    assert done.stderr == ""
    answers = done.stdout.split("\n")
    assert expected <= {*answers, done.stdout}  # or nothing else


def test_nothing_follows_the_name_of_an_output() -> None:
    shell = ShellComplete(root, {}, "delegraph", "_DELEGRAPH_COMPLETE")
    words = ["diff", str(DIGITS), "--tolerance"]
    assert [item.value for item in shell.get_completions(words, "d")] == ["digit="]
    assert shell.get_completions(words, "digit=") == []


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.skipif(not (FOLDER / "delegraph").exists(), reason="delegraph is not installed here")
def test_the_help_says_how_bash_completes(delegraph: Command) -> None:
    lines = delegraph("--help").lines
    (line,) = (line for line in lines if line.startswith("bash "))
    shown = f"{line.removeprefix('bash ')}; complete -p delegraph"
    path = f"{FOLDER}{os.pathsep}{os.environ['PATH']}"
    done = finished(BASH, "--norc", "-c", shown, PATH=path)
    assert done.stdout.endswith(" delegraph\n")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_the_same(shell: str) -> None:
    words = f"delegraph run {DIGITS} --signature "
    given = {"COMP_WORDS": words, "COMP_CWORD": "4" if shell == "zsh" else ""}
    code = "import sys; sys.argv[0] = 'delegraph'; from delegraph.cli import main; sys.exit(main())"
    given["_DELEGRAPH_COMPLETE"] = f"{shell}_complete"
    done = finished(sys.executable, "-c", code, **given)
    assert "serving_default" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ("run", "-i", "2"),
        ("inspect",),
        ("explain", "-d", "sin"),
        ("memory",),
        ("benchmark", "--runs", "1", "--min-seconds", "0", "--warmup-seconds", "0"),
    ],
    ids=lambda words: words[0],
)
def test_titles_leave_folders_out_of_long_paths(
    delegraph: Command,
    sines: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr(command, "WIDTH", 60)
    model = tmp_path / ("long" * 20) / "sines.tflite"
    model.parent.mkdir()
    shutil.copyfile(sines, model)
    lines = delegraph(words[0], model, *words[1:]).out.splitlines()
    title = next(line for line in lines if line.startswith(str(model)[:9]))
    assert "..." in title
    assert title.endswith("long/sines.tflite")
    assert len(title) <= 60
