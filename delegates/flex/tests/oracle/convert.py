"""Converts models by the current TensorFlow: ``python convert.py FOLDER [--only WORD]``.

Writes each as ``NAME.tflite``, with its inputs in ``NAME.inputs.npz``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import case_models
import tensorflow as tf
import written_models
from numpy.typing import NDArray

from flex_cases import Case
from packed_arrays import pack, save

Task = tuple[str, Any]
"""The name of a model, and a written model or named cases."""

Steps = list[dict[str, NDArray[Any]]]
"""The inputs of one call after the other, by name."""


def main() -> None:
    """Convert all models, or those whose name contains a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="WORD")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tasks: list[Task] = [(model.name, model) for model in written_models.MODELS]
    tasks += case_models.groups().items()
    _convert_all([task for task in tasks if arguments.only in task[0]], arguments.folder)


def _convert_all(tasks: list[Task], folder: Path) -> None:
    """Convert in a child process, since the converter may crash; continue after a crash."""
    fork = multiprocessing.get_context("fork")
    while tasks:
        done = fork.Value("i", 0)
        process = fork.Process(target=_convert, args=(tasks, folder, done))
        process.start()
        process.join()
        if process.exitcode == 0:
            return
        name, source = tasks[done.value]
        tasks = tasks[done.value + 1 :]
        if isinstance(source, list) and len(source) > 1:
            tasks = _halves(name, source) + tasks
        else:
            print(f"not convertible: {name}: the converter ended with {process.exitcode}")


def _convert(tasks: list[Task], folder: Path, done: Any) -> None:
    tf.get_logger().setLevel("ERROR")
    for name, source in tasks:
        if isinstance(source, list):
            for part, data, cases in _converted(name, source):
                _write_cases(folder, part, data, cases)
        else:
            write(folder, name, source.convert(), source.steps)
        done.value += 1


def write(folder: Path, name: str, data: bytes, steps: Steps, **more: Any) -> None:
    """Write a model and its inputs."""
    (folder / f"{name}.tflite").write_bytes(data)
    packed = bytearray()
    index = [[list(step), pack(list(step.values()), packed)] for step in steps]
    save(folder / f"{name}.inputs.npz", {"steps": index, **more}, packed)


def _write_cases(folder: Path, name: str, data: bytes, cases: list[tuple[str, Case]]) -> None:
    inputs = {
        f"x{i}_{j}": x for i, (_, case) in enumerate(cases) for j, x in enumerate(case.inputs)
    }
    runs = max(case.runs for _, case in cases)
    tolerances = {
        f"y{i}_{j}": case.tolerance
        for i, (_, case) in enumerate(cases)
        for j in range(len(case.outputs))
    }
    cases_of = {
        f"y{i}_{j}": name for i, (name, c) in enumerate(cases) for j in range(len(c.outputs))
    }
    write(folder, name, data, [inputs] * runs, tolerances=tolerances, cases=cases_of)


def _halves(name: str, cases: list[tuple[str, Case]]) -> list[Task]:
    middle = len(cases) // 2
    return [(f"{name}a", cases[:middle]), (f"{name}b", cases[middle:])]


def _converted(
    name: str, cases: list[tuple[str, Case]]
) -> Iterator[tuple[str, bytes, list[tuple[str, Case]]]]:
    """Yield one model of all cases, or several models if the converter needs that."""
    try:
        yield name, select(case_models.concrete_function(cases)), cases
    except Exception as error:  # noqa: BLE001 - the converter refuses in many ways
        if len(cases) == 1:
            reason = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
            print(f"not convertible: {cases[0][0]}: {reason[:150]}", flush=True)
            return
        for part, half in _halves(name, cases):
            yield from _converted(part, half)


def select(function: Any) -> bytes:
    """Return a model in which every operator is a Flex operator."""
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], tf.Module())
    converter.target_spec.supported_ops = [tf.lite.OpsSet.SELECT_TF_OPS]
    converter._experimental_allow_all_select_tf_ops = True
    model: bytes = converter.convert()
    return model


if __name__ == "__main__":
    main()
