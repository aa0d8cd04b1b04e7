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
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from delegraph.errors import DelegraphError
from delegraph.micro import runtime
from differences.difference import agree
from micro.wheel import fact_models, facts
from micro.wheel.cases import Case, all_cases
from micro.wheel.difference_cases import differences
from micro.wheel.goldens import FOLDER, Golden, difference, run, write
from micro.wheel.operator_cases import operators

INTERPRET = Path(__file__).with_name("interpret.py")
KEPT_COUNT = 2
ENDS = ("same", "rounded otherwise", "only here", "crash of the wheel")
LISTED = (
    *("ADD", "DEQUANTIZE", "EMBEDDING_LOOKUP", "SPACE_TO_BATCH_ND"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
)
"""Operators with an entry in docs/differences.md."""


def wheel_results(python: str, tasks: list[tuple[bytes, Any]]) -> list[Any]:
    """Return what the wheel makes of models and steps: outputs, or an error in words."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "cases.pickle", Path(folder) / "results.pickle"
        given.write_bytes(pickle.dumps(tasks))
        command = [python, str(INTERPRET), str(given), str(found)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return list(pickle.loads(found.read_bytes()))


def goldens_of(python: str, cases: list[Case]) -> list[Golden]:
    """Return the cases with what the wheel makes of each."""
    results = wheel_results(python, [(model, steps) for _, model, steps in cases])
    return [Golden(*case, result) for case, result in zip(cases, results, strict=True)]


def verdict(golden: Golden) -> str:
    """Return how a case ends here, beside the wheel."""
    if isinstance(golden.outputs, str):
        return "crash of the wheel" if golden.outputs in ("crashes", "hangs") else "only here"
    try:
        mine = run(golden.model, golden.steps)
    except DelegraphError as error:
        return f"refused here: {error}"
    found = difference(mine, golden.outputs)
    if found and agree(mine, golden.outputs):
        return "rounded otherwise"
    return found or "same"


def survey(python: str, count: int) -> tuple[list[Golden], int]:
    """Print how the cases of all operators end; return the integer ones that are the same."""
    ends: Counter[str] = Counter()
    same, wrong = [], 0
    for golden in goldens_of(python, list(operators(count))):
        end = verdict(golden)
        if end not in ENDS:
            is_listed = golden.name.partition("/")[0] in LISTED
            wrong += not is_listed
            print(f"{'LISTED' if is_listed else 'DIFFERS'} {golden.name}: {end}")
            end = "otherwise"
        ends[end] += 1
        if end == "same" and all(a.dtype.kind in "biu" for each in golden.outputs for a in each):
            same.append(golden)
    print(f"operators: {'; '.join(f'{number} {end}' for end, number in ends.most_common())}")
    return same, wrong


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
    parser.add_argument("--count", type=int, default=10, help="random cases of each operator")
    given = parser.parse_args()
    wrong = 0
    for name, cases in all_cases().items():
        goldens = goldens_of(given.python, cases)
        apart = {g.name: verdict(g) for g in goldens}
        for case, words in apart.items():
            if words != "same":
                print(f"DIFFERS {case}: {words}")
        same = list(apart.values()).count("same")
        wrong += len(cases) - same
        print(f"{name}: {same} of {len(cases)} are the same bit for bit")
        if given.keep:
            write(FOLDER / f"{name}.json.xz", goldens)
    _, found = survey(given.python, given.count)
    wrong += found
    if given.keep:
        write(FOLDER / "operators.json.xz", survey(given.python, KEPT_COUNT)[0])
        write(FOLDER / "differences.json.xz", goldens_of(given.python, list(differences())))
    if given.keep:
        fact_models.write()
    theirs = wheel_facts(given.python)
    apart = facts.compared(json.loads(json.dumps(facts.outcomes(runtime))), theirs)
    for name, (mine, right) in apart.items():
        print(f"DIFFERS {name}: {mine}, not {right}")
    print(f"facts: {len(theirs) - len(apart)} of {len(theirs)} calls end as in the wheel")
    if given.keep:
        facts.KEPT.write_text(json.dumps(theirs, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong or apart else 0


if __name__ == "__main__":
    sys.exit(main())
