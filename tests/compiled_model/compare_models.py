"""Runs the models of a folder in the official ``CompiledModel`` and in Delegraph's; compares.

Usage::

    python tests/compiled_model/compare_models.py FOLDER [--builtin]

Each model runs twice on equal inputs: those of ``../golden/NAME.npz`` beside the folder, or random
ones. Integers must be equal, floats within a thousandth of the largest absolute value of the
output. The official class runs with its builtin kernels, since XNNPACK rounds integers differently;
``--builtin`` runs Delegraph without default delegate, too. Each model has a process of its own,
because the official class ends the process at some.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

OFFICIAL, OURS = "ai_edge_litert.compiled_model", "delegraph.compiled_model"

SECONDS = 300
"""Time that a model may take in one of the two."""

FLOAT_TOLERANCE = 1e-3


def inputs_of(path: Path, buffers: Sequence[Any]) -> list[NDArray[Any]]:
    """Return the value of each input buffer as bytes."""
    golden = path.parents[1] / "golden" / f"{path.stem}.npz"
    stored: dict[str, NDArray[Any]] = {}
    if golden.is_file():
        with np.load(golden, allow_pickle=True) as archive:
            stored = dict(archive)
    generator = np.random.default_rng(0)
    values = []
    for i, buffer in enumerate(buffers):
        details = buffer.get_tensor_details()
        known = stored.get(f"in_{i}")
        if known is None or list(known.shape) != details["shape"]:
            known = random_values(generator, details)
        values.append(known)
    return values


def random_values(generator: np.random.Generator, details: dict[str, Any]) -> NDArray[Any]:
    """Return values of a buffer's type and shape."""
    dtype, shape = details["dtype"], details["shape"]
    if dtype == "unknown":
        return np.full(shape, b"some text", object)
    if dtype.startswith(("float", "bfloat")):
        return generator.uniform(-1, 1, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def outputs_of(module: str, path: Path, builtin: bool) -> list[tuple[str, NDArray[Any]]]:
    """Return type and values of each output of the first signature."""
    api = import_module(module)
    mode = api.CpuKernelMode.BUILTIN if builtin or module == OFFICIAL else None
    options = api.Options(cpu_options=api.CpuOptions(1, mode))
    model = api.CompiledModel.from_file(str(path), options=options)
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    for buffer, value in zip(inputs, inputs_of(path, inputs), strict=True):
        is_text = value.dtype.kind in "OSU"
        buffer.write(value if is_text else np.ascontiguousarray(value).reshape(-1).view(np.uint8))
    model.run_by_index(0, inputs, outputs)
    return [values_of(buffer) for buffer in outputs]


def values_of(buffer: Any) -> tuple[str, NDArray[Any]]:
    """Return the type of a buffer, and its values; bytes for types without a name."""
    details = buffer.get_tensor_details()
    count = int(np.prod(details["shape"]))
    try:
        dtype = np.dtype(details["dtype"])
    except TypeError:
        return details["dtype"], buffer.read(count, object)
    return details["dtype"], buffer.read(count * dtype.itemsize, np.uint8).view(dtype)


def attempt(pipe: Any, module: str, path: Path, builtin: bool) -> None:
    """Send the outputs, or the text of the error."""
    warnings.simplefilter("ignore")
    try:
        pipe.send(outputs_of(module, path, builtin))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        pipe.send(f"{type(error).__name__}: {str(error).splitlines()[-1][:150]}")


def answer_of(module: str, path: Path, builtin: bool) -> Any:
    """Return the outputs of a model in a process of its own, or the text of what went wrong."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=attempt, args=(there, module, path, builtin))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(SECONDS) else f"took more than {SECONDS} s"
    except EOFError:
        process.join()
        return f"the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()


def difference(official: Any, ours: Any) -> str:
    """Return how far two lists of outputs differ; empty where they agree."""
    if [dtype for dtype, _ in official] != [dtype for dtype, _ in ours]:
        return "other types"
    for i, ((dtype, wanted), (_, found)) in enumerate(zip(official, ours, strict=True)):
        if wanted.shape != found.shape:
            return f"output {i}: {wanted.size} and {found.size} elements"
        if "float" not in dtype:
            if (count := int((wanted != found).sum())) > 0:
                return f"output {i}: {count} of {wanted.size} of {dtype} differ"
            continue
        wide, own = wanted.astype(np.float64), found.astype(np.float64)
        finite = np.isfinite(wide)
        if not np.array_equal(wide[~finite], own[~finite], equal_nan=True):
            return f"output {i}: other infinite values"
        largest = np.abs(wide[finite]).max(initial=1e-30)
        worst = np.abs(wide - own)[finite].max(initial=0) / largest
        if worst > FLOAT_TOLERANCE:
            return f"output {i}: {worst:.2g} of the largest value"
    return ""


def main(arguments: Sequence[str]) -> int:
    """Print a line for each model that differs, and counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--builtin", action="store_true", help="no default delegate here, either")
    given = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for path in sorted(given.folder.glob("*.tflite")):
        official, ours = (answer_of(m, path, given.builtin) for m in (OFFICIAL, OURS))
        runs = not isinstance(official, str), not isinstance(ours, str)
        kind, text = {
            (False, False): ("neither runs it", f"{official} | {ours}"),
            (True, False): ("the official one alone runs it", str(ours)),
            (False, True): ("Delegraph alone runs it", str(official)),
        }.get(runs, ("equal", ""))
        if all(runs) and (text := difference(official, ours)):
            kind = "different"
        counts[kind] += 1
        if text:
            print(f"{path.stem}: {kind}: {text}", flush=True)
    for kind, count in sorted(counts.items()):
        print(f"{count:4} {kind}")
    return int(counts["different"] + counts["the official one alone runs it"] > 0)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main(sys.argv[1:]))
