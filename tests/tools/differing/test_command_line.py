from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from click.testing import CliRunner

from delegraph.cli.options.setup import setup_options
from delegraph.delegation.tolerance import Tolerance
from delegraph.tools import Setup
from delegraph.tools.differing.command_line import diff_command, setup_words
from delegraph.tools.differing.difference import own_kernels
from support.faulty_delegate import Faulty

FULL = Setup(
    "m.tflite",
    delegates=("none",),
    delegate_files=("my file.py:a=1",),
    use_default_delegates=False,
    threads=2,
    numerics="reference",
    partition_policy="measured",
    on_failure="fallback",
    validate=True,
    time_limit=2.5,
    memory_limit=4096,
    table_limit=7,
    depth_limit=3,
)


def test_the_words_of_a_setup_make_the_same_one(tmp_path: Path) -> None:
    made: list[Setup] = []
    model = tmp_path / "m.tflite"
    model.touch()

    @click.command()
    @setup_options
    def take(setup: Setup) -> None:
        made.append(setup)

    for setup in (FULL, Setup("m.tflite", "litert", threads=1)):
        done = CliRunner().invoke(take, [str(model), *setup_words(setup)])
        assert done.exit_code == 0, done.output
        assert made.pop() == replace(setup, model=str(model))


def test_a_command_has_all_that_counts() -> None:
    setup = Setup("whole.tflite", delegates=("npu",))
    command = diff_command(
        setup,
        "a b.tflite",
        own_kernels(setup),
        inputs="c.npz",
        rules="r.toml",
        tolerance={"": Tolerance(absolute=0.5), "y": Tolerance(relative=0.01)},
        signature="serve",
    )
    assert command == (
        "delegraph diff 'a b.tflite' -d npu --rules r.toml -i c.npz --tolerance 0.5 "
        "--tolerance y=0,0.01 --signature serve"
    )


def test_a_reference_of_its_own_is_named() -> None:
    setup = Setup("m.tflite", "litert", delegates=("npu",))
    exact = Tolerance()
    reference = replace(setup, delegates=("none",))
    command = diff_command(setup, "m.tflite", reference, inputs="c.npz", tolerance=exact)
    assert "--runtime litert --reference '--runtime litert -d none' -i" in command
    other = Setup("other.tflite", threads=2)
    command = diff_command(setup, "m.tflite", other, inputs="c.npz", tolerance=exact)
    assert "--reference 'other.tflite --runtime delegraph -d default --threads 2'" in command


def test_an_object_stands_by_its_type() -> None:
    assert setup_words(Setup("m.tflite", delegates=(Faulty(),))) == ["-d", "<Faulty>"]


def test_no_digit_of_a_tolerance_is_lost() -> None:
    setup = Setup("m.tflite")
    exact = Tolerance(absolute=0.00123456789, relative=2)
    command = diff_command(setup, "m.tflite", own_kernels(setup), inputs="c.npz", tolerance=exact)
    assert command.endswith("--tolerance 0.00123456789,2")
