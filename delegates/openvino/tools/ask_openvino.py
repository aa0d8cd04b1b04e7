#!/usr/bin/env python3
"""Ask OpenVINO what it computes as TFLite does, and write the claims of the delegate.

    python delegates/openvino/tools/ask_openvino.py asked.jsonl [--minutes 9] [--again ADD MUL]

Every operator is tried with the models of the conformance kit, alone and among transpositions, in a
child process, as some crash. Kept are the types, and of each the features, with which all results
were right, and by how many units 8-bit results were off. Features whose models fail are left out,
the fewest first.

The answers about an operator are a line of ``asked.jsonl``. Run again, the script goes on where it
stopped; claims are written when all operators are there, all asked of one version of OpenVINO.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.pool
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino

from delegraph import Capabilities, Claim, Tolerance
from delegraph.delegation import FEATURES
from delegraph.testing import (
    REGISTERED_OPERATORS,
    Attempt,
    Subject,
    Trial,
    attempt,
    cases,
    subject_of,
    transposed,
    trial_of,
    wrong,
)
from delegraph_openvino.claims import QUANTIZED, TOLERANCE

CLAIMS = Path(__file__).parents[1] / "src/delegraph_openvino/claims.json"
TYPES = ("BOOL", "FLOAT16", "FLOAT32", "INT8", "INT32", "UINT8")
"""Not INT64, which OpenVINO computes in 32 bits on the CPU."""
NEVER = frozenset({"dynamic-shapes", "empty", "extreme-values", "sparse", "subgraph"})
"""Features that are not claimed of any operator: where some fail, a partition fails as a whole."""

COUNT = 40
SEEDS = 5
ENOUGH = 14
"""Models of each combination of types, after which no more are tried."""
UNITS = 2
"""How far 8-bit results may be off to be claimed."""
HOPELESS = 4
"""Models of which all fail, after which no more are tried."""
SECONDS = 120
"""Time for a model."""

Types = tuple[tuple[str, str], ...]
"""Role and type of the operands."""
REFUSED = "by a rule"
"""What was wrong with a model that the delegate refuses for another reason than its claims."""


class Tried(NamedTuple):
    """A model of the kit, the fault in its results, and the number of units that they are off."""

    types: Types
    features: frozenset[str]
    fault: str
    units: int = 0


def tried(op: str, before: Sequence[Tried]) -> Iterator[Tried]:
    """Yield the outcome of the kit's models of an operator, after those of *before*.

    First each comes as one that has crashed, in case it does, and then with its result.
    """
    subject = everything(op)
    seen: Counter[Types] = Counter()
    right: Counter[Types] = Counter()
    known = list(before)
    for case in (case for seed in range(SEEDS) for case in cases(op, seed=seed, count=COUNT)):
        trial = trial_of(case) if _is_wanted(op, frozenset(case.types())) else None
        if trial is None or trial.features & NEVER or len(trial.forms) > 1:
            continue
        types = tuple(dict.fromkeys(next(iter(trial.forms)).types))
        is_hopeless = seen[types] >= HOPELESS and not right[types]
        if is_hopeless or seen[types] >= ENOUGH or len(dict(types)) < len(types):
            continue
        if known:
            made = known.pop(0)
        else:
            yield Tried(types, trial.features, "it crashed")
            made = Tried(types, trial.features, *_fault(subject, trial))
            yield made
        if made.fault != REFUSED:
            seen[types] += 1
            right[types] += not made.fault


def everything(op: str) -> Subject:
    """Return the delegate with claims of all forms of an operator."""
    from delegraph_openvino import delegate
    from delegraph_openvino.options import OpenvinoOptions

    claimed = Capabilities(
        [Claim([op, "TRANSPOSE"], TYPES, *FEATURES.keys() - NEVER)],
        tolerance=TOLERANCE | dict.fromkeys(QUANTIZED, Tolerance(absolute=UNITS)),
    )
    delegate.capabilities = lambda quantized: claimed  # type: ignore[assignment]
    return subject_of(lambda: delegate.OpenvinoDelegate(OpenvinoOptions(quantized=True)), claimed)


def _fault(subject: Subject, trial: Trial) -> tuple[str, int]:
    """Return the fault of a trial, alone and among transpositions; empty if there is none.

    With it by how many units 8-bit results are off that are not wrong.
    """
    made = attempt(subject, trial)
    if not made.is_taken and not made.error:
        reason = " ".join(made.reasons)
        return (reason if reason.startswith("OpenVINO: ") else REFUSED), 0
    among = filter(None, map(trial_of, transposed(trial)))
    units = 0
    for each in chain([made], (attempt(subject, other) for other in among)):
        if fault := wrong(subject, each):
            return fault, units
        units = max(units, _units(each))
    return "", units


def _units(made: Attempt) -> int:
    """Return the largest number of units by which 8-bit results are off."""
    pairs = zip(made.outputs or (), made.trial.expected, strict=False)  # none without outputs
    off = (
        np.max(np.abs(np.subtract(mine, right, dtype=np.int32)), initial=0)
        for got, wanted in pairs
        for mine, right, type in zip(got, wanted, made.trial.output_types, strict=True)
        if type.name in QUANTIZED
    )
    return int(max(off, default=0))


def _is_wanted(op: str, types: frozenset[str]) -> bool:
    """Whether a delegate for floats and 8-bit types can use the types."""
    if "FLOAT16" in types:
        return op == "DEQUANTIZE"
    if op in ("QUANTIZE", "DEQUANTIZE"):
        return types <= set(TYPES)
    is_hybrid = "FLOAT32" in types and bool(types & QUANTIZED)
    return types <= set(TYPES) and not is_hybrid


def in_children(op: str) -> list[Tried]:
    """Return everything that :func:`tried` yields, from child processes that may crash."""
    found: list[Tried] = []
    while (last := _by_a_child(op, found)) is not None:
        found.append(last)
    return [row for row in found if row.fault != REFUSED]


def _by_a_child(op: str, found: list[Tried]) -> Tried | None:
    """Add a child's outcomes to *found*; return the model that crashed it, or None at the end."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_send, args=(op, found, theirs))
    child.start()
    theirs.close()
    last = None
    try:
        while ours.poll(SECONDS):
            row = ours.recv()
            if row is None:
                return None
            last = None if last else row
            if last is None:
                found.append(row)
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
    return last or Tried((), frozenset(), "it crashed")


def _send(op: str, before: list[Tried], to: Connection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DELEGRAPH_CACHE"] = folder
        for row in tried(op, before):
            to.send(row)
        to.send(None)


def claimed(made: Iterable[Tried]) -> Iterator[tuple[Types, frozenset[str], int]]:
    """Yield the types that may be claimed, with their features and tolerance in units."""
    by_types = defaultdict(list)
    for each in made:
        by_types[each.types].append(each)
    for types, models in by_types.items():
        left = set().union(*(each.features for each in models))
        while failing := [each for each in models if each.fault and each.features <= left]:
            if not all(each.features for each in failing):
                break
            left -= {max(left, key=lambda name: _blame(models, name))}
        units = [each.units for each in models if each.features <= left]
        if not failing and units:
            yield types, frozenset(left), max(units)


def _blame(models: Iterable[Tried], name: str) -> tuple[float, str]:
    """Return the share of the models with a feature that fail."""
    results = [bool(each.fault) for each in models if name in each.features]
    return sum(results) / len(results), name


def main() -> None:
    """Test operators, store each answer at once, and finally write the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("asked", type=Path, help="the answers so far, and where others are added")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no operator after them")
    parser.add_argument("--again", nargs="*", default=(), help="operators to ask about once more")
    given = parser.parse_args()
    answers = read_answers(given.asked)
    for op in given.again:
        answers.pop(op, None)
    ends = time.monotonic() + 60 * given.minutes
    missing = [op for op in sorted(REGISTERED_OPERATORS) if op not in answers]
    with multiprocessing.pool.ThreadPool(2) as pool:
        asked = pool.imap(lambda op: in_children(op) if time.monotonic() < ends else None, missing)
        for op, made in zip(missing, asked, strict=True):
            if made is not None:
                answers[op] = answer(op, made)
                write_answers(given.asked, answers)
    left = sum(op not in answers for op in missing)
    print(f"{len(answers)} operators asked, {left} left", flush=True)
    if not left:
        write_claims(answers.values())


def answer(op: str, made: list[Tried]) -> dict[str, object]:
    """Return the stored answer for an operator: its claims, and the faults of other types."""
    bad = [each for each in made if each.fault]
    claims = [[op, dict(types), sorted(found), units] for types, found, units in claimed(made)]
    print(f"{op}: {len(made) - len(bad)} of {len(made)} right; {len(claims)}", flush=True)
    wrong = [[dict(each.types), sorted(each.features), each.fault[:200]] for each in bad]
    version = openvino.__version__
    return {"op": op, "openvino": version, "tried": len(made), "claims": claims, "wrong": wrong}


def read_answers(path: Path) -> dict[str, dict[str, object]]:
    """Return the answers of this version of OpenVINO, by operator."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found = (json.loads(line) for line in lines)
    return {each["op"]: each for each in found if each["openvino"] == openvino.__version__}


def write_answers(path: Path, answers: dict[str, dict[str, object]]) -> None:
    """Write the answers, a line for each operator."""
    lines = [json.dumps(answers[op]) + "\n" for op in sorted(answers)]
    path.with_suffix(".new").write_text("".join(lines), encoding="utf-8")
    path.with_suffix(".new").replace(path)


def write_claims(answers: Iterable[dict[str, Any]]) -> None:
    """Write the package's file of claims, one per line."""
    rows = [row for each in answers for row in each["claims"]]
    lines = ",\n".join("    " + json.dumps(row) for row in sorted(rows, key=json.dumps))
    head = json.dumps({"openvino": openvino.__version__})[:-1]
    CLAIMS.write_text(f'{head}, "claims": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
