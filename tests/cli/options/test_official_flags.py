from __future__ import annotations

from pathlib import Path

import click
import pytest

from delegraph.cli.options.official_flags import own_words
from support.command import Command


@pytest.mark.parametrize(
    ("command", "typed", "meant"),
    [
        ("benchmark", "--graph m.tflite --num_threads=-1", "m.tflite"),
        ("benchmark", "--graph=m.tflite --num_threads 4", "m.tflite --threads 4"),
        ("benchmark", "--max_secs=2 --warmup_min_secs=0", "--max-seconds 2 --warmup-seconds 0"),
        ("benchmark", "--run_delay=-1.0 --run_frequency=5", "--frequency 5"),
        ("benchmark", "--enable_op_profiling=true", "--op-profile"),
        ("benchmark", "--enable_op_profiling --dry_run=false", "--op-profile"),
        (
            "benchmark",
            "--use_xnnpack=0 --require_full_delegation",
            "--no-default-delegates --re...",
        ),
        ("benchmark", "--input_layer_value_range=a,0,9:b,1,2", "--input-range a=0,9 --input-r..."),
        ("benchmark", "m --runs=5 -- --num_runs", "m --runs=5 -- --num_runs"),
        ("diff", "--model_file=m --num_interpreter_threads=2", "m --threads 2"),
        ("evaluate", "classification --ground_truth_labels=t", "classification --truth t"),
        ("benchmark", "--input_layer=a,b --input_layer_shape=1,2:3", "--input-shape a=1,2 --in..."),
        ("diff", "--input_layer=a --input_layer_shape=1,2", "--input-shape a=1,2"),
        ("benchmark", "--verbose=true --report_peak_memory_footprint=true", "--verbose"),
        ("benchmark", "--use_caching=false --allow_fp16=false", ""),
        ("run", "--graph=m.tflite", "--graph=m.tflite"),
    ],
)
def test_official_flags_are_spellings_of_options(command: str, typed: str, meant: str) -> None:
    found = " ".join(own_words(command, typed.split()))
    assert found.startswith(meant.removesuffix("..."))
    assert len(found) == len(meant) or meant.endswith("...")


def test_a_compiled_delegate_is_named_by_two_flags() -> None:
    words = ["--external_delegate_options=a:1;b:x:y", "--external_delegate_path=./libd.so"]
    assert own_words("benchmark", words) == ["-d", "./libd.so:a=1,b=x:y"]
    with pytest.raises(click.UsageError, match="needs --external_delegate_path"):
        own_words("benchmark", words[:1])


def test_each_input_layer_has_a_shape() -> None:
    words = ["--input_layer=a,b", "--input_layer_shape=1,2"]
    with pytest.raises(click.UsageError, match="2 names and --input_layer_shape 1 shape, expected"):
        own_words("benchmark", words)


def test_commands_take_them_and_help_does_not_show_them(delegraph: Command, sines: Path) -> None:
    words = ("--num_runs=2", "--min_secs=0", "--warmup_runs=0", "--warmup_min_secs=0")
    shown = delegraph("benchmark", f"--graph={sines}", *words, "--json").json
    assert shown["latency"]["count"] == 2
    assert (
        len(delegraph("diff", f"--model_file={sines}", "--num_runs=3", "--json").json["runs"]) == 3
    )
    assert "num_runs" not in delegraph("benchmark", "--help").out
