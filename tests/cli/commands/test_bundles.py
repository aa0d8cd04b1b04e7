"""Commands that are given a model inside a bundle."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.graph.loader import load_model
from delegraph.graph.model_files import bundle_at
from support.bundles import (
    FLOAT,
    GENERIC,
    HF_TOKENIZER,
    INT8,
    MODEL,
    facts,
    file_of,
    litertlm,
    zipped,
)
from support.by_name import sines as sines_model
from support.command import Command, Refused
from support.compiling_plugin import install_compiler
from support.external_buffers import with_external_buffers


@pytest.fixture
def task(tmp_path: Path) -> Path:
    inner = zipped({"int8": INT8, "float": FLOAT})
    return file_of(tmp_path, zipped({"inner.task": inner, "LABELS": b"a"}), "x.task")


@pytest.fixture
def lm(tmp_path: Path) -> Path:
    sections = [
        (MODEL, INT8, "tf_lite_embedder"),
        (HF_TOKENIZER, (9).to_bytes(8, "little") + b"packed", ""),
        (77, b"?", ""),
    ]
    content = litertlm(sections, system=facts(author="me\x1b[2J", something_new="x"))
    return file_of(tmp_path, content, "x.litertlm")


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "--runtime", "litert", "--no-default-delegates"],
        ["explain", "-d", "add_sub"],
        ["benchmark", "--runs", "2", "--min-seconds", "0"],
        ["memory", "--planner", "best"],
        ["inspect"],
    ],
)
def test_a_command_takes_a_section(delegraph: Command, task: Path, words: list[str]) -> None:
    if "litert" in words:
        pytest.importorskip("ai_edge_litert")
    address = f"{task}#inner.task#int8"
    ran = delegraph(words[0], address, *words[1:], "--json")
    assert (ran.code, ran.err) == (0, "")
    ran.json  # noqa: B018 - is JSON


def test_two_models_of_a_bundle_are_compared(delegraph: Command, task: Path, lm: Path) -> None:
    ran = delegraph("diff", f"{task}#inner.task#0", "--reference", f"{lm}#0", "--runs", "2")
    assert ran.code == 0
    assert "inf" in ran.out


def test_a_bundle_with_one_model_needs_no_section(delegraph: Command, lm: Path) -> None:
    assert delegraph("explain", lm, "-d", "add_sub", "--json").json["model"] == str(lm)


def test_a_report_is_of_a_section(delegraph: Command, task: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = delegraph("report", f"{task}#inner.task#int8", "-o", page)
    assert (ran.code, ran.err) == (0, "")
    assert page.is_file()


def test_several_models_are_listed(refused: Refused, task: Path) -> None:
    err = refused("run", task, code=1)
    assert "has 2 models, and FILE#SECTION chooses one: inner.task#int8, inner.task#flo" in err


@pytest.mark.parametrize(
    ("address", "code", "message"),
    [("missing.task#x", 2, "does not exist"), ("x.task#nothing", 1, "there is no section")],
)
def test_what_is_not_there_is_told(
    refused: Refused, task: Path, address: str, code: int, message: str
) -> None:
    assert message in refused("run", task.parent / address, code=code)


def test_inspect_shows_sections_and_all_facts(delegraph: Command, lm: Path) -> None:
    ran = delegraph("inspect", lm)
    assert ran.code == 0
    for line in (
        "author me\\x1b[2J",
        "something_new x",
        "0 tf_lite_embedder TFLiteModel 55.9 kB model_type=tf_lite_embedder",
        "1 - HF_Tokenizer_Zlib 9 B packed",
        "2 - type 77 1 B",
    ):
        assert line in ran.lines
    shown = delegraph("inspect", lm, "--json").json
    assert (shown["bundle"], shown["format"], shown["version"]) == (str(lm), "LiteRT-LM", "1.0.0")
    assert shown["metadata"]["something_new"] == "x"
    assert [section["type"] for section in shown["sections"]] == [
        "TFLiteModel", "HF_Tokenizer_Zlib", "type 77",
    ]  # fmt: skip


def test_inspect_shows_a_bundle_in_a_bundle_and_its_models(delegraph: Command, task: Path) -> None:
    assert "0 inner.task zip 233.2 kB" in delegraph("inspect", task).lines
    assert "1 float TFLiteModel 177.1 kB" in delegraph("inspect", f"{task}#inner.task").lines
    assert delegraph("inspect", f"{task}#0#1", "--json").json["bytes"] == len(FLOAT)


def test_compile_writes_the_bundle_back(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    model = sines_model()
    lm = file_of(tmp_path, litertlm([(MODEL, model, "a"), (GENERIC, b"kept", "")]), "x.litertlm")
    task = file_of(tmp_path, zipped({"LABELS": b"a", "m": model}), "x.task")
    for bundle, section in ((lm, "a"), (task, "m")):
        out = tmp_path / f"out{bundle.suffix}"
        ran = delegraph("compile", f"{bundle}#{section}", "-d", "engine", "-o", out)
        assert (ran.code, ran.err) == (0, "")
        operators = load_model(f"{out}#{section}").subgraphs[0].operators
        assert CUSTOM_OP in {operator.name for operator in operators}
        assert delegraph("run", f"{out}#{section}").code == 0
    after = bundle_at(tmp_path / "out.litertlm")
    assert after is not None
    kept = after.sections[1]
    assert after.content[kept.begin : kept.end].tobytes() == b"kept"
    with zipfile.ZipFile(tmp_path / "out.task") as archive:
        assert archive.read("LABELS") == b"a"
    alone = tmp_path / "alone.tflite"
    assert delegraph("compile", f"{lm}#0", "-d", "engine", "-o", alone).code == 0
    assert load_model(alone).subgraphs


def test_compile_keeps_the_bundle_that_it_reads(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    task = file_of(tmp_path, zipped({"m": sines_model(), "n": INT8}), "x.task")
    ran = delegraph("compile", f"{task}#m", "-d", "engine", "-o", task)
    assert (ran.code, "is the model itself: give -o another name" in ran.err) == (2, True)
    out = task.with_name("out.task")
    assert delegraph("compile", f"{task}#m", "-d", "engine", "-o", out).code == 0
    assert delegraph("run", f"{out}#m").code == 0
    assert load_model(f"{out}#n").content.tobytes() == INT8


def test_a_folder_of_weights_is_granted(delegraph: Command, tmp_path: Path) -> None:
    content, data = with_external_buffers(FLOAT)
    model = file_of(tmp_path, content, "m.tflite")
    folder = tmp_path / "weights"
    folder.mkdir()
    file_of(folder, data, "weights.bin")
    ran = delegraph("run", model)
    assert (ran.code, "no such file" in ran.err) == (1, True)
    for words in (["inspect"], ["run"], ["explain", "-d", "add_sub"], ["memory"]):
        assert delegraph(words[0], model, *words[1:], "--weights-dir", folder).code == 0
    out = tmp_path / "planned.tflite"
    words = ("--planner", "greedy_by_size", "--write-offline", out, "--weights-dir", folder)
    assert delegraph("memory", model, *words).code == 0
    assert delegraph("run", out).code == 0
