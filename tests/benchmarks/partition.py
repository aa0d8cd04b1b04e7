"""Milliseconds to partition large plans, by shape of the graph and by mode.

    python tests/benchmarks/partition.py [--nodes 20000] [--rounds 7]

Every second node is for the delegate. Best of all rounds.
"""

from __future__ import annotations

import argparse
import time

from delegraph.delegation import (
    GraphInfo,
    NodeInfo,
    partition_graph_into_independent_node_subsets,
)

MODES = {
    "greedy": {"greedily": True},
    "in plan order": {"greedily": False},
    "no fusion": {"greedily": True, "disable_node_fusion": True},
}


def shapes(count: int) -> dict[str, list[NodeInfo]]:
    """Return nodes by shape of the graph: each reads the one before, the one before that, …."""
    chain = [NodeInfo((i,), (i + 1,)) for i in range(count)]
    strands = [NodeInfo((max(i - 1, 0) if i > 1 else 0,), (i + 1,)) for i in range(count)]
    residual = [NodeInfo((i, max(0, i - 3)), (i + 1,)) for i in range(count)]
    return {
        "chain": chain,
        "two independent strands": strands,
        "residual": residual,
        "all independent": [NodeInfo((0,), (i + 1,)) for i in range(count)],
        "chain, plan reversed": chain[::-1],
    }


def milliseconds(nodes: list[NodeInfo], mode: dict[str, bool], rounds: int) -> tuple[float, int]:
    """Return the best time, and how many subsets there are."""
    count = len(nodes)
    graph = GraphInfo(nodes, range(count), count, inputs=[0], outputs=[count])
    best, subsets = float("inf"), []
    for _ in range(rounds):
        subsets.clear()
        start = time.perf_counter()
        subsets = partition_graph_into_independent_node_subsets(graph, range(0, count, 2), **mode)
        best = min(best, time.perf_counter() - start)
    return best * 1e3, len(subsets)


def main() -> None:
    """Print a row for each shape and mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    for shape, nodes in shapes(args.nodes).items():
        for mode, options in MODES.items():
            best, count = milliseconds(nodes, options, args.rounds)
            print(f"{shape:25}{mode:15}{best:8.1f} ms{count:8} subsets")


if __name__ == "__main__":
    main()
