#!/usr/bin/env python3
"""Ask OpenVINO what it computes as TFLite does, and write the claims of the delegate.

    python delegates/openvino/tools/ask_openvino.py [--only ADD MUL] [--why]

Every operator is tried with the models of the conformance kit, in a child process, as some crash.
Kept are the types, and of each the features, with which all results were right. Features whose
models fail are left out, the fewest first.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.pool
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path

import openvino

from delegraph import Capabilities, Claim
from delegraph.delegation.capabilities import FEATURES
from delegraph.operators.roles import roles_of
from delegraph.testing.conformance.attempts import attempt, wrong
from delegraph.testing.conformance.features import ELEMENT_WISE, PARAMETERS
from delegraph.testing.conformance.subject import subject_of
from delegraph.testing.conformance.trials import trial_of
from delegraph.testing.operator_cases import cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS
from delegraph_openvino.claims import record

CLAIMS = Path(__file__).parents[1] / "src/delegraph_openvino/claims.json"
TYPES = ("BOOL", "FLOAT16", "FLOAT32", "INT8", "INT32", "UINT8")
"""Not INT64, which OpenVINO computes in 32 bits on the CPU."""
NEVER = frozenset({"dynamic-shapes", "empty", "extreme-values", "sparse", "subgraph"})
"""Features that are not claimed of any operator: where some fail, a partition fails as a whole."""

COUNT = 40
ENOUGH = 50
HOPELESS = 5
SECONDS = 240
Row = tuple[str, list[str], list[str]]
"""An operator, types, and features."""

Tried = tuple[frozenset[str], frozenset[str], str]
"""Types and features of a model, and what was wrong with its results."""


def tried(op: str) -> list[Tried]:
    """Return what became of the kit's models of an operator."""
    from delegraph_openvino import claims, delegate
    from delegraph_openvino.options import OpenvinoOptions

    everything = Capabilities(
        [Claim(op, TYPES, *FEATURES.keys() - NEVER)], tolerance=claims.TOLERANCE
    )
    delegate.capabilities = lambda quantized: everything  # type: ignore[assignment]
    delegate.check_features = lambda *given: True  # type: ignore[assignment]

    subject = subject_of(
        lambda: delegate.OpenvinoDelegate(OpenvinoOptions(quantized=True)), everything
    )
    found: list[Tried] = []
    seen: Counter[frozenset[str]] = Counter()
    right: Counter[frozenset[str]] = Counter()
    for case in cases(op, count=COUNT):
        types = frozenset(case.types())
        is_hopeless = seen[types] >= HOPELESS and not right[types]
        if not _is_wanted(op, types) or is_hopeless or seen[types] >= ENOUGH:
            continue
        trial = trial_of(case)
        if trial is None or trial.features & NEVER:
            continue
        made = attempt(subject, trial)
        why = wrong(subject, made) if made.is_taken or made.error else " ".join(made.reasons)
        if why and not why.startswith("OpenVINO:") and not made.is_taken and not made.error:
            continue  # refused with a reason: by a rule, not by OpenVINO
        seen[types] += 1
        right[types] += not why
        found.append((trial.types, trial.features, why))
    return found


def _is_wanted(op: str, types: frozenset[str]) -> bool:
    """Return whether a delegate for floats and 8 bits has a use for the types."""
    if "FLOAT16" in types:
        return op == "DEQUANTIZE"
    if op in ("QUANTIZE", "DEQUANTIZE"):
        return types <= set(TYPES)
    is_hybrid = "FLOAT32" in types and bool(types & {"INT8", "UINT8"})
    return types <= set(TYPES) and not is_hybrid


def in_a_child(op: str) -> list[Tried]:
    """Return :func:`tried`, by a process that may crash; then nothing."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_send, args=(op, theirs))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(SECONDS) else []
    except EOFError:
        return [(frozenset(), frozenset(), "it crashed")]
    finally:
        child.kill()
        child.join()


def _send(op: str, to: Connection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DELEGRAPH_CACHE"] = folder
        to.send(tried(op))


def claimed(made: Iterable[Tried]) -> dict[frozenset[str], frozenset[str]]:
    """Return the types that may be claimed, and with which features."""
    by_types = defaultdict(list)
    for types, features, why in made:
        by_types[types].append((features, why))
    found = {}
    for types, models in by_types.items():
        left = set().union(*(features for features, _ in models))
        while failing := [features for features, why in models if why and features <= left]:
            if not all(failing):
                break
            left -= {max(left, key=lambda name: _blame(models, name))}
        if not failing and any(features <= left for features, _ in models):
            found[types] = frozenset(left)
    return found


def _blame(models: Iterable[tuple[frozenset[str], str]], name: str) -> tuple[float, str]:
    """Return the share of the models with a feature that fail."""
    results = [bool(why) for features, why in models if name in features]
    return sum(results) / len(results), name


def main() -> None:
    """Ask about every operator, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=sorted(REGISTERED_OPERATORS))
    parser.add_argument("--why", action="store_true", help="print what is wrong")
    given = parser.parse_args()

    claims = [row for row in record()["claims"] if row[0] not in given.only]
    with multiprocessing.pool.ThreadPool(2) as pool:
        for op, made in zip(given.only, pool.imap(in_a_child, given.only), strict=True):
            kept = claimed(made)
            claims += [[op, sorted(t), sorted(f)] for t, f in kept.items()]
            bad = [row for row in made if row[2]]
            print(f"{op}: {len(made) - len(bad)} of {len(made)} right;", len(kept), flush=True)
            for types, features, why in bad if given.why else ():
                print("   ", *sorted(types), "|", *sorted(features), "|", why[:200])
    write(claims)


def parameters(op: str) -> list[int]:
    """Return which inputs are parameters; no operator in question has two of one role."""
    return [i for i, role in enumerate(roles_of(op)) if role in PARAMETERS]


def write(claims: list[Row]) -> None:
    """Write the file, a row a line."""
    operators = {op for op, *_ in claims}
    head = {
        "openvino": openvino.__version__,
        "element_wise": sorted(ELEMENT_WISE & operators),
        "parameters": {op: found for op in sorted(operators) if (found := parameters(op))},
    }
    rows = ",\n".join("    " + json.dumps(row) for row in sorted(claims))
    CLAIMS.write_text(f'{json.dumps(head)[:-1]}, "claims": [\n{rows}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
