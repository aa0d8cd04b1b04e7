"""Compiling ahead of time with the methods of an engine's delegate."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, engine_compiler
from delegraph.delegation.compiled_partition import compiled_partitions
from delegraph.errors import UnresolvedOpError
from delegraph.graph import parse_model
from delegraph.native import LiteRtInterpreter
from delegraph.tools import compile_model
from support.by_name import Y, run, sines
from support.chip_plugin import CHIP, EVENTS, ChipDelegate, install_chip

HOSTS = pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])

Host = Callable[..., Any]


@pytest.fixture(autouse=True)
def installed_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_chip(tmp_path, monkeypatch)


@HOSTS
def test_a_compiled_file_is_loaded_with_its_options_and_not_compiled(host: Host) -> None:
    compiled = compile_model(sines(), ["chip:level=2"]).content
    assert EVENTS == ["compile", "compile"]
    EVENTS.clear()
    with host(model_content=compiled) as made:
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)
    assert "compile" not in EVENTS
    assert EVENTS.count("load") == EVENTS.count("close") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="processes of delegates are Linux's")
@HOSTS
def test_an_isolated_delegate_loads_in_its_own_process(host: Host) -> None:
    compiled = compile_model(sines(), ["chip:level=2"]).content
    EVENTS.clear()
    with host(model_content=compiled, failures=FailurePolicy(isolate="process")) as made:
        np.testing.assert_allclose(run(made), Y, rtol=1e-6)
    assert EVENTS == []


def test_what_the_engine_refuses_stays_uncompiled() -> None:
    made = compile_model(sines(), ["chip:room=1"])
    assert len(compiled_partitions(parse_model(made.content))) < 2


def test_the_version_is_that_of_the_class_or_of_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_compiler(CHIP).version() == "1.0"
    assert engine_compiler(CHIP, lambda: "2.0").version() == "2.0"
    compiled = compile_model(sines(), ["chip"]).content
    monkeypatch.setattr(ChipDelegate, "version", "1.1")
    with pytest.raises(UnresolvedOpError, match=r"as version '1.0'.*version '1.1'"):
        Interpreter(model_content=compiled).allocate_tensors()
