"""``--runtime litert`` and ``litert2``: the same commands in the official runtimes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph.plugins.sources import pip_install
from support.command import Command, Refused
from support.pictured import colour_model, write_pictures

pytest.importorskip("ai_edge_litert")

FAILING = """
from support.by_name import ByName, ByNameKernel

class Kernel(ByNameKernel):
    def eval(self, context, node):
        raise OSError("device lost")

delegate = ByName("SIN", kernel=Kernel, name="failing")
"""


@pytest.fixture(params=["litert", "litert2"])
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_run_gives_the_same_outputs_in_all_runtimes(
    delegraph: Command, runtime: str, sines: Path
) -> None:
    words = ("run", sines, "-d", "sin", "-i", "2.0", "--json")
    ours = delegraph(*words).json
    theirs = delegraph(*words, "--runtime", runtime).json
    assert ours["outputs"] == theirs["outputs"]
    taken = [node["delegate"] for node in theirs["placement"]["nodes"]]
    assert taken[0] == taken[3] == "sin"
    assert theirs["incidents"] == []


def test_explain_shows_who_runs_what_there(delegraph: Command, runtime: str, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "sin", "--runtime", runtime)
    assert ran.code == 0
    start = ran.lines.index("In execution order")
    assert ran.lines[start + 2].startswith("0 sin 1 0 4 B 4 B SIN")
    rest = {line.split()[1] for line in ran.lines[start + 3 : start + 6]}
    assert rest <= {"sin", "XNNPACK", "LiteRT"}
    assert any("MUL takes only SIN" in line for line in ran.lines)


@pytest.mark.parametrize(
    "words", [("explain", "--partition-policy", "measured"), ("explain", "--lock", "lock.json")]
)
def test_what_only_delegraphs_interpreter_has_is_refused(
    refused: Refused, runtime: str, sines: Path, words: tuple[str, ...]
) -> None:
    command, option, *value = words
    err = refused(command, sines, "-d", "sin", "--runtime", runtime, option, *value)
    assert f"{option} needs --runtime delegraph" in err


def test_failing_delegates_fall_back_there(
    delegraph: Command, runtime: str, sines: Path, tmp_path: Path
) -> None:
    path = tmp_path / "failing.py"
    path.write_text(FAILING)
    words = ("run", sines, "-i", "2", "--delegate-file", path, "--runtime", runtime, "--json")
    failed = delegraph(*words)
    assert failed.code == failed.json["error"]["exit_code"] == 3
    told = "delegate 'failing' failed in eval: OSError: device lost"
    assert failed.json["error"]["message"] == told
    assert f"error: {told}" in failed.err
    ran = delegraph(*words, "--on-failure", "fallback")
    assert ran.code == 0
    assert "warning: delegate 'failing', node " in ran.err
    assert [incident["phase"] for incident in ran.json["incidents"]] == ["eval", "eval"]
    assert ran.json["outputs"][0]["first"] == pytest.approx([2.152495])
    ran = delegraph(*words, "--on-failure", "shadow")
    assert ran.code == 0
    assert ran.json["outputs"][0]["first"] == pytest.approx([2.152495])


def test_rules_and_require_hold_there(
    delegraph: Command, refused: Refused, runtime: str, sines: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'exclude'\nnodes = 3\ndelegate = 'sin'")
    words = (sines, "-d", "sin", "--runtime", runtime, "--no-default-delegates")
    ran = delegraph("run", *words, "--rules", rules, "--json")
    nodes = ran.json["placement"]["nodes"]
    assert [node["delegate"] for node in nodes] == ["sin", None, None, None, None]
    err = refused("run", *words, "--require", "full", code=1)
    assert "--require full: 3 nodes stay behind: ADD" in err


def test_a_rule_that_xnnpack_breaks_exits_with_1(
    refused: Refused, runtime: str, sines: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\naction = 'exclude'\noperators = 'ADD'")
    for command in ("run", "explain"):
        err = refused(command, sines, "-d", "sin", "--runtime", runtime, "--rules", rules, code=1)
        assert "XNNPACK has nodes that rules keep from it: node 1 (ADD): rule 1" in err


def test_numerics_choose_the_official_kernels(
    delegraph: Command, runtime: str, sines: Path
) -> None:
    words = ("run", sines, "-i", "0.5", "--runtime", runtime, "--numerics", "reference", "--json")
    shown = delegraph(*words).json
    assert {node["delegate"] for node in shown["placement"]["nodes"]} == {None}


# -- the other commands in CompiledModel -------------------------------------------------------


def test_benchmark_and_diff_in_compiled_model(delegraph: Command, sines: Path) -> None:
    words = (sines, "-d", "sin", "--runtime", "litert2")
    brief = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 1, "--warmup-seconds", 0)
    ran = delegraph("benchmark", *words, *brief, "--op-profile", "--json")
    assert ran.json["latency"]["count"] == 3
    found = delegraph("diff", *words, "--reference", "--runtime litert", "--runs", 2, "--json").json
    assert found["outputs"][0]["raw"]["max"]["max"] < 1e-6


def test_a_report_shows_partitions_of_compiled_model(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ("report", sines, "-d", "sin", "--runtime", "litert2", "--benchmark", "-o", page)
    ran = delegraph(*words, "--runs", 2, "--min-seconds", 0, "--warmup-runs", 1)
    assert ran.code == 0, ran.err
    assert "the rest: XNNPACK, by default" in page.read_text(encoding="utf-8")


def test_evaluate_and_predict_in_compiled_model(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.npz"
    np.savez(tmp_path / "rows.npz", x=np.float32([[0], [1], [2]]))
    words = ("predict", sines, tmp_path / "rows.npz", "-o", output, "-d", "sin", "--processes", 1)
    ran = delegraph(*words, "--runtime", "litert2")
    assert ran.code == 0, ran.err
    x = np.float32([0, 1, 2])
    with np.load(output) as answers:
        y = answers["y"].ravel()
    np.testing.assert_allclose(y, np.sin(x) + x + np.sin(2 * x), 1e-6)
    names = ["red", "green", "blue"]
    write_pictures(tmp_path / "pictures", names)
    (tmp_path / "names.txt").write_text("".join(f"{name}\n" for name in names))
    model = colour_model(tmp_path / "colours.tflite")
    words = ("evaluate", "classification", model, "--images", tmp_path / "pictures", "--json")
    files = ("--truth", tmp_path / "names.txt", "--labels", tmp_path / "names.txt")
    shown = delegraph(*words, *files, "--runtime", "litert2", "--against", "--runtime litert").json
    assert shown["setups"][1]["drop"]["top-1"]["drop"] == 0


def test_what_the_official_runtime_refuses_is_expected(
    refused: Refused, sines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ai_edge_litert import interpreter

    code = "def refuse(self, *given, **named):\n    raise ValueError('Tensor 3 is wrong. ' * 100)"
    exec(code, vars(interpreter))  # the error comes from that module, as those of its C++ do
    monkeypatch.setattr(interpreter.Interpreter, "__init__", vars(interpreter).pop("refuse"))
    err = refused("run", sines, "--runtime", "litert", code=1)
    assert err.startswith("error: the official runtime fails: Tensor 3 is wrong. Tensor 3")
    assert err.endswith("(--traceback shows all); --runtime delegraph may run it, or say more\n")
    assert len(err) < 500


def test_an_operator_that_the_official_runtime_lacks_names_what_has_it(
    delegraph: Command, custom: Path
) -> None:
    ran = delegraph("run", custom, "--runtime", "litert")
    lacking = "error: the official runtime has no kernel of FlexErf, and no delegate takes it: "
    assert (ran.code, ran.err.startswith(lacking)) == (1, True)
    assert pip_install("delegraph-flex") in ran.err
    ran = delegraph("explain", custom, "--runtime", "litert")
    assert any(line.startswith("FlexErf: pip install") for line in ran.lines)
