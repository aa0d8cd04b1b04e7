"""Compiles models and compares what they compute: ``python compile_models.py MODEL...``.

Each model is compiled, and it and the compiled file run side by side on the same random inputs,
twice, so that state is compared as well; every output must be the same, bit for bit. A model that
cannot be compiled is listed with the reason. The exit status is 0 when no output differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter, load_delegate
from delegraph.errors import DelegraphError
from delegraph.tools import random_values
from delegraph_edgetpu import compile as compile_model
from delegraph_edgetpu.compilation import Compilation
from delegraph_edgetpu.errors import CannotCompile

RUNS = 2


def main() -> int:
    """Compile the models of the command line, and compare them with their sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--segments", type=int, default=1)
    parser.add_argument("--delegate", action="store_true", help="let the delegate claim the op")
    parser.add_argument("--via", default="", help="what the delegate runs the executable with")
    arguments = parser.parse_args()
    counts = dict.fromkeys(("equal", "different", "not compiled", "not run"), 0)
    for path in arguments.models:
        verdict, detail = judge(path, arguments)
        counts[verdict] += 1
        print(f"{verdict:12}  {path.stem}: {detail}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["different"] or counts["not run"] else 0


def judge(path: Path, arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the result of comparing the compiled model with its source, and an explanation."""
    try:
        compiled = compile_model(path, segments=arguments.segments)
    except (CannotCompile, DelegraphError) as error:
        return "not compiled", str(error).removeprefix(f"{path}: ")
    what = describe(compiled)
    try:
        different = differing_outputs(path, compiled, arguments)
    except DelegraphError as error:
        return "not run", f"{what}; {error}"
    return ("different", f"{what}; outputs {different}") if different else ("equal", what)


def describe(compiled: Sequence[Compilation]) -> str:
    """Return text about the mapped part of a model."""
    mapped = sum(len(compilation.mapped) for compilation in compiled)
    total = sum(len(compilation.operators) for compilation in compiled)
    return f"{mapped} of {total} operators map"


def differing_outputs(
    path: Path, compiled: Sequence[Compilation], arguments: argparse.Namespace
) -> list[int]:
    """Return the positions of outputs that differ in any run."""
    rng = np.random.default_rng(0)
    source = Interpreter(model_path=str(path))
    segments = [interpreter(compilation.model, arguments) for compilation in compiled]
    source.allocate_tensors()
    different: set[int] = set()
    for _ in range(RUNS):
        values = {d["name"]: random_values(d, rng) for d in source.get_input_details()}
        expected = outputs(source, values)
        for segment in segments:
            values |= outputs(segment, values)
        different.update(
            position
            for position, (name, array) in enumerate(expected.items())
            if not np.array_equal(array, values[name], equal_nan=array.dtype.kind == "f")
        )
    return sorted(different)


def interpreter(model: bytes, arguments: argparse.Namespace) -> Interpreter:
    """Return an interpreter of a compiled model."""
    options = {"via": arguments.via} if arguments.via else {}
    delegates = [load_delegate("edgetpu", options)] if arguments.delegate or options else None
    made = Interpreter(model_content=model, experimental_delegates=delegates)
    made.allocate_tensors()
    return made


def outputs(model: Interpreter, values: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the outputs of *model* for *values*, by tensor name."""
    for detail in model.get_input_details():
        model.set_tensor(detail["index"], values[detail["name"]])
    model.invoke()
    return {d["name"]: np.array(model.get_tensor(d["index"])) for d in model.get_output_details()}


if __name__ == "__main__":
    sys.exit(main())
