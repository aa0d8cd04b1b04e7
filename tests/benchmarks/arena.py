"""Milliseconds to plan the memory of large graphs, by shape.

    python tests/benchmarks/arena.py [--tensors 8000] [--seconds 10]

Tensors have random sizes. A fan has all of them in use at once; in an hourglass two fans follow
each other, and tensors that bridge both leave gaps. Shapes take turns; the best
time counts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from delegraph.memory.arena_planner import PlanNode
from delegraph.tools import all_times, interleave
from support.planner_graphs import Graph, planned


def shapes(count: int) -> dict[str, list[PlanNode]]:
    """Return lists of nodes by the name of the graph's shape; node i writes tensor i + 1."""
    rng = random.Random(1)
    half = count // 2
    bridges = list(range(half - half // 10, half))
    first_fan = [PlanNode((0,), (i + 1,)) for i in range(half)]
    waist = PlanNode(range(1, half), (half + 1,))
    second_fan = [PlanNode((half + 1,), (i + 1,)) for i in range(half + 1, 2 * half)]
    joined = PlanNode([*range(half + 2, 2 * half + 1), *bridges], (2 * half + 1,))
    return {
        "chain": [PlanNode((i,), (i + 1,)) for i in range(count)],
        "chain with skips": [
            PlanNode((i, rng.randrange(max(0, i - 50), i + 1)), (i + 1,)) for i in range(count)
        ],
        "fan": [
            *(PlanNode((0,), (i + 1,)) for i in range(count)),
            PlanNode(range(1, count + 1), (count + 1,)),
        ],
        "hourglass": [*first_fan, waist, *second_fan, joined],
        "long random lifetimes": [
            PlanNode((i, rng.randrange(i + 1)), (i + 1,)) for i in range(count)
        ],
    }


def planning(nodes: list[PlanNode]) -> Callable[[], int]:
    """Return a function that plans from scratch and returns the bytes of the arena."""
    rng = random.Random(2)
    graph = Graph(nodes, [0], [len(nodes)], [rng.randrange(1, 5000) for _ in range(len(nodes) + 1)])
    return lambda: planned(graph).arena_bytes[0]


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", type=int, default=8_000)
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    plans = {shape: planning(nodes) for shape, nodes in shapes(args.tensors).items()}
    for shape, times in interleave(plans, args.seconds, blocks=2).items():
        print(f"{shape:25}{1e3 * all_times(times).min():10.1f} ms{plans[shape]():12} bytes")


if __name__ == "__main__":
    main()
