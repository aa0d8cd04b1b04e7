"""Milliseconds to partition large plans, by shape of the graph and by mode.

    python tests/benchmarks/partition.py [--nodes 20000] [--seconds 10]

Every second node is for the delegate. All take turns; the best time counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from delegraph.delegation import GraphInfo, NodeInfo, partition_graph_into_independent_node_subsets
from delegraph.tools import all_times, interleave

MODES = {
    "greedy": {"greedily": True},
    "in plan order": {"greedily": False},
    "no fusion": {"greedily": True, "disable_node_fusion": True},
}


def shapes(count: int) -> dict[str, list[NodeInfo]]:
    """Return lists of nodes by the name of the graph's shape."""
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


def partitioning(nodes: list[NodeInfo], mode: dict[str, bool]) -> Callable[[], int]:
    """Return a function that partitions and returns the number of subsets."""
    count = len(nodes)
    graph = GraphInfo(nodes, range(count), count, inputs=[0], outputs=[count])
    chosen = range(0, count, 2)
    return lambda: len(partition_graph_into_independent_node_subsets(graph, chosen, **mode))


def main() -> None:
    """Print a row for each shape and mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    runs = {
        f"{shape:25}{mode:15}": partitioning(nodes, options)
        for shape, nodes in shapes(args.nodes).items()
        for mode, options in MODES.items()
    }
    for name, times in interleave(runs, args.seconds, blocks=2).items():
        print(f"{name}{1e3 * all_times(times).min():8.1f} ms{runs[name]():8} subsets")


if __name__ == "__main__":
    main()
