"""Runs models by Delegraph with both executors: ``python agree.py FOLDER``.

Compares with what TensorFlow 2.18.1's interpreter wrote, and prints in a table how many outputs
agree. With ``--keep``, small models go into the repository's tests.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import written_models

from delegraph import Interpreter
from flex_comparison import difference
from packed_arrays import load, pack, save, unpack

MODELS = Path(__file__).resolve().parent.parent / "models"
"""Where the repository keeps small ones."""

EXECUTORS = ("tensorflow", "numpy")
CHANGED = {
    "unicode.UnicodeEncode": "since then, surrogates are left out where they were replaced",
    "linear_algebra.Svd product": "the converter drops the conjugation of complex factors",
}
"""Cases in which TensorFlow itself changed, or which the converter makes another case of."""

TOLERANCES = {model.name: model.tolerance for model in written_models.MODELS}


def main() -> int:
    """Print the table; return the number of differing outputs and of failing models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", action="store_true", help="copy small models to tests/models")
    arguments = parser.parse_args()
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    details = []
    for path in sorted(arguments.folder.glob("*.tflite")):
        row = path.stem.split(".")[1] if "." in path.stem else path.stem
        failure = path.with_suffix(".golden.txt")
        if failure.exists():
            counts[row]["oracle"]["refused"] += 1
            details.append(f"2.18.1 {path.stem}: {_line(failure.read_text())}")
            continue
        counts[row]["oracle"]["ran"] += 1
        agreeing = []
        for executor in EXECUTORS:
            answers = list(_judged(path, executor))
            for name, verdict, words in answers:
                counts[row][executor][verdict] += 1
                if words:
                    details.append(f"{executor} {name}: {verdict}: {_line(words)}")
            if all(verdict == "agree" for _, verdict, _ in answers):
                agreeing.append(executor)
        if arguments.keep and any(m.name == path.stem and m.is_kept for m in written_models.MODELS):
            _keep(path, agreeing)
    _print(counts, details)
    return sum(
        counts[row][executor][verdict]
        for row in counts
        for executor in EXECUTORS
        for verdict in ("differ", "fail")
    )


def _judged(path: Path, executor: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, verdict and explanation for each output of each call, or one for the model."""
    inputs, data = load(path.with_suffix(".inputs.npz"))
    goldens, right = load(path.with_suffix(".golden.npz"))
    cases, tolerances = inputs.get("cases", {}), inputs.get("tolerances", {})
    try:
        interpreter = Interpreter(str(path), delegates={"flex": {"executor": executor}})
        runner = interpreter.get_signature_runner()
        for (names, arrays), (out_names, expected) in zip(
            inputs["steps"], goldens["steps"], strict=True
        ):
            outputs = runner(**dict(zip(names, unpack(arrays, data), strict=True)))
            for name, value in zip(out_names, unpack(expected, right), strict=True):
                tolerance = tolerances.get(name, TOLERANCES.get(path.stem, 0.0))
                words = difference(outputs[name], value, tolerance)
                shown = cases.get(name, f"{path.stem}.{name}")
                changed = CHANGED.get(shown.rpartition(".")[0], "")
                verdict = "differ" if not changed else "changed"
                yield shown, verdict if words else "agree", changed or words if words else ""
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is a line of the table
        is_refused = "is not supported" in str(error) or "does not have" in str(error)
        yield path.stem, "refused" if is_refused else "fail", f"{type(error).__name__}: {error}"


def _keep(path: Path, executors: list[str]) -> None:
    """Copy a model, its inputs and the oracle's results to the tests."""
    MODELS.mkdir(exist_ok=True)
    shutil.copy(path, MODELS)
    inputs, data = load(path.with_suffix(".inputs.npz"))
    goldens, right = load(path.with_suffix(".golden.npz"))
    packed, steps = bytearray(), []
    for (names, arrays), (out_names, expected) in zip(
        inputs["steps"], goldens["steps"], strict=True
    ):
        both = pack([*unpack(arrays, data), *unpack(expected, right)], packed)
        steps.append([names, both[: len(names)], out_names, both[len(names) :]])
    index = {"steps": steps, "executors": executors, "tolerance": TOLERANCES[path.stem]}
    save(MODELS / f"{path.stem}.npz", index, packed)


def _print(counts: dict[str, dict[str, Counter[str]]], details: list[str]) -> None:
    columns = ("oracle", *EXECUTORS)
    width = max(map(len, counts), default=0) + 2
    print(f"{'model or operator':{width}}" + "".join(f"{column:28}" for column in columns))
    for row in sorted(counts):
        cells = (_cell(counts[row][column]) for column in columns)
        print(f"{row:{width}}" + "".join(f"{cell:28}" for cell in cells).rstrip())
    totals: dict[str, Counter[str]] = {column: Counter() for column in columns}
    for row in counts:
        for column in columns:
            totals[column] += counts[row][column]
    print(f"{'all':{width}}" + "".join(f"{_cell(totals[c]):28}" for c in columns).rstrip())
    print(*details, sep="\n")


def _cell(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counter.items()))


def _line(words: Any) -> str:
    return " ".join(str(words).split())[:300]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(1 if main() else 0)
