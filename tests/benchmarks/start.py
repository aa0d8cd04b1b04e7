"""The tree of modules that a first answer imports, with the time of each.

    python tests/benchmarks/start.py [MODEL.tflite] [--rounds 5] [--delegate NAME] [--least 0.3]

A fresh process imports NumPy, then Delegraph, loads, allocates and invokes once under
``python -X importtime``. Shown are the modules beyond NumPy's: the least milliseconds of all rounds
that a module takes by itself, and with what it imports first. All run from byte code, as installed
packages do. ``startup.py`` measures whole processes beside the official interpreter.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from startup import environment

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"

RUN = """
import sys
import numpy
from delegraph import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=1, delegates=[*sys.argv[2:]])
interpreter.allocate_tensors()
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""

LINE = re.compile(r"import time: +(\d+) \| +(\d+) \| ( *)(\S+)")
"""A line of ``-X importtime``: own microseconds, cumulative ones, two blanks for each level."""


class Imported(NamedTuple):
    """An import of a process.

    Attributes:
        name: of the module.
        depth: how many imports are under way around it.
        own: milliseconds without those of the modules that it imports.
        total: milliseconds with them.
    """

    name: str
    depth: int
    own: float
    total: float


def imports(text: str) -> list[Imported]:
    """Return the imports after NumPy's, each before those that it makes, from the report *text*.

    >>> lines = ["1 | 1 | numpy", "2 | 2 |   b", "3 | 5 | a", "4 | 4 | c"]
    >>> [(i.name, i.depth) for i in imports("".join(f"import time: {line}\\n" for line in lines))]
    [('a', 0), ('b', 1), ('c', 0)]
    """
    found = [
        Imported(name, len(indent) // 2, int(own) / 1000, int(total) / 1000)
        for own, total, indent, name in LINE.findall(text)
    ]
    names = [each.name for each in found]
    return _outer_first(found[names.index("numpy") + 1 :])


def _outer_first(found: Sequence[Imported]) -> list[Imported]:
    """Sort imports by their start; the report has them in order of their end."""
    trees: list[list[Imported]] = []  # each an import, then those that it made
    for each in found:
        first = len(trees)
        while first and trees[first - 1][0].depth > each.depth:
            first -= 1
        trees[first:] = [[each, *chain.from_iterable(trees[first:])]]
    return [*chain.from_iterable(trees)]


def measured(model: str, delegates: Sequence[str], rounds: int) -> list[Imported]:
    """Return the imports of a process, with the least times in *rounds* processes."""
    command = [sys.executable, "-X", "importtime", "-c", RUN, model, *delegates]
    reports = []
    with tempfile.TemporaryDirectory() as bytecode:
        for _ in range(rounds + 1):  # the first one writes the byte code
            done = subprocess.run(
                command, env=environment(bytecode), capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            reports.append({each.name: each for each in imports(done.stderr)})
    known = [{name: report[name] for name in reports[-1] if name in report} for report in reports]
    return [
        each._replace(
            own=min(report[each.name].own for report in known[1:] if each.name in report),
            total=min(report[each.name].total for report in known[1:] if each.name in report),
        )
        for each in reports[-1].values()
    ]


def main() -> None:
    """Print the tree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=str(MODELS / "digits_int8.tflite"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delegate", action="append", default=[], dest="delegates")
    parser.add_argument("--least", type=float, default=0.0, help="total milliseconds to be shown")
    args = parser.parse_args()
    found = measured(args.model, args.delegates, max(args.rounds, 1))
    print(f"{'own ms':>8} {'total ms':>9}  module")
    for each in found:
        if each.total >= args.least:
            print(f"{each.own:8.2f} {each.total:9.2f}  {'  ' * each.depth}{each.name}")
    own = [each for each in found if each.name.split(".")[0].startswith("delegraph")]
    print(
        f"{len(found)} modules beyond NumPy's, {len(own)} of them Delegraph's; "
        f"{sum(each.own for each in found):.1f} ms by themselves"
    )


if __name__ == "__main__":
    main()
