"""Seconds to apply a delegate to a large model, memory included, beside the official interpreter.

    python tests/benchmarks/apply.py [--nodes 20000] [--seconds 10]

ADD and FLOOR_MOD alternate, so every second node is a partition of its own. Ours is a delegate that
takes the ADDs, static or with dynamic tensors allowed; the official side is XNNPACK. They take
turns; the best time counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter
from framework import chain_model

from delegraph import DelegateFlags, Interpreter
from delegraph.tools import all_times, interleave_timed
from support.by_name import ByName


def ours(content: bytes, flags: DelegateFlags) -> dict[str, float]:
    """Return the seconds of each step in Delegraph."""
    start = time.perf_counter()
    interpreter = Interpreter(model_content=content)
    loaded = time.perf_counter()
    interpreter.modify_graph_with_delegate(ByName("ADD", flags=flags))
    interpreter.allocate_tensors()
    done = time.perf_counter()
    assert len(interpreter.placement.partitions) > 0
    return {"create": loaded - start, "apply and allocate": done - loaded}


def official(content: bytes) -> dict[str, float]:
    """Return the seconds of the official interpreter with XNNPACK."""
    start = time.perf_counter()
    interpreter = OfficialInterpreter(model_content=content)
    loaded = time.perf_counter()
    interpreter.allocate_tensors()
    return {"create": loaded - start, "apply and allocate": time.perf_counter() - loaded}


def main() -> None:
    """Print a row for each side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    content = chain_model(args.nodes, alternating=True)
    sides = {
        "static delegate": lambda: ours(content, DelegateFlags.NONE),
        "dynamic delegate": lambda: ours(content, DelegateFlags.ALLOW_DYNAMIC_TENSORS),
        "official, XNNPACK": lambda: official(content),
    }
    runs = {
        f"{name:20}{step:20}": lambda run=run, step=step: run()[step]
        for name, run in sides.items()
        for step in ("create", "apply and allocate")
    }
    for name, times in interleave_timed(runs, args.seconds, blocks=2).items():
        print(f"{name}{all_times(times).min():7.3f} s")


if __name__ == "__main__":
    main()
