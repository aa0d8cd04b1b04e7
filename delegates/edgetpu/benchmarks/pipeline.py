"""Measures a pipeline: ``python benchmarks/pipeline.py [MODEL] [--segments 3] [--via numba_cpu]``.

The model is compiled whole and in segments, one simulated device each. The same inputs go through
the source model, the compiled one, the segments one after the other, and the pipeline; all answers
must be equal. The ways take turns, and the fastest run of each counts. Segments compute in
threads of one process, so the pipeline gains what the cores and the interpreter lock leave it; on
devices of their own it would gain the number of segments, less what the slowest one has more.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import delegraph_edgetpu
from delegraph import Interpreter
from delegraph.tools import all_times, interleave, random_values
from delegraph_edgetpu.compilation import Compilation
from delegraph_edgetpu.devices import VARIABLE

DEFAULT_MODEL = (
    Path(__file__).parents[4] / "shared/corpus/models/test_data__mobilenet_v1_0.25_128_quant.tflite"
)

Arrays = list[NDArray[Any]]
Answers = list[Any]
"""Outputs by name, for each input."""

Run = Callable[[list[Arrays]], Answers]


@dataclass(frozen=True)
class Result:
    """Result of one way to run the model.

    Attributes:
        name: the way.
        seconds: for all inputs, in the fastest run.
        answers: the outputs for each input, by name.
    """

    name: str
    seconds: float
    answers: Answers


def random_inputs(model: Path, count: int) -> list[Arrays]:
    """Return *count* random inputs for the model, the same in every call."""
    rng = np.random.default_rng(0)
    with Interpreter(str(model)) as interpreter:
        details = interpreter.get_input_details()
        return [[random_values(detail, rng) for detail in details] for _ in range(count)]


def one_after_the_other(interpreters: Sequence[Interpreter], inputs: list[Arrays]) -> Answers:
    """Return the outputs for each input when the segments take turns."""
    answers = []
    first = [detail["name"] for detail in interpreters[0].get_input_details()]
    for given in inputs:
        values = dict(zip(first, given, strict=True))
        for interpreter in interpreters:
            for detail in interpreter.get_input_details():
                interpreter.set_tensor(detail["index"], values[detail["name"]])
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                values[detail["name"]] = interpreter.get_tensor(detail["index"])
        answers.append(values)
    return answers


def in_a_pipeline(interpreters: Sequence[Interpreter], inputs: list[Arrays]) -> Answers:
    """Return the outputs for each input when the segments run at the same time."""
    names = [detail["name"] for detail in interpreters[0].get_input_details()]
    with delegraph_edgetpu.PipelinedModelRunner(interpreters) as runner:
        for given in inputs:
            runner.push(dict(zip(names, given, strict=True)))
        return [runner.pop() for _ in inputs]


def measured(ways: dict[str, Run], inputs: list[Arrays], seconds: float) -> list[Result]:
    """Return the result of each of the *ways* to run the model."""
    answers = {name: run(inputs) for name, run in ways.items()}
    runs = {name: functools.partial(run, inputs) for name, run in ways.items()}
    times = interleave(runs, seconds, blocks=2)
    return [Result(name, float(all_times(times[name]).min()), answers[name]) for name in ways]


def interpreters_of(compiled: list[Compilation], folder: Path, via: str) -> list[Interpreter]:
    """Return an interpreter for each segment, each on its own device."""
    made = []
    for number, segment in enumerate(compiled):
        options = {"device": f":{number}", "via": via}
        made.append(Interpreter(str(segment.write(folder)), delegates={"edgetpu": options}))
        made[-1].allocate_tensors()
    return made


def compare(model: Path, segments: int, count: int, seconds: float, via: str) -> list[Result]:
    """Return the result of each way to run the model."""
    inputs = random_inputs(model, count)
    source = Interpreter(str(model), delegates=[via] if via else [])
    source.allocate_tensors()
    with tempfile.TemporaryDirectory() as folder:
        compiled = interpreters_of(delegraph_edgetpu.compile(model), Path(folder), via)
        parts = delegraph_edgetpu.compile(model, segments=segments)
        chain = interpreters_of(parts, Path(folder), via)
    ways: dict[str, Run] = {
        "source model": lambda given: one_after_the_other([source], given),
        "compiled": lambda given: one_after_the_other(compiled, given),
        f"{segments} segments, one after the other": lambda g: one_after_the_other(chain, g),
        f"{segments} segments, pipeline": lambda given: in_a_pipeline(chain, given),
    }
    return measured(ways, inputs, seconds)


def require_equal(results: list[Result], outputs: list[str]) -> None:
    """Exit with an error if outputs differ from those of the source model."""
    for result in results[1:]:
        for got, expected in zip(result.answers, results[0].answers, strict=True):
            for name in outputs:
                np.testing.assert_array_equal(got[name], expected[name], err_msg=result.name)


def main() -> None:
    """Print the inferences per second of each way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--segments", type=int, default=3)
    parser.add_argument("--count", type=int, default=50, help="inferences a run")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--via", default="", help="delegate that computes, numba_cpu")
    args = parser.parse_args()
    os.environ.setdefault(VARIABLE, str(args.segments))
    results = compare(args.model, args.segments, args.count, args.seconds, args.via)
    with Interpreter(str(args.model)) as interpreter:
        require_equal(results, [d["name"] for d in interpreter.get_output_details()])
    table = Table("", "inferences/s", "compared", title=f"{args.model.stem}: all answers equal")
    for result in results:
        rate = f"{args.count / result.seconds:.1f}"
        table.add_row(result.name, rate, f"{results[0].seconds / result.seconds:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
