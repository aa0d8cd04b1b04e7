from __future__ import annotations

import json
from pathlib import Path

from support.command import Command
from support.fake_distributions import GOOD, write_plugin


def test_it_writes_a_page_and_says_where(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    ran = delegraph("report", sines, "-d", "sin", "-o", path)
    assert (ran.code, ran.err) == (0, "")
    assert "5 nodes: sin takes 2 in 2 partitions" in ran.out
    assert f"written to {path}, " in ran.out
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "sines.tflite" in page
    assert len(page) < 3_000_000


def test_json_has_what_the_page_shows(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    answer = json.loads(delegraph("report", sines, "-d", "sin", "-o", path, "--json").out)
    assert answer["report"] == str(path)
    assert answer["subgraphs"][0]["nodes"][0]["delegate"] == "sin"
    assert path.is_file()


def test_differences_have_the_verdict_of_diff(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    words = ("-d", "sin", "--diff", "--diff-runs", "1", "-o", tmp_path / "page.html", "--json")
    told = delegraph("report", sines, *words).json["differences"]
    assert told["inner"] == "alone"
    assert told["verdict"]["word"] in ("same", "within profile")
    assert [output["name"] for output in told["outputs"]] == ["y"]


def test_a_dry_run_computes_nothing(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    words = ("--benchmark", "--dry-run", "-o", tmp_path / "page.html", "--json")
    answer = json.loads(delegraph("report", sines, *words).out)
    assert answer["benchmark"]["drawn_runs"] == []
    assert "profile" not in answer


def test_parts_appear_where_they_are_asked_for(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    words = ["report", sines, "-d", "sin", "-o", tmp_path / "page.html", "--json"]
    short = ["--runs", "3", "--min-seconds", "0", "--warmup-seconds", "0"]
    others = ["--against", "-d add_sub", "--seconds", "0.05"]
    asked = [
        *others,
        "--memory",
        "--benchmark",
        "--diff",
        "--diff-runs",
        "1",
        "--reference",
        "-d add_sub",
    ]
    answer = json.loads(delegraph(*words, *asked, *short).out)
    assert answer["memory"]["lower_bound"] > 0
    assert len(answer["benchmark"]["drawn_runs"]) == 3
    assert answer["differences"]["runs"] == 1
    assert sum(len(section["nodes"]) for section in answer["profile"]["sections"]) == 5
    assert answer["comparison"]["others"][0]["words"]
    assert "blocks" not in answer["comparison"]["one"]
    assert "add_sub" in answer["differences"]["reference"]
    plain = json.loads(delegraph(*words).out)
    assert not {"memory", "benchmark", "differences"} & plain.keys()


def test_given_inputs_are_compared_in_one_run(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    words = ("report", sines, "--diff", "-o", tmp_path / "page.html", "--json")
    given = delegraph(*words, "-i", "zeros").json["differences"]
    assert (given["runs"], given["notes"]) == (1, ["no input is random, so one run is enough"])
    random = delegraph(*words).json["differences"]
    assert (random["runs"], random["notes"]) == (3, [])


def test_a_signature_is_shown_first_and_measured(delegraph: Command, tmp_path: Path) -> None:
    model = Path(__file__).parents[3] / "docs" / "demo" / "models" / "language_model.tflite"
    words = ("--signature", "decode", "-o", tmp_path / "page.html")
    brief = ("--benchmark", "--runs", 2, "--min-seconds", 0, "--warmup-seconds", 0)
    shown = delegraph("report", model, *words, *brief, "--json").json
    assert (shown["signature"], shown["benchmark"]["signature"]) == ("decode", "decode")
    assert shown["benchmark"]["tokens_per_second"] > 0
    assert [(s["name"], s["subgraph"]) for s in shown["signatures"]] == [
        ("decode", 1),
        ("prefill_8", 0),
    ]
    ran = delegraph("report", model, *words)
    assert ran.lines[1].strip().startswith("decode: 130 nodes")
    ran = delegraph("report", model, *words, "--diff")
    assert (ran.code, "leave out --signature" in ran.err) == (2, True)


def test_a_problem_is_told_with_what_to_type(
    fresh_delegraph: Command, custom: Path, tmp_path: Path
) -> None:
    source = GOOD.format(module="fake_erf", delegate="good")
    spec = '"a fake", _load, custom_ops=("FlexErf",))'
    write_plugin(tmp_path / "site", "erf", source.replace('"a fake", _load)', spec))
    output = tmp_path / "page.html"
    ran = fresh_delegraph("report", custom, "-d", "none", "-o", output, DELEGRAPH_PLUGINS="erf")
    advice = "FlexErf (1 node): delegate 'good' is there for it and was not applied: -d good"
    assert (ran.code, advice in ran.lines) == (0, True)
    assert advice in output.read_text(encoding="utf-8")
