from __future__ import annotations

import logging
from pathlib import Path

import pytest

from support.command import Command
from support.fake_distributions import write_plugin

NOISY = """\
import logging
from delegraph import CommandSpec, hookimpl

logging.getLogger(__name__).info("imported %s", "\\x1b[2J")
logging.getLogger("elsewhere").error("not ours")

@hookimpl
def delegraph_commands():
    return [CommandSpec("nothing", "does nothing", load=print)]
"""


def test_verbose_tells_model_delegates_and_memory(delegraph: Command, sines: Path) -> None:
    ran = delegraph("run", sines, "-d", "sin", "-v")
    assert ran.code == 0
    err = ran.err
    assert err.count(f"info: delegraph.graph.loader: read {sines}: ") == 1  # it is read twice
    taken = "delegate 'sin' takes 2 of 5 nodes of subgraph 0, in 2 partitions"
    assert f"info: delegraph.runtime.delegates.delegate_stack: {taken}" in err
    assert "info: delegraph.runtime.subgraph: subgraph 0: " in err
    assert "debug: " not in err


@pytest.mark.parametrize("words", [("-vv",), ("--log-level", "debug")])
@pytest.mark.parametrize("is_before", [True, False])
def test_debug_tells_why_nodes_are_left(
    delegraph: Command, sines: Path, words: tuple[str, ...], is_before: bool
) -> None:
    command = ("explain", sines, "-d", "sin")
    ran = delegraph(*words, *command) if is_before else delegraph(*command, *words)
    assert ran.code == 0
    assert "delegate 'sin' leaves node 1 (ADD): op: is ADD, needs SIN" in ran.err
    assert "ADD" in ran.out


def test_json_stays_alone_on_standard_output(delegraph: Command, sines: Path) -> None:
    ran = delegraph("run", sines, "--json", "-vv")
    assert ran.json["model"] == str(sines)
    assert "info: " in ran.err


def test_too_many_threads_are_warned_of_once(delegraph: Command, sines: Path) -> None:
    brief = ("--runs", 2, "--min-seconds", 0, "--warmup-seconds", 0)
    ran = delegraph("benchmark", sines, "-d", "none", "--threads", 9999, *brief, "--op-profile")
    assert ran.err.count("num_threads is 9999") == 1


def test_loggers_are_left_as_they_were(delegraph: Command, sines: Path) -> None:
    logger = logging.getLogger("delegraph")
    before = (logger.level, list(logger.handlers))
    delegraph("inspect", sines, "-vv")
    assert (logger.level, logger.handlers) == before
    assert delegraph("inspect", sines).err == ""


def test_plugins_are_heard_and_others_are_not(fresh_delegraph: Command, tmp_path: Path) -> None:
    write_plugin(tmp_path / "site", "noisy", NOISY)
    ran = fresh_delegraph("plugins", "info", "noisy", "-v", PYTHONWARNINGS="ignore")
    assert ran.code == 0
    assert "info: fake_noisy: imported \\x1b[2J\n" in ran.err
    assert "plugin 'noisy' of fake-noisy 1.0: ok, offers command nothing" in ran.err
