"""What the wheel `tflite-micro` makes of cases, kept so that tests need no wheel.

A case is a model and steps: the arrays for the inputs, or "reset". Beside each invoke are its
outputs. Places that TFLM leaves unwritten are not compared: output 0 where the last one is false.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.micro import MicroInterpreter

FOLDER = Path(__file__).with_name("goldens")
ARENA_BYTES = 1 << 22

Step = tuple[NDArray[Any], ...] | str
Outputs = list[NDArray[Any]]


@dataclass(frozen=True)
class Golden:
    """A case with the outputs of each invoke, or how the wheel ends: its error, "crashes"."""

    name: str
    model: bytes
    steps: tuple[Step, ...]
    outputs: list[Outputs] | str


def run(model: bytes, steps: tuple[Step, ...]) -> list[Outputs]:
    """Return what a micro interpreter makes of a case."""
    interpreter = MicroInterpreter(model, bytearray(ARENA_BYTES))
    interpreter.allocate_tensors()
    results = []
    for step in steps:
        if isinstance(step, str):
            interpreter.reset_variables()
            continue
        for i, array in enumerate(step):
            interpreter.input(i).data[...] = array
        interpreter.invoke()
        outputs = [interpreter.output(i) for i in range(interpreter.outputs_size)]
        results.append([np.array(output.data) for output in outputs])
    return results


def difference(mine: list[Outputs], theirs: list[Outputs] | str) -> str:
    """Return what differs, bit by bit; empty if nothing does."""
    if isinstance(theirs, str):
        return f"the wheel says {theirs}"
    for invoke, (ours, right) in enumerate(zip(mine, theirs, strict=True)):
        for i, (a, b) in enumerate(zip(ours, right, strict=True)):
            if _is_unwritten(i, right):
                continue
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return f"invoke {invoke}, output {i}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            if a.tobytes() != b.tobytes():
                apart = np.flatnonzero(a.reshape(-1) != b.reshape(-1))
                first = apart[:1]
                found, expected = a.reshape(-1)[first], b.reshape(-1)[first]
                return (
                    f"invoke {invoke}, output {i}: {len(apart)} of {a.size} differ, "
                    f"at {first}: {found}, not {expected}"
                )
    return ""


def _is_unwritten(output: int, outputs: Outputs) -> bool:
    return output == 0 and outputs[-1].dtype == bool and not outputs[-1].all()


def _written(outputs: Outputs) -> Outputs:
    """Return outputs with zeros where there is what the wheel's memory held."""
    return [np.zeros_like(a) if _is_unwritten(i, outputs) else a for i, a in enumerate(outputs)]


def write(path: Path, goldens: list[Golden]) -> None:
    """Write cases and outputs into one file."""
    records = [
        {
            "name": golden.name,
            "model": base64.b64encode(golden.model).decode(),
            "steps": [s if isinstance(s, str) else [_packed(a) for a in s] for s in golden.steps],
            "outputs": golden.outputs
            if isinstance(golden.outputs, str)
            else [[_packed(a) for a in _written(each)] for each in golden.outputs],
        }
        for golden in goldens
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(json.dumps(records).encode()))


def read(path: Path) -> Iterator[Golden]:
    """Yield what :func:`write` wrote."""
    for record in json.loads(lzma.decompress(path.read_bytes())):
        steps = tuple(s if isinstance(s, str) else _arrays(s) for s in record["steps"])
        outputs = record["outputs"]
        if not isinstance(outputs, str):
            outputs = [list(_arrays(packed)) for packed in outputs]
        yield Golden(record["name"], base64.b64decode(record["model"]), steps, outputs)


def _packed(array: NDArray[Any]) -> list[Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return [array.dtype.str, array.shape, data]


def _arrays(packed: list[list[Any]]) -> tuple[NDArray[Any], ...]:
    return tuple(
        np.frombuffer(base64.b64decode(data), dtype).reshape(shape) for dtype, shape, data in packed
    )
