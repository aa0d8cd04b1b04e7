"""Recordings whose times a test has chosen."""

from __future__ import annotations

from delegraph import Interpreter
from delegraph.graph import Model, parse_model
from delegraph.runtime.execution.profile import ProfileEvent
from delegraph.tools import Recording, Setup
from delegraph.tools.profiling.recording import Run, TensorFigures
from support.by_name import ByName, sines

START = 5_000_000
"""When the first run begins, in nanoseconds."""

SIN_0, ADD, MUL, SIN_3, LAST = range(5)
"""The nodes of ``sines``: SIN, ADD, MUL, SIN, ADD."""

FIRST_PARTITION, SECOND_PARTITION = 5, 6
"""Nodes of the delegate ``by_name`` that has both SIN."""


def event(
    name: str,
    node: int,
    start: int,
    duration: int,
    delegate: str | None = None,
    fused: tuple[int, ...] = (),
) -> ProfileEvent:
    """Return an event of subgraph 0 that begins *start* nanoseconds after the first run."""
    return ProfileEvent(name, 0, node, START + start, duration, delegate, fused)


def run(start: int, duration: int, *events: ProfileEvent) -> Run:
    """Return a run that begins *start* nanoseconds after the first one."""
    return Run(START + start, duration, events)


def recorded(
    *runs: Run,
    ops: tuple[str, ...] = ("SIN",),
    runtime: str = "delegraph",
    content: bytes | None = None,
) -> Recording:
    """Return a recording of a model of which the delegate ``by_name`` has *ops*.

    Args:
        runs: what it holds.
        ops: names of operators.
        runtime: what ran it.
        content: the model; default: ``sines``.
    """
    content = sines() if content is None else content
    model = parse_model(content)
    interpreter = Interpreter(model_content=content, delegates=[ByName(*ops)])
    setup = Setup("sines.tflite", runtime="litert" if runtime == "litert" else "delegraph")
    return Recording(setup, 0, model, interpreter.placement, (), runs, _tensors(model))


def _tensors(model: Model) -> dict[tuple[int, int], TensorFigures]:
    return {
        (spec.index, t.index): TensorFigures(t.name, t.type.name, t.shape, 4 * (t.index + 1))
        for spec in model.subgraphs
        for t in spec.tensors
    }


TWO_RUNS = (
    run(
        0,
        1000,
        event("SIN", SIN_0, 110, 80, "by_name"),
        event("by_name", FIRST_PARTITION, 100, 100, "by_name"),
        event("ADD", ADD, 300, 50),
        event("MUL", MUL, 400, 100),
        event("by_name", SECOND_PARTITION, 500, 200, "by_name"),
        event("ADD", LAST, 700, 150),
    ),
    run(
        2000,
        1200,
        event("SIN", SIN_0, 2110, 120, "by_name"),
        event("by_name", FIRST_PARTITION, 2100, 150, "by_name"),
        event("ADD", ADD, 2300, 70),
        event("MUL", MUL, 2400, 100),
        event("by_name", SECOND_PARTITION, 2500, 200, "by_name"),
        event("ADD", LAST, 2700, 250),
    ),
)
"""The first partition tells of its node, the second does not."""
