"""Runs models with numba_cpu at one level, and without: ``compare.py LEVEL MODEL...``.

Integers must be the same; floats may differ by a thousandth of the largest one, or by as much as
the official builtin kernels and XNNPACK's do: layers that quantize what others computed make a
large difference of a last bit. What the core cannot run, as it lacks an operator, is left out.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from ai_edge_litert import interpreter as official

from delegraph import DelegraphError, Interpreter

TOLERANCE = 1e-3

Arrays = list[np.ndarray[Any, Any]]


def main(level: str, *paths: str) -> int:
    """Compare models and print a line for each; return how many models differ."""
    return sum(not _agrees(level, path) for path in paths)


def _agrees(level: str, path: str) -> bool:
    try:
        expected = _outputs(path, {})
    except (DelegraphError, ValueError, RuntimeError) as error:
        print(f"left out {path}: {error}", flush=True)
        return True
    found = _outputs(path, {"numba_cpu": {"cpu": level}})
    wrong = [i for i, pair in enumerate(zip(found, expected, strict=True)) if not _same(*pair)]
    if wrong and all(found[i].dtype.kind == "f" for i in wrong):
        spreads = _differences(*_official_outputs(path))
        differences = _differences(found, expected)
        print("differences", differences, "where official kernels differ by", spreads, end=": ")
        wrong = [i for i in wrong if not differences[i] <= spreads[i]]  # not: a NaN is wrong
    print(f"outputs {wrong} differ in" if wrong else "the same", path, flush=True)
    return not wrong


def _outputs(path: str, delegates: dict[str, dict[str, str]]) -> Arrays:
    return _run(Interpreter(path, delegates=delegates))


def _official_outputs(path: str) -> list[Arrays]:
    """Return the outputs of the builtin kernels, and of XNNPACK's."""
    kinds = official.OpResolverType
    return [
        _run(official.Interpreter(path, experimental_op_resolver_type=kind, num_threads=1))
        for kind in (kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES, kinds.BUILTIN)
    ]


def _run(interpreter: Any) -> Arrays:
    interpreter.allocate_tensors()
    random = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], _input(random, detail["shape"], detail["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def _differences(found: Arrays, expected: Arrays) -> list[float]:
    return [float(np.abs(a - b).max(initial=0.0)) for a, b in zip(found, expected, strict=True)]


def _input(random: np.random.Generator, shape: Any, dtype: Any) -> Any:
    if dtype in (np.int8, np.uint8):
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype == np.float32:
        return random.uniform(-1, 1, shape).astype(dtype)
    return np.zeros(shape, dtype)  # a number of something, or text


def _same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    if found.shape != expected.shape or found.dtype.kind != "f":
        return np.array_equal(found, expected)
    largest = float(np.abs(expected).max(initial=0.0))
    return np.allclose(found, expected, rtol=0, atol=TOLERANCE * largest, equal_nan=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
