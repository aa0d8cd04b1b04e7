"""The default arena of models, beside what no plan can do without.

    python tests/benchmarks/memory_bounds.py MODEL.tflite... [--all]

One line for each subgraph whose arena is more than one percent larger than the bytes in use at its
busiest node, or all with --all: bytes that TFLite's greedy plan takes, the arena of this runtime,
the lower bound and the smallest plan (with "?" where it is not proved to be the smallest). Then
come the counts. Models that cannot be allocated are counted, no more. Every plan is verified.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from delegraph import DelegraphError, Interpreter
from delegraph.memory import (
    BestPlan,
    OffsetsAssignment,
    PlannerGraph,
    lower_bound,
    plan_exactly,
    usage_records,
    verify_plan,
)
from support.planner_graphs import planned

ALIGNMENT = 64


class Arena(NamedTuple):
    """Bytes of a subgraph's arena, for each planner."""

    greedy: int
    default: int
    bound: int
    best: BestPlan

    @property
    def standing(self) -> str:
        """Text that compares the default plan with the other plans."""
        for bound, name in ((self.bound, "the lower bound"), (self.best.total_size, "the optimum")):
            if self.default <= bound:
                return f"equal to {name}"
            if self.default <= 1.01 * bound:
                return f"within 1 % of {name}"
        return "more than 1 % above the optimum"


def arena_of(graph: PlannerGraph) -> Arena:
    """Return the bytes of the arena of a subgraph whose shapes are known."""
    planner = planned(graph, tighten=True)
    records, tensors = usage_records(graph, keep_inputs=True, root_of=planner.shared_root)
    addresses = [planner.address(tensor) for tensor in tensors]
    offsets = [address[1] for address in addresses if address is not None]
    plan = OffsetsAssignment(offsets, planner.arena_bytes[0])
    best = plan_exactly(records, ALIGNMENT)
    for checked in (plan, best):
        violations = verify_plan(records, checked, ALIGNMENT)
        assert not violations, violations
    greedy = planned(graph, tighten=False).arena_bytes[0]
    return Arena(greedy, plan.total_size, lower_bound(records, ALIGNMENT), best)


def graphs(model: Path) -> Iterator[PlannerGraph]:
    """Yield planner graphs of the model's subgraphs, as the runtime plans them."""
    with Interpreter(model) as interpreter:
        interpreter.allocate_tensors()
        for subgraph in interpreter.session.subgraphs:
            if subgraph.memory.graph is not None:
                yield subgraph.memory.graph


def main() -> None:
    """Print the table and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    print(f"{'model':50}{'TFLite':>12}{'default':>12}{'bound':>12}{'smallest':>12}")
    for model in args.models:
        try:
            arenas = [arena_of(graph) for graph in graphs(model)]
        except (DelegraphError, RuntimeError, ValueError):
            counts["cannot be allocated"] += 1
            continue
        for arena in arenas:
            counts[arena.standing] += 1
            counts["TFLite's plan more than 1 % above the optimum"] += (
                arena.greedy > 1.01 * arena.best.total_size
            )
            if args.all or arena.default > 1.01 * arena.bound:
                best = f"{arena.best.total_size}{' ' if arena.best.is_optimal else '?'}"
                row = f"{arena.greedy:12}{arena.default:12}{arena.bound:12}{best:>12}"
                print(f"{model.stem[:49]:50}{row}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:5} {name}")


if __name__ == "__main__":
    main()
