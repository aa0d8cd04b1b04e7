"""Faults of what is compiled ahead of time, and of what loads it, are found and named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest import SkipTest

import pytest

from delegraph import engine_compiler, hookimpl
from delegraph.errors import PartitionRejected
from delegraph.testing.conformance import ahead_of_time
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import Subject, installed_subject, subject_of
from support import chip_plugin
from support.chip_plugin import CHIP, ChipDelegate, install_chip
from support.fake_distributions import write_distribution
from support.seeded_faults import SoundDelegate

pytest_plugins = ("pytester",)

FEW = replace(FULL, random_cases=4, enough=2, seeds=1, chains=1, specimens=1, tries=3)
CHECKS = (
    ahead_of_time.compiled_files_give_the_same,
    ahead_of_time.other_versions_are_refused,
    ahead_of_time.damaged_blobs_are_errors,
)
SOUND = engine_compiler(CHIP)


@pytest.fixture
def chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Subject]:
    """Return what installs the chip, with a fault in its CompilerSpec, and tests it."""

    def install(**fault: object) -> Subject:
        spec = replace(SOUND, **fault)
        monkeypatch.setattr(chip_plugin, "delegraph_compilers", hookimpl(lambda: [spec]))
        install_chip(tmp_path / "site", monkeypatch)
        return replace(installed_subject("chip"), folder=tmp_path / "found", effort=FEW)

    return install


def test_a_sound_compiler_passes(chip: Callable[..., Subject], tmp_path: Path) -> None:
    tested = chip()
    for check in CHECKS:
        check(tested)
    assert not (tmp_path / "found").exists()


def test_one_that_runs_only_what_was_compiled_is_compared_with_the_kernels(
    chip: Callable[..., Subject],
) -> None:
    tested = chip(load_claims=lambda: ChipDelegate)
    for check in CHECKS:
        check(tested)


def forgets_the_outputs(blob, context, params):
    kernel = SOUND.load_compiled(blob, context, params)
    kernel.eval = lambda context, node: None
    return kernel


def cannot_compile(model, options):
    raise RuntimeError("no license")


def loads_whatever_it_is(blob, context, params):
    try:
        return SOUND.load_compiled(blob, context, params)
    except Exception:  # noqa: BLE001  that is the fault
        delegate = ChipDelegate(chip_plugin.ChipOptions())
        made = delegate.create_delegate_kernel_interface()
        made.prepare = made.memory_changed = made.eval = lambda context, node: None
        return made


FAULTS = [
    (
        {"load_compiled": forgets_the_outputs},
        ahead_of_time.compiled_files_give_the_same,
        r"(?s)ahead of time gives other results than the delegate that compiles when it starts: "
        r"output 0: .*saved: .*chip-\w+-ahead-of-time\.tflite\n.*delegraph compile .*"
        r"delegraph diff",
    ),
    (
        {"load_compiled": forgets_the_outputs, "load_claims": lambda: ChipDelegate},
        ahead_of_time.compiled_files_give_the_same,
        "ahead of time gives other results than Delegraph's kernels: output 0: ",
    ),
    (
        {"compile_partition": cannot_compile},
        ahead_of_time.compiled_files_give_the_same,
        "cannot be compiled ahead of time: .*no license",
    ),
    (
        {"version": map(str, count()).__next__},
        ahead_of_time.compiled_files_give_the_same,
        "(?s)does not run: .*of version.*compile the model again",
    ),
    (
        {"version": map(str, count()).__next__},
        ahead_of_time.other_versions_are_refused,
        r"version of its CompilerSpec returns '0' and then '1': no file",
    ),
    (
        {"load_compiled": loads_whatever_it_is},
        ahead_of_time.damaged_blobs_are_errors,
        r"(?s)the second half of the blob is missing, and load_compiled .* takes it.*"
        r"saved: .*damaged-blob\.tflite",
    ),
]


@pytest.mark.repetition(2)
@pytest.mark.parametrize(("fault", "check", "message"), FAULTS)
def test_a_faulty_compiler_is_named(
    chip: Callable[..., Subject],
    fault: dict[str, object],
    check: Callable[[Subject], None],
    message: str,
) -> None:
    with pytest.raises(AssertionError, match=message):
        check(chip(**fault))


def test_a_delegate_that_takes_refused_blobs_is_named(
    chip: Callable[..., Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = chip()
    monkeypatch.setattr(ChipDelegate, "is_node_supported_by_delegate", lambda *_: True)
    with pytest.raises(
        AssertionError,
        match=r"(?s)of version '1.0-other', installed is '1.0', and .*"
        "claim custom operators that are not its own",
    ):
        ahead_of_time.other_versions_are_refused(tested)


def test_what_rejects_every_partition_has_nothing_to_check(chip: Callable[..., Subject]) -> None:
    def reject(model, options):
        raise PartitionRejected("no room", constraint="room")

    tested = chip(compile_partition=reject)
    for check in CHECKS:
        with pytest.raises(SkipTest, match="compiles none of the models"):
            check(tested)


def test_delegates_without_a_compiler_have_nothing_to_check() -> None:
    for check in CHECKS:
        with pytest.raises(SkipTest, match="no installed delegate"):
            check(subject_of(SoundDelegate))


DEADLY = """
import os, signal, time
from dataclasses import replace
from delegraph import engine_compiler, hookimpl
from support.chip_plugin import CHIP, delegraph_delegates

SOUND = engine_compiler(CHIP)

def load_compiled(blob, context, params):
    if not blob.startswith(b"LEVEL1"):
        {fault}
    return SOUND.load_compiled(blob, context, params)

@hookimpl
def delegraph_compilers():
    return [replace(SOUND, load_compiled=load_compiled)]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="faults are signals of POSIX")
@pytest.mark.repetition(1)  # each is a run of pytest
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
        ("time.sleep(1000)", "hung: ended after 3 s *"),
    ],
)
def test_a_loader_that_dies_of_damage_is_named(
    pytester: pytest.Pytester, pytestconfig: pytest.Config, fault: str, what: str
) -> None:
    pytester.makeini(f"[pytest]\npythonpath = . {pytestconfig.rootpath / 'tests'}\n")
    source = DEADLY.format(fault=fault)
    write_distribution(pytester.path, "fake-chip", {"deadly": source}, {"chip": "deadly"})
    pytester.makepyfile(
        "from delegraph.testing import DelegateConformance\n"
        "class TestChip(DelegateConformance):\n    delegate = 'chip'\n"
    )
    checks = "compiled_files or other_versions or damaged_blobs"
    options = ("--delegate-quick", "--delegate-timeout=3", "-k", checks)
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            f"in the check 'damaged blobs are errors' the delegate 'chip' {what}",
            "  File *deadly.py*, line * in load_compiled",
            "  model: *",
            "  saved: *chip-delegraph-compiled-died.tflite",
            "  right: delegraph run *",
        ]
    )
