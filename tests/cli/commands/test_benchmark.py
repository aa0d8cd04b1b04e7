from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from delegraph.cli.commands.benchmark import command
from delegraph.schema.options import AddOptions
from delegraph.testing import one_op_model, tensor
from delegraph.tools.array_files import read_npz
from support.command import Command, Refused

ROOT = Path(__file__).parents[3]

BRIEF = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 2, "--warmup-seconds", 0)


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """Two inputs, t0 + t1, of open length."""
    path = tmp_path / "add.tflite"
    kinds = [tensor((2,), shape_signature=(-1,)) for _ in range(2)]
    path.write_bytes(one_op_model("ADD", kinds, [tensor((2,))], AddOptions()))
    return path


@pytest.mark.parametrize("runtime", ["delegraph", "litert", "litert2"])
def test_it_runs_so_often_on_either_runtime(delegraph: Command, sines: Path, runtime: str) -> None:
    pytest.importorskip("ai_edge_litert")
    shown = delegraph("benchmark", sines, "--runtime", runtime, *BRIEF, "--json").json
    assert (len(shown["samples"]["warmup"]), len(shown["samples"]["runs"])) == (2, 3)
    assert shown["setup"]["runtime"] == runtime
    assert shown["latency"]["count"] == 3


def test_the_options_are_the_run_control(delegraph: Command, sines: Path) -> None:
    words = ("--max-seconds", 9, "--delay", 0.001, "--frequency", 1e6)
    shown = delegraph("benchmark", sines, *BRIEF, *words, "--json").json
    assert shown["control"] == {
        "runs": 3,
        "min_seconds": 0,
        "max_seconds": 9,
        "warmup_runs": 2,
        "warmup_seconds": 0,
        "delay": 0.001,
        "frequency": 1e6,
    }


def test_the_rate_that_ran_stands_beside_the_rate_of_computing(
    delegraph: Command, sines: Path
) -> None:
    words = ("benchmark", sines, *BRIEF, "--frequency", 100)
    assert "a second by the mean; with rests, " in delegraph(*words).out
    shown = delegraph(*words, "--json").json
    assert 3 / shown["elapsed_seconds"] <= 101 < shown["inferences_per_second"]
    assert "with rests" not in delegraph("benchmark", sines, *BRIEF).out


def test_a_dry_run_has_stages_and_no_times(delegraph: Command, sines: Path) -> None:
    ran = delegraph("benchmark", sines, "--dry-run", "-d", "sin")
    assert (ran.code, ran.err) == (0, "")
    assert "5 nodes: sin takes 2 in 2 partitions, 3 stay with Delegraph's kernels" in ran.out
    assert "Stages" in ran.lines
    assert "Times" not in ran.lines
    assert [line.split()[0] for line in ran.lines if "init" in line] == ["init"]
    assert delegraph("benchmark", sines, "--dry-run", "--json").json["latency"] is None


def test_figures_are_shown_for_people(delegraph: Command, sines: Path) -> None:
    lines = delegraph("benchmark", sines, *BRIEF, "--name", "two sines").lines
    assert lines[:2] == ["takes less than 1 s", "two sines"]
    start = lines.index("warm-up inference")
    assert lines[start + 1] == "runs 2 3"
    figures = [line.split()[0] for line in lines[start + 2 : start + 12]]
    assert figures == ["first", "mean", "std", "min", "p5", "median", "p90", "p95", "p99", "max"]
    assert any(line.startswith("3 runs, ") for line in lines)
    assert "caution: 3 of at least 10 runs: too few to tell how much times vary" in lines


def test_runs_beyond_those_asked_for_are_explained(delegraph: Command, sines: Path) -> None:
    words = ("--runs", 2, "--min-seconds", 0.02, "--warmup-seconds", 0)
    text = " ".join(delegraph("benchmark", sines, *words).lines)
    assert re.search(r"\d+ runs in 0.02 s \(--min-seconds 0 stops after 2\)", text)


def test_the_result_is_written(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert delegraph("benchmark", sines, *BRIEF, "--result-json", path, "--name", "mine").code == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["name"] == "mine"
    assert written["official"]["misc_metrics"]["num_runs"] == 3
    assert written["machine"]["versions"]["delegraph"]


def test_inputs_are_given_shaped_and_saved(delegraph: Command, add: Path, tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    words = ("-i", "t0=10", "--input-shape", "0=4", "--input-shape", "t1=4")
    ran = delegraph("benchmark", add, *BRIEF, *words, "--input-range", "1=5,7", "--save", path)
    assert ran.code == 0
    (values,) = read_npz(str(path)).values()
    assert values.shape == (4,)
    assert ((values >= 15) & (values <= 17)).all()
    shown = delegraph("benchmark", add, *BRIEF, *words, "--seed", 7, "--json").json
    assert [entry["source"] for entry in shown["inputs"]] == ["10", "random"]
    assert (shown["seed"], shown["distribution"]) == (7, "benchmark")


def test_the_seed_decides_the_outputs(delegraph: Command, add: Path, tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        path = tmp_path / "y.npz"
        delegraph("benchmark", add, *BRIEF, "--seed", seed, "--save", path)
        found.append(next(iter(read_npz(str(path)).values())))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input-shape", "t0=a,2"], "'t0=a,2', expected [NAME=]N,N,N"),
        (["--input-range", "t0=1"], "1 number for 't0', expected [NAME=]LOW,HIGH"),
        (["--input-range", "t0=1,2,3"], "3 numbers for 't0', expected [NAME=]LOW,HIGH"),
        (["--input-shape", "4"], "a shape without a name: say of which input, 't0', 't1'"),
        (["--input-range", "x=1,2"], "a range of 'x', none of the inputs: 't0', 't1'"),
        (["--input-shape", "t0=1,2"], "input 't0' (float32 [-1]): shape [1, 2] does not fit"),
        (["--input-shape", "t0=1", "--input-shape", "t0=2"], "'t0=2' is a second one for the same"),
        (["--dry-run", "--save", "y.npz"], "no outputs to save in 'y.npz': the model did not run"),
        (["--save", "y.txt"], "expected a file ending in .json or .npz"),
        (["--compare-with", "absent.json"], "'absent.json' does not exist"),
        (["--compare-with", __file__], "is no result of a benchmark of one set-up"),
        (["--compare-with", __file__, "--dry-run"], "a comparison needs runs"),
        (["--same-within", "3"], "--same-within needs --against or --compare-with"),
        (["--signature", "serve"], "no signature 'serve'"),
        (["--runs", "0"], "Invalid value for '--runs'"),
        (["--result-json", "absent/r.json"], "'absent/r.json': there is no folder 'absent'"),
        (["--save", "absent/y.npz"], "'absent/y.npz': there is no folder 'absent'"),
        (["--against", "-d none", "--save", "y.npz"], "--save"),
        (["--use_gpu=true"], "--use_gpu is for phones; -d PATH takes any compiled delegate"),
        (["--num_runs", "x"], "'x' is no integer"),
    ],
)
def test_mistakes_are_told_in_one_line(
    refused: Refused, add: Path, words: list[str], message: str
) -> None:
    err = refused("benchmark", add, *words)
    assert message in err
    assert err.count("\n") == 1


def test_a_saved_result_is_compared_with_across_commits(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    path = tmp_path / "then.json"
    brief = ("--runs", 20, "--min-seconds", 0, "--warmup-seconds", 0)
    assert delegraph("benchmark", sines, *brief, "--save", path).code == 0
    words = ("--threads", 2, "--compare-with", path)
    lines = delegraph("benchmark", sines, *brief, *words).lines
    start = lines.index(f"Beside {path}")
    assert lines[start + 1] == "then now change"
    assert [line.split()[0] for line in lines[start + 2 : start + 5]] == ["median", "min", "init"]
    assert lines[start + 4].startswith("init (one sample) ")
    assert any(
        line.startswith(("now ", "too noisy to tell: ")) and "of the quickest runs" in line
        for line in lines
    )
    assert "not as then: threads: 1 then, 2 now" in lines
    written = json.loads(path.read_text(encoding="utf-8"))
    written["samples"]["runs"] = [1e-9] * 20
    path.write_text(json.dumps(written), encoding="utf-8")
    ran = delegraph("benchmark", sines, *brief, *words, "--fail-above", 50, "--json")
    assert ran.code == 1
    assert "slower by more than 50 % than" in ran.err
    assert ran.json["compared_with"]["verdict"] == "slower"


def test_a_comparison_says_how_long_it_takes_and_keeps_to_the_maximum(
    delegraph: Command, sines: Path
) -> None:
    words = ("--against", "--threads 1", "--blocks", 9, "--max-seconds", 0.1)
    ran = delegraph("benchmark", sines, *words)
    assert ran.lines[0] == (
        "takes at least 0.1 s, and the time to make 3 interpreters 9 times; no block begins "
        "after 0.1 s"
    )
    assert "in 5 blocks" in ran.out
    assert re.search(r"set-up +threads +median +memory +ratio", ran.out)


OFFICIAL_FLAGS = """
    graph num_runs min_secs max_secs warmup_runs warmup_min_secs run_delay run_frequency num_threads
    use_caching dry_run verbose benchmark_name output_prefix report_peak_memory_footprint
    memory_footprint_check_interval_ms require_full_delegation allow_fp16 release_dynamic_tensors
    disable_delegate_clustering enable_builtin_cast_constant_cache optimize_memory_for_large_tensors
    signature_to_run_for list_signatures print_preinvoke_state print_postinvoke_state
    tensor_name_display_length tensor_type_display_length alloc_type_display_length output_filepath
    output_proto_filepath result_file_path gpu_invoke_loop_times input_layer input_layer_shape
    input_layer_value_range input_layer_value_files max_delegated_partitions
    min_nodes_per_partition delegate_serialize_dir delegate_serialize_token
    first_delegate_node_index last_delegate_node_index use_xnnpack xnnpack_force_fp16 use_gpu
    external_delegate_path external_delegate_options stable_delegate_settings_file
    enable_op_profiling op_profiling_output_mode op_profiling_output_file
    profiling_output_csv_file max_profiling_buffer_entries
    allow_dynamic_profiling_buffer_increase export_model_runtime_info
    model_runtime_info_output_file
"""


def test_the_page_maps_every_official_flag_to_options_that_there_are() -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    table = page[page.index("| its flag | here |") : page.index("### Where a figure differs")]
    rows = [line.split(" | ", 1) for line in table.splitlines() if line.startswith("| `--")]
    theirs = {flag for row in rows for flag in re.findall(r"`--(\w+)`", row[0])}
    assert set(OFFICIAL_FLAGS.split()) - theirs == set()
    ours = {option for row in rows for option in re.findall(r"`(--?[a-z][\w-]*)", row[1])}
    known = {name for parameter in command.params for name in parameter.opts}
    assert len(ours) > 20
    assert ours - known == set()


# -- language models ---------------------------------------------------------------------------

LANGUAGE = ROOT / "docs" / "demo" / "models" / "language_model.tflite"


def test_a_step_of_decode_hands_on_its_caches_and_has_tokens_per_second(delegraph: Command) -> None:
    ran = delegraph("benchmark", LANGUAGE, "--signature", "decode", *BRIEF)
    assert "signature decode; others: prefill_8" in ran.lines
    names = ", ".join(f"kv_cache_{kind}_{layer}" for kind in "kv" for layer in "01")
    text = f"state: each run hands {names} on to the next: 8.2 kB, not copied"
    assert text in " ".join(ran.out.split())
    assert re.search(r"^1 token a run, [\d,.]+ tokens a second$", ran.out, re.MULTILINE)
    shown = delegraph("benchmark", LANGUAGE, "--signature", "prefill_8", *BRIEF, "--json").json
    assert shown["signatures"] == ["decode", "prefill_8"]
    assert (shown["handed_on"]["tokens"], shown["handed_on"]["copied_bytes"]) == (8, 0)
    assert shown["tokens_per_second"] == pytest.approx(8 * shown["inferences_per_second"])


def test_a_model_with_several_signatures_says_which_are_measured(delegraph: Command) -> None:
    ran = delegraph("benchmark", LANGUAGE, *BRIEF)
    assert "the first subgraph; --signature measures one of: decode, prefill_8" in ran.lines
    assert "tokens a second" not in ran.out


def test_a_comparison_has_the_tokens_per_second_of_each_set_up(
    delegraph: Command, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    words = ("--against", "--runtime litert", "--blocks", 5, "--seconds", 0.1)
    ran = delegraph("benchmark", LANGUAGE, "--signature", "decode", *words, "--result-json", path)
    assert re.search(r"set-up +threads +median +tokens/s +copied +memory +ratio", ran.out)
    assert re.search(r"[\d,.]+  8\.2 kB ", ran.out)
    shown = json.loads(path.read_text(encoding="utf-8"))
    (other,) = shown["others"]
    assert other["tokens_per_second"] == pytest.approx(1 / other["median"])
    assert other["handed_on"]["copied_bytes"] == other["handed_on"]["bytes"] == 8192
    assert shown["one"]["handed_on"]["copied_bytes"] == 0
