"""A plugin whose engine, a chip, is Delegraph's own interpreter behind a header of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import (
    Capabilities,
    Claim,
    CompilerSpec,
    DelegateContext,
    DelegateSpec,
    EngineDelegate,
    Interpreter,
    PartitionModel,
    engine_compiler,
    hookimpl,
)
from delegraph.errors import PartitionRejected
from delegraph.graph import parse_model
from support.chosen_plugins import use_plugins_of
from support.fake_distributions import write_distribution

EVENTS: list[str] = []
"""What the chip was asked for, in order."""


@dataclass(frozen=True)
class ChipOptions:
    level: int = 1
    fixed: bool = True
    room: int = 10
    longest: int = 10**6


class ChipProgram:
    def __init__(self, compiled: bytes, level: int) -> None:
        header, content = compiled[:6], compiled[6:]
        assert header == b"LEVEL%d" % level, header
        self._interpreter = Interpreter(model_content=content, delegates=[])
        self._interpreter.allocate_tensors()

    def bind(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        EVENTS.append("bind")
        self._inputs, self._outputs = inputs, outputs

    def run(self) -> None:
        EVENTS.append("run")
        details = self._interpreter.get_input_details()
        for detail, array in zip(details, self._inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], array)
        self._interpreter.invoke()
        details = self._interpreter.get_output_details()
        for detail, array in zip(details, self._outputs, strict=True):
            np.copyto(array, self._interpreter.get_tensor(detail["index"]))

    def close(self) -> None:
        EVENTS.append("close")
        self._interpreter.close()


class ChipDelegate(EngineDelegate):
    options: ChipOptions
    version = "1.0"

    def __init__(self, options: ChipOptions) -> None:
        super().__init__(options)
        self.allows_dynamic_shapes = not options.fixed

    def name(self) -> str:
        return "chip"

    def capabilities(self) -> Capabilities:
        add = Claim("ADD", "FLOAT32", "dynamic-shapes")
        return Capabilities([add, Claim("MUL", "FLOAT32", "broadcast", "dynamic-shapes")])

    def compile(self, model: PartitionModel) -> bytes:
        EVENTS.append("compile")
        if len(model.nodes) > self.options.room:
            raise PartitionRejected("no room", constraint="room")
        graph = parse_model(model.content).subgraphs[0]
        if any(math.prod(graph.tensors[i].shape) > self.options.longest for i in graph.inputs):
            raise PartitionRejected("too long", constraint="longest")
        return b"LEVEL%d" % self.options.level + model.content

    def load(self, compiled: bytes, context: DelegateContext) -> ChipProgram:
        EVENTS.append("load")
        return ChipProgram(compiled, self.options.level)


CHIP = DelegateSpec("chip", "an engine", lambda: ChipDelegate, ChipOptions)


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    return [CHIP]


@hookimpl
def delegraph_compilers() -> list[CompilerSpec]:
    return [engine_compiler(CHIP)]


def install_chip(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with distribution ``fake-chip`` installed, an empty cache and no events."""
    EVENTS.clear()
    monkeypatch.setenv("DELEGRAPH_CACHE", str(site / "cache"))
    write_distribution(site, "fake-chip", {}, {"chip": __name__})
    use_plugins_of(monkeypatch, site)
