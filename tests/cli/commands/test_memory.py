from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.graph.loader import load_model
from delegraph.micro.offline_plans import offline_plan
from delegraph.testing import constant, graph_model, one_op_model, tensor
from support.by_name import doubling_while
from support.command import Command, Refused
from support.signatures import two_signatures

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


def test_a_memory_limit_is_the_users(delegraph: Command, refused: Refused) -> None:
    err = refused("memory", DIGITS, "--memory-limit", "10", code=1)
    assert "more than the limit of 10 bytes; --memory-limit sets another" in err
    assert delegraph("memory", DIGITS, "--memory-limit", "1M").code == 0


def test_every_planner_has_a_line_beside_the_bound(delegraph: Command) -> None:
    ran = delegraph("memory", DIGITS)
    assert (ran.code, ran.err) == (0, "")
    start = ran.lines.index("planner bytes bound ratio ms")
    planners = [line.split()[0] for line in ran.lines[start + 1 : start + 13]]
    assert planners[:3] == ["delegraph", "tflite", "naive"]
    assert planners[-1] == "best"
    assert ran.lines[start + 1].startswith("delegraph 3,136 3,136 1.000 ")
    assert ran.lines[start + 12].startswith("best 3,072 3,072 least ")
    in_place = (
        "delegraph and tflite compute in place and keep the model's inputs, so have another bound"
    )
    assert any(line.startswith(in_place) for line in ran.lines)
    assert "in place" not in delegraph("memory", DIGITS, "--planner", "best").out
    assert any(line.startswith("Most is in use at node ") for line in ran.lines)


@pytest.mark.parametrize(
    ("budget", "code"), [("4K", 0), ("0.004M", 0), ("3072", 0), ("3071", 1), ("2K", 1)]
)
def test_the_exit_code_says_whether_the_budget_holds(
    delegraph: Command, budget: str, code: int
) -> None:
    ran = delegraph("memory", DIGITS, "--planner", "best", "--budget", budget)
    assert ran.code == code
    assert ("over budget: 3,072 bytes needed" in ran.err) == bool(code)
    assert ("within the budget: 3,072 of " in ran.out) == (not code)


def test_the_micro_arena_is_estimated_with_its_uncertainty(delegraph: Command) -> None:
    shown = delegraph("memory", DIGITS, "--micro", "--json").json
    micro = shown["micro"]
    parts = ("head_bytes", "tail_bytes", "free_bytes")
    assert micro["total_bytes"] == sum(micro[part] for part in parts) > 3000
    assert shown["needed"] == micro["total_bytes"]
    assert "TensorFlow Lite Micro" in delegraph("memory", DIGITS, "--micro").lines


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (-1, 1, "over budget: "),
        (0, 0, "within the budget: "),
        (138, 0, "within the budget: "),
        (139, 0, "within the budget: "),
    ],
)
def test_a_budget_within_the_uncertainty_of_tflm_names_a_safe_one(
    delegraph: Command, more: int, code: int, words: str
) -> None:
    ran = delegraph("memory", DIGITS, "--micro", "--budget", str(7216 + more))
    assert ran.code == code
    assert f"{words}7,216 +- 139 " in (ran.err if code else ran.out)
    assert ("; 7,355 are enough for certain" in ran.out) == (more in (0, 138))


def test_a_budget_names_delegates_whose_memory_is_not_counted(
    delegraph: Command, sines: Path
) -> None:
    words = "; + memory of sin, not counted"
    assert words in delegraph("memory", sines, "-d", "sin", "--budget", "10K").out
    assert words not in delegraph("memory", sines, "--budget", "10K").out
    assert words not in delegraph("memory", DIGITS, "-d", "sin", "--budget", "10K").out


def test_the_micro_arena_stands_without_the_hosts_plans(delegraph: Command, sines: Path) -> None:
    ran = delegraph("memory", sines, "--micro")
    assert "assumes a 32-bit target and TFLM's reference kernels" in ran.out
    assert not any(word in ran.out for word in ("as it runs", "beside it", "naive"))
    shown = delegraph("memory", sines, "--micro", "--json").json
    assert [each["planner"] for each in shown["planners"]] == ["tflm_greedy", "tflm_linear", "best"]
    assert "CMSIS-NN" in shown["micro"]["assumes"]


def test_an_operator_that_tflm_cannot_run_is_named_and_nothing_is_exact(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "halves.tflite"
    model.write_bytes(halves())
    ran = delegraph("memory", model, "--micro")
    assert "exact" not in ran.out
    assert any(
        line.startswith("TFLM cannot run the model: it has no DEQUANTIZE of FLOAT16;")
        for line in ran.lines
    )
    shown = delegraph("memory", model, "--micro", "--json").json
    assert shown["micro"]["unsupported_operators"] == ["DEQUANTIZE of FLOAT16"]
    assert shown["needed_of"] == "core alone, TFLM, which cannot run it"


def halves() -> bytes:
    """Model that adds 100 numbers, which are stored as float16."""
    return graph_model(
        [("DEQUANTIZE", "w", "wide"), ("ADD", "x wide", "y")],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((100,)),
            "w": constant(np.ones(100, np.float16)),
            "wide": tensor((100,)),
            "y": tensor((100,)),
        },
    )


def open_shapes() -> bytes:
    """Model whose node 1 fills as many numbers as its input says, of which node 2 takes sines."""
    return graph_model(
        [("SIN", "x", "s"), ("FILL", "n v", "a"), ("SIN", "a", "y")],
        inputs="x n",
        outputs="s y",
        tensors={
            "x": tensor((100,)),
            "s": tensor((100,)),
            "n": tensor((1,), "INT32"),
            "v": constant(np.float32(1)),
            "a": tensor((1,)),
            "y": tensor((1,)),
        },
    )


def test_a_budget_cannot_be_checked_beyond_an_unknown_shape(
    delegraph: Command, refused: Refused, tmp_path: Path
) -> None:
    model = tmp_path / "open.tflite"
    model.write_bytes(open_shapes())
    words = ("memory", model, "-d", "none", "--budget")
    ran = delegraph(*words, "1M")
    assert ran.code == 1
    assert "the budget cannot be checked: at least " in ran.err
    assert "the shape of tensor 4 (a) is known only while invoking" in ran.err
    assert "it is made by node 1, FILL" in ran.err
    assert "within the budget" not in ran.out
    assert any(line.startswith("needs an arena of at least ") for line in ran.lines)
    assert any("each of the first 2 of 3 nodes" in line for line in ran.lines)
    assert "over budget: at least " in delegraph(*words, "1").err
    shown = delegraph(*words, "1M", "--json")
    assert shown.code == 1
    assert shown.json["open_shape"]["node"] == 1
    err = refused("memory", model, "--write-offline", tmp_path / "planned.tflite")
    assert "--write-offline needs all shapes: the shape of tensor 4 (a) is " in err
    assert "y" not in {each["name"] for each in shown.json["tensors"]}


@pytest.mark.parametrize("words", [("--micro", "-d", "sin"), ("--micro",)])
def test_tflm_runs_the_core_alone(delegraph: Command, sines: Path, words: tuple[str, ...]) -> None:
    shown = delegraph("memory", sines, *words, "--json").json
    assert shown["needed_of"].startswith("core alone, TFLM")
    assert shown["subject"] == "core alone"


def test_an_offline_plan_is_suggested_only_with_what_it_saves_of_tflms_arena(
    delegraph: Command, tmp_path: Path
) -> None:
    model, out = tmp_path / "gaps.tflite", tmp_path / "planned.tflite"
    model.write_bytes(with_gaps())
    before = delegraph("memory", model, "--micro", "--json").json
    (plan,) = (s for s in before["suggestions"] if "--write-offline" in s["text"])
    assert delegraph("memory", model, "--write-offline", out).code == 0
    after = delegraph("memory", out, "--micro", "--json").json
    assert before["needed"] - after["needed"] == plan["saves"] > 0
    assert not any("--write-offline" in s["text"] for s in after["suggestions"])
    plain = delegraph("memory", model, "--json").json
    assert not any("plan" in s["text"] for s in plain["suggestions"])


def with_gaps() -> bytes:
    """Model of 80, 32, 64 and 64 numbers, for which TFLM's planner leaves a gap."""
    return graph_model(
        [("SLICE", "x begin count", "a"), ("CONCATENATION", "a a", "b"), ("SIN", "b", "y")],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((80,)),
            "begin": constant(np.zeros(1, np.int32)),
            "count": constant(np.array([32], np.int32)),
            "a": tensor((32,)),
            "b": tensor((64,)),
            "y": tensor((64,)),
        },
    )


def test_constants_computed_once_are_counted_beside_the_arena(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "halves.tflite"
    model.write_bytes(halves())
    ran = delegraph("memory", model, "-d", "none")
    assert "+ 400 bytes of constants computed once" in ran.lines
    assert delegraph("memory", model, "-d", "none", "--json").json["constant_bytes"] == 400


def test_charts_start_at_the_first_node_of_a_run(delegraph: Command, tmp_path: Path) -> None:
    model, picture = tmp_path / "halves.tflite", tmp_path / "halves.svg"
    model.write_bytes(halves())
    ran = delegraph("memory", model, "-d", "none", "--draw", picture)
    assert any("at nodes 1 to 1; earlier ones compute constants once" in x for x in ran.lines)
    assert set(re.findall(r'y="608.0">(\d+)<', picture.read_text())) == {"1", "2"}


def test_int8_saves_a_share_of_the_plan_that_is_shown(delegraph: Command, tmp_path: Path) -> None:
    """Node 1 computes in place in that plan, so it needs less than the bound of others."""
    model = tmp_path / "sums.tflite"
    nodes = [("ADD", "x w", "a"), ("SOFTMAX", "a", "b"), ("SUM", "b axis", "y")]
    tensors = {
        "x": tensor((1,)),
        "w": constant(np.ones(100, np.float32)),
        "a": tensor((100,)),
        "b": tensor((100,)),
        "axis": constant(np.array([0], np.int32)),
        "y": tensor(()),
    }
    model.write_bytes(graph_model(nodes, inputs="x", outputs="y", tensors=tensors))
    shown = delegraph("memory", model, "-d", "none", "--json").json
    assert (shown["needed"], shown["lower_bound"]) == (516, 848)
    assert max(s["saves"] for s in shown["suggestions"]) == 387


def test_the_arena_that_is_needed_is_that_of_the_interpreters_planner(delegraph: Command) -> None:
    shown = delegraph("memory", DIGITS, "--json").json
    assert shown["needed_of"] == "core alone, planner delegraph"
    own = [each["bytes"] for each in shown["planners"] if each["planner"] == "delegraph"]
    assert [shown["needed"]] == own


def test_temporaries_of_litert_that_no_plan_counts_are_named(
    delegraph: Command, sines: Path
) -> None:
    lacking = "tflite: LiteRT's own arena has also the temporaries that its kernels ask for"
    assert lacking in " ".join(delegraph("memory", DIGITS, "-d", "none").lines)
    assert lacking not in " ".join(delegraph("memory", sines, "-d", "none").lines)


def test_sizes_of_a_plan_of_few_tensors_have_no_column(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "sine.tflite"
    model.write_bytes(one_op_model("SIN", [tensor((100,))], [tensor((100,))]))
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "sin")
    assert "planner core alone bound ratio ms" in delegraph("memory", model).lines


def test_a_model_with_its_plan_is_written(
    delegraph: Command, refused: Refused, tmp_path: Path
) -> None:
    out = tmp_path / "planned.tflite"
    ran = delegraph("memory", DIGITS, "-d", "none", "--write-offline", out)
    assert ran.code == 0
    assert ran.err == f"model with its plan written to {out}; TFLM aligns to 16\n"
    found = offline_plan(load_model(str(out)))
    assert found is not None
    assert max(found) > 0
    err = refused("memory", DIGITS, "--planner", "tflite", "--write-offline", out)
    assert "computes in place" in err or "compute in place" in err


def test_the_core_alone_is_shown_beside_the_delegates(delegraph: Command, sines: Path) -> None:
    ran = delegraph("memory", sines, "-d", "add_sub", "--planner", "naive")
    assert "planner as it runs core alone bound ratio ms" in ran.lines
    assert "bound, ratio and all below: as it runs" in ran.lines
    assert "needs an arena of 320 bytes (as it runs, planner naive)" in ran.lines
    assert "inside the partitions, not counted" in ran.out
    assert any("steps of the execution plan, first to last" in line for line in ran.lines)
    assert any(line.startswith("Most is in use at step ") for line in ran.lines)
    shown = delegraph("memory", sines, "-d", "add_sub", "--planner", "naive", "--json").json
    assert shown["needed"] == shown["planners"][0]["bytes"]
    assert shown["without_delegates"]["planners"][0]["bytes"] == 384
    assert shown["with_delegates"] is None


def test_a_budget_is_for_the_core_alone_if_delegates_apply_by_default(
    delegraph: Command, sines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "add_sub")
    words = ("memory", sines, "--planner", "best", "--json")
    shown = delegraph(*words).json
    assert (shown["subject"], shown["needed_of"]) == ("core alone", "core alone, planner best")
    assert shown["planners"] != shown["with_delegates"]["planners"]
    assert shown["needed"] == shown["planners"][0]["bytes"]
    assert shown["without_delegates"] is None
    assert "core alone 6 132 0 0" in delegraph("memory", sines, "--planner", "best").lines
    alone = delegraph(*words, "-d", "none").json
    assert (alone["with_delegates"], alone["needed"]) == (None, shown["needed"])
    assert alone["subject"] == "core alone"


def test_a_chart_shows_the_bytes_in_use_and_suggestions_name_what_they_save(
    delegraph: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = delegraph("memory", DIGITS)
    heading = "Bytes in use by planner delegraph at each of 15 nodes, first to last"
    start = ran.lines.index(heading)
    assert ran.lines[start + 1].startswith("3,136 |")
    assert ran.lines[start + 7].startswith("0 |")
    shown = delegraph("memory", DIGITS.with_name("digits_float.tflite"), "--json").json
    (int8, *_) = shown["suggestions"]
    assert int8["text"].startswith("INT8 in place of FLOAT32")
    assert 0.7 < int8["saves"] / shown["needed"] < 0.76
    ran = delegraph("memory", DIGITS.with_name("digits_float.tflite"))
    assert any(line.startswith(f"{int8['saves']:,} 75 % INT8 in place of") for line in ran.lines)


@pytest.mark.parametrize(("planner", "top"), [("delegraph", "12,544"), ("best", "12,288")])
def test_the_chart_shows_the_planners_own_lifetimes(
    delegraph: Command, planner: str, top: str
) -> None:
    """The planner ``delegraph`` keeps the model's input of 256 bytes to the end."""
    model = DIGITS.with_name("digits_float.tflite")
    lines = delegraph("memory", model, "--planner", planner, "-d", "none").lines
    heading = f"Bytes in use by planner {planner} at each of 15 nodes, first to last"
    assert lines[lines.index(heading) + 1].startswith(f"{top} |")


def test_bytes_in_use_that_no_sum_of_tensors_gives_are_said_to_be_aligned(
    delegraph: Command, sines: Path
) -> None:
    words = ("memory", sines, "-d", "none", "--planner", "best")
    most = "Most is in use at node 1, ADD"
    assert f"{most}: 132 bytes, aligned to 64 (planner best)" in delegraph(*words).lines
    assert f"{most}: 12 bytes (planner best)" in delegraph(*words, "--align", "4").lines


def test_the_peak_is_that_of_the_headline_and_lists_kept_inputs(delegraph: Command) -> None:
    ran = delegraph("memory", DIGITS, "-d", "none")
    assert "needs an arena of 3,136 bytes (core alone, planner delegraph)" in ran.lines
    assert any(": 3,136 bytes (planner delegraph)" in line for line in ran.lines)
    assert any(line.startswith("0 ") and line.endswith(" 64 0-14") for line in ran.lines)
    assert "planner delegraph keeps inputs that no later node reads" in ran.lines


def test_a_budget_is_of_the_arenas_of_all_subgraphs(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "loop.tflite"
    model.write_bytes(doubling_while())
    words = ("memory", model, "-d", "none", "--planner", "naive", "--align", "1")
    ran = delegraph(*words, "--budget", "20")
    assert ran.code == 1
    assert "over budget: 21 bytes needed, 20 allowed" in ran.err
    assert "needs 3 arenas, together of 21 bytes (core alone, planner naive)" in ran.lines
    assert "1 - node 0, WHILE 5" in ran.lines
    assert ran.out.count(", subgraph 0, which has the largest arena") == 2
    shown = delegraph(*words, "--json").json
    assert (shown["needed"], shown["bytes_by_planner"]) == (21, {"naive": 21})
    assert [each["subgraph"] for each in shown["subgraphs"]] == [1, 2]


def test_each_signature_has_its_bytes(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(two_signatures())
    lines = delegraph("memory", model, "-d", "none", "--align", "1", "--planner", "naive").lines
    assert "bytes by signature, with what it calls: negate 8, wave 8" in lines
    assert any(line.endswith(" signature wave 8") for line in lines)


def test_a_budget_of_tflm_cannot_be_checked_if_it_cannot_run_the_model(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "halves.tflite"
    model.write_bytes(halves())
    ran = delegraph("memory", model, "--micro", "--budget", "1M")
    assert ran.code == 1
    assert "the budget cannot be checked: at least " in ran.err
    assert "TFLM cannot run the model: it has no DEQUANTIZE of FLOAT16" in ran.err
    model.write_bytes(one_op_model("CUMSUM", [tensor((2,)), CUMSUM_AXIS], [tensor((2,))]))
    ran = delegraph("memory", model, "--micro", "--budget", "1M")
    assert (ran.code, "scratch memory unknown: CUMSUM" in ran.err) == (1, True)


CUMSUM_AXIS = constant(np.zeros((), np.int32))


def test_a_model_for_a_chip_that_only_tflm_runs_is_planned_for_tflm(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "vela.tflite"
    model.write_bytes(
        one_op_model(
            "ethos-u", [constant(np.zeros(16, np.uint8)), tensor((64,), "INT8")], [tensor((2,))]
        )
    )
    ran = delegraph("memory", model, "--micro", "--budget", "4K")
    assert ran.code == 0
    assert "no other planner is shown: Delegraph cannot run the model" in ran.lines
    micro = delegraph("memory", model, "--micro", "--json").json["micro"]
    # input, output, and 8-byte addresses and 4-byte sizes of three tensors
    assert micro["head_bytes"] == 64 + 16 + 32 + 16
    assert micro["unknown_operators"] == micro["unsupported_operators"] == []
    assert delegraph("memory", model).code == 1


def test_the_arena_of_tflm_comes_first_and_other_plans_are_aligned_as_it_aligns(
    delegraph: Command,
) -> None:
    ran = delegraph("memory", DIGITS, "--micro", "--planner", "tflm_greedy")
    first, second = (
        next(i for i, line in enumerate(ran.lines) if line.startswith(title))
        for title in ("TensorFlow Lite Micro", "Planners, bytes of the arena, aligned to 16")
    )
    assert first < second
    head = delegraph("memory", DIGITS, "--micro", "--json").json["micro"]["head_bytes"]
    assert any(line.startswith(f"tflm_greedy {head:,} ") for line in ran.lines)


def test_with_micro_all_figures_are_of_tflms_planner(delegraph: Command) -> None:
    ran = delegraph("memory", DIGITS, "--micro")
    assert "Bytes in use by planner tflm_greedy at each of 15 nodes, first to last" in ran.lines
    shown = delegraph("memory", DIGITS, "--micro", "--json").json
    head, peak = shown["micro"]["head_bytes"], shown["peak"]
    assert peak["bytes"] == head
    assert any(f": {head:,} bytes (planner tflm_greedy)" in line for line in ran.lines)
    assert "keeps inputs" not in ran.out


def test_scratch_buffers_are_what_tflms_head_has_beside_the_plan(
    delegraph: Command, tmp_path: Path
) -> None:
    """The kernel of SUM asks for a sum of 4 bytes for the only element, aligned to 16."""
    model = tmp_path / "sum.tflite"
    axis = constant(np.zeros(1, np.int32))
    model.write_bytes(one_op_model("SUM", [tensor((4,), "INT8"), axis], [tensor((1,), "INT8")]))
    lines = delegraph("memory", model, "--micro").lines
    assert "TFLM's head needs 16 bytes more for scratch buffers, which no planner here has" in lines


@pytest.mark.parametrize(("words", "last"), [((), 14), (("--micro",), 0)])
def test_lifetimes_in_json_are_those_of_the_text(
    delegraph: Command, words: tuple[str, ...], last: int
) -> None:
    shown = delegraph("memory", DIGITS, "-d", "none", *words, "--json").json
    assert (shown["tensors"][0]["made_by"], shown["tensors"][0]["last"]) == ("input", last)


def test_sizes_of_tflm_are_least_numbers_where_scratch_memory_is_unknown(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "sums.tflite"
    model.write_bytes(one_op_model("CUMSUM", [tensor((2,)), CUMSUM_AXIS], [tensor((2,))]))
    lines = delegraph("memory", model, "--micro").lines
    assert "tensors and scratch buffers (head) 32 at least" in lines
    assert any(line.startswith("arena ") and line.endswith(" at least") for line in lines)
    assert delegraph("memory", model, "--micro", "--json").json["micro"]["is_least"] is True
    assert delegraph("memory", DIGITS, "--micro", "--json").json["micro"]["is_least"] is False


def test_the_chart_of_a_model_with_one_node_is_at_this_node(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "sine.tflite"
    model.write_bytes(one_op_model("SIN", [tensor((100,))], [tensor((100,))]))
    ran = delegraph("memory", model, "-d", "none")
    assert "Bytes in use by planner delegraph at the only node" in ran.lines


def test_limits_are_those_of_the_interpreter(
    delegraph: Command, refused: Refused, sines: Path
) -> None:
    words = ("memory", sines, "--planner", "naive")
    assert "more tables than the limit of 1" in refused(*words, "--table-limit", "1", code=1)
    assert delegraph(*words, "--micro", "--time-limit", "60", "--depth-limit", "3").code == 0
    assert delegraph(*words, "--time-limit", "0").code == 2


def test_a_missing_matplotlib_is_told_before_any_work(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    err = refused("memory", DIGITS, "--draw", "plan.png")
    assert 'needs matplotlib: pip install "delegraph[plot]"; .svg and .html need nothing' in err


def test_a_picture_that_cannot_be_drawn_is_told_before_any_work(
    delegraph: Command, sines: Path
) -> None:
    ran = delegraph("memory", sines, "--draw", "plan.gif")
    assert (ran.code, ran.out) == (2, "")
