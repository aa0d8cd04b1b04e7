"""Runs the cases in the wheel `tflite-micro` and compares, or keeps what it makes of them.

python tests/micro/wheel/record.py PYTHON_WITH_WHEEL [--keep]

`make tflm-oracle` and `make tflm-record` call it. Exit code 1 when a case differs.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from delegraph.micro import runtime
from micro.wheel import fact_models, facts
from micro.wheel.cases import Case, all_cases
from micro.wheel.goldens import FOLDER, Golden, difference, run, write

INTERPRET = Path(__file__).with_name("interpret.py")


def wheel_results(python: str, tasks: list[tuple[bytes, Any]]) -> list[Any]:
    """Return what the wheel makes of models and steps: outputs, or an error in words."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "cases.pickle", Path(folder) / "results.pickle"
        given.write_bytes(pickle.dumps(tasks))
        command = [python, str(INTERPRET), str(given), str(found)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return list(pickle.loads(found.read_bytes()))


def compared(cases: list[Case], results: list[Any]) -> tuple[list[Golden], int]:
    """Return the cases that the wheel runs, and how many of all come out otherwise here."""
    goldens, wrong = [], 0
    for (name, model, steps), result in zip(cases, results, strict=True):
        if isinstance(result, str):
            words = f"the wheel says {result}"
        else:
            goldens.append(Golden(name, model, steps, result))
            words = difference(run(model, steps), result)
        if words:
            wrong += 1
            print(f"DIFFERS {name}: {words}")
    return goldens, wrong


def wheel_facts(python: str) -> Any:
    """Return what comes of each call of the wheel's Python API."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "facts.json"
        command = [python, str(Path(facts.__file__)), str(found)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return json.loads(found.read_text(encoding="utf-8"))


def main() -> int:
    """Compare, keep if asked to, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="a Python with the wheel `tflite-micro` and NumPy")
    parser.add_argument("--keep", action="store_true", help="keep the results for `make test`")
    given = parser.parse_args()
    total = 0
    for name, cases in all_cases().items():
        results = wheel_results(given.python, [(model, steps) for _, model, steps in cases])
        goldens, wrong = compared(cases, results)
        print(f"{name}: {len(cases) - wrong} of {len(cases)} cases are the same bit for bit")
        total += wrong
        if given.keep:
            write(FOLDER / f"{name}.json.xz", goldens)
    if given.keep:
        fact_models.write()
    theirs = wheel_facts(given.python)
    apart = facts.compared(json.loads(json.dumps(facts.outcomes(runtime))), theirs)
    for name, (mine, right) in apart.items():
        print(f"DIFFERS {name}: {mine}, not {right}")
    print(f"facts: {len(theirs) - len(apart)} of {len(theirs)} calls end as in the wheel")
    if given.keep:
        facts.KEPT.write_text(json.dumps(theirs, indent=1) + "\n", encoding="utf-8")
    return 1 if total or apart else 0


if __name__ == "__main__":
    sys.exit(main())
