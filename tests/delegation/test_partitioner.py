from __future__ import annotations

import random
from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.delegation import (
    GraphInfo,
    NodeInfo,
    NodeSubset,
    partition_graph_into_independent_node_subsets,
)
from delegraph.errors import PartitionError

NOT_READY, ALWAYS_READY = -1, -2
MODES = [(greedily, unfused) for greedily in (True, False) for unfused in (False, True)]


class Sweeps:
    """The definition: sweep over the plan, try each node, start an epoch when nothing more fits."""

    def __init__(self, graph, claimed, greedily, edges, unfused):
        self.graph, self.claimed, self.greedily, self.unfused = graph, claimed, greedily, unfused
        if edges is None:
            edges = self.side_effect_chain() if greedily else []
        self.edges = set(edges)
        made = {t for node in graph.nodes for t in node.outputs if t != -1}
        self.tensor_epoch = dict.fromkeys(made, NOT_READY)
        self.node_epoch = [NOT_READY] * len(graph.nodes)
        self.subsets = []

    def side_effect_chain(self):
        marked = [i for i, node in enumerate(self.graph.nodes) if node.might_have_side_effect]
        return list(pairwise(marked))

    def partition(self):
        while True:
            self.subsets.append(NodeSubset("kTfUnexplored", [], [], []))
            self.fill()
            if not self.subsets[-1].nodes:
                self.subsets.pop()
                break
        if NOT_READY in self.node_epoch:
            raise PartitionError
        for tensor in self.graph.outputs:
            epoch = self.tensor_epoch.get(tensor, ALWAYS_READY)
            if epoch != ALWAYS_READY:
                self.subsets[epoch].output_tensors.append(tensor)
        for subset in self.subsets:
            subset.input_tensors = sorted(set(subset.input_tensors))
            subset.output_tensors = sorted(set(subset.output_tensors))
        return self.subsets

    def fill(self):
        while True:
            did_something = False
            for position in range(len(self.graph.nodes)):
                if self.try_node(position):
                    did_something = True
                elif did_something and not self.greedily:
                    return
            if not did_something:
                return

    def try_node(self, position):
        node, subset, epoch = self.graph.nodes[position], self.subsets[-1], len(self.subsets) - 1
        if self.unfused and subset.nodes:
            return False
        if self.node_epoch[position] != NOT_READY:
            return False
        if any(self.tensor_epoch.get(t) == NOT_READY for t in node.inputs if t != -1):
            return False
        if any(self.node_epoch[a] == NOT_READY for a, b in self.edges if b == position):
            return False
        index = self.graph.execution_plan[position]
        kind = "kTfPartition" if index in self.claimed else "kTfNonPartition"
        if subset.type == "kTfUnexplored":
            subset.type = kind
        if subset.type != kind:
            return False
        self.node_epoch[position] = epoch
        subset.nodes.append(index)
        for tensor in node.outputs:
            if tensor != -1:
                self.tensor_epoch[tensor] = epoch
        for tensor in node.inputs:
            made = self.tensor_epoch.get(tensor, ALWAYS_READY)
            if tensor != -1 and made != epoch:
                subset.input_tensors.append(tensor)
                if made >= 0:
                    self.subsets[made].output_tensors.append(tensor)
        return True


def outcome(function, *args):
    try:
        return [astuple(subset) for subset in function(*args)]
    except PartitionError:
        return "PartitionError"


def assert_as_defined(graph, claimed, greedily, edges, unfused):
    args = (graph, claimed, greedily, edges, unfused)
    found = outcome(partition_graph_into_independent_node_subsets, *args)
    assert found == outcome(lambda *a: Sweeps(*a).partition(), *args)


def any_graph(rng, *, wild):
    """Return a graph; *wild* ones have cycles, several makers of a tensor and repeated node ids."""
    count = rng.randrange(13)
    tensors = rng.randrange(1, 8) + count
    constants = range(tensors - count)
    nodes = []
    for i in range(count):
        known = range(tensors) if wild else range(tensors - count + i)
        inputs = [rng.choice([-1, *constants, *known, *known]) for _ in range(rng.randrange(4))]
        outputs = [tensors - count + i] + [-1] * rng.randrange(2)
        if wild:
            outputs = [rng.randrange(-1, tensors) for _ in range(rng.randrange(3))]
            if rng.random() < 0.8:  # else nearly every graph has a cycle
                inputs = [t for t in inputs if t < tensors - count + i]
        nodes.append(NodeInfo(inputs, outputs, rng.random() < 0.3))
    ids = [rng.randrange(20) for _ in nodes] if wild else rng.sample(range(20), count)
    order = list(range(count))
    for _ in range(rng.choice([0, 0, 1, 3, 20])):
        if count:
            a, b = rng.randrange(count), rng.randrange(count)
            order[a], order[b] = order[b], order[a]
    outputs = [rng.randrange(-1, tensors) for _ in range(rng.randrange(4))]
    return GraphInfo(
        [nodes[i] for i in order], [ids[i] for i in order], 20, list(constants), outputs, []
    )


def any_edges(rng, graph):
    count = len(graph.nodes)
    if rng.random() < 0.5 or not count:
        return rng.choice([None, []])
    pairs = [(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randrange(6))]
    if rng.random() < 0.7:
        pairs = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    return pairs + pairs[:1]


@pytest.mark.repetition(2)
@pytest.mark.parametrize(("greedily", "unfused"), MODES)
@pytest.mark.parametrize("wild", [False, True])
@settings(max_examples=600, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_subsets_are_those_of_the_sweeps(greedily, unfused, wild, seed):
    rng = random.Random(seed)
    graph = any_graph(rng, wild=wild)
    claimed = [rng.randrange(20) for _ in range(rng.randrange(15))]
    if rng.random() < 0.2:
        claimed = list(graph.execution_plan)
    assert_as_defined(graph, claimed, greedily, any_edges(rng, graph), unfused)


def graph_of(*nodes, outputs, plan=None, effects=()):
    infos = [NodeInfo(i, o, k in effects) for k, (i, o) in enumerate(nodes)]
    plan = list(range(len(nodes))) if plan is None else plan
    return GraphInfo(infos, plan, max([*plan, 0]) + 1, [0], outputs, [])


def partition(graph, claimed, greedily=True, edges=None, unfused=False):
    subsets = partition_graph_into_independent_node_subsets(
        graph,
        nodes_to_partition=claimed,
        greedily=greedily,
        control_edges=edges,
        disable_node_fusion=unfused,
    )
    return [(subset.type == "kTfPartition", subset.nodes) for subset in subsets]


CHAIN = graph_of(([0], [1]), ([1], [2]), ([2], [3]), outputs=[3])
FORK = graph_of(([0], [1]), ([1], [2]), ([1], [3]), outputs=[2, 3])


def test_a_node_that_reads_another_subset_starts_its_own():
    assert partition(CHAIN, [0, 2]) == [(True, [0]), (False, [1]), (True, [2])]


def test_greedy_subsets_pull_later_nodes_forward():
    assert partition(FORK, [0, 2]) == [(True, [0, 2]), (False, [1])]


def test_plan_order_is_kept_when_not_greedy():
    assert partition(FORK, [0, 2], greedily=False) == [(True, [0]), (False, [1]), (True, [2])]


def test_a_tensor_used_inside_and_outside_is_an_output_of_its_subset():
    subsets = partition_graph_into_independent_node_subsets(FORK, [0, 2], greedily=True)
    assert subsets == [
        NodeSubset("kTfPartition", [0, 2], [0], [1, 3]),
        NodeSubset("kTfNonPartition", [1], [1], [2]),
    ]


def test_a_tensor_made_and_used_inside_only_is_on_no_list():
    subsets = partition_graph_into_independent_node_subsets(CHAIN, [0, 1, 2], greedily=True)
    assert subsets == [NodeSubset("kTfPartition", [0, 1, 2], [0], [3])]


def test_constants_are_inputs():
    graph = graph_of(([0, 9, 4], [1]), ([1, 4, 9], [2]), outputs=[2])
    subsets = partition_graph_into_independent_node_subsets(graph, [0, 1], greedily=True)
    assert subsets == [NodeSubset("kTfPartition", [0, 1], [0, 4, 9], [2])]


def independent_nodes_with_side_effects():
    nodes = [([0], [k + 1]) for k in range(5)]
    return graph_of(*nodes, outputs=[1, 2, 3, 4, 5], effects={0, 1, 2, 3, 4})


def test_side_effects_keep_their_order():
    graph = independent_nodes_with_side_effects()
    expected = [(True, [0, 1]), (False, [2]), (True, [3, 4])]
    assert partition(graph, [0, 1, 3, 4]) == expected


def test_an_empty_edge_list_lifts_the_order_of_side_effects():
    graph = independent_nodes_with_side_effects()
    assert partition(graph, [0, 1, 3, 4], edges=[]) == [(True, [0, 1, 3, 4]), (False, [2])]


def test_control_edges_are_plan_positions_and_claims_are_node_indices():
    graph = graph_of(([0], [1]), ([0], [2]), ([0], [3]), outputs=[1, 2, 3], plan=[7, 5, 6])
    expected = [(True, [7]), (False, [5]), (True, [6])]
    assert partition(graph, [7, 6], edges=[(1, 2)]) == expected


def test_every_node_is_alone_without_fusion():
    expected = [(True, [0]), (True, [1]), (False, [2])]
    assert partition(CHAIN, [0, 1], unfused=True) == expected


def test_nodes_are_in_the_order_of_assignment():
    graph = graph_of(([2], [3]), ([1], [2]), ([0], [1]), outputs=[3], plan=[4, 5, 6])
    assert partition(graph, [4, 5, 6]) == [(True, [6, 5, 4])]


def test_a_run_that_reaches_the_end_of_the_plan_starts_again_at_the_front():
    graph = graph_of(([3], [4]), ([0], [2]), ([0], [3]), outputs=[4])
    assert partition(graph, [0, 1, 2], greedily=False) == [(True, [1, 2, 0])]


def test_stale_and_repeated_claims_do_no_harm():
    graph = graph_of(([0], [1]), ([1], [2]), outputs=[2], plan=[3, 9])
    assert partition(graph, [3, 3, 4]) == [(True, [3]), (False, [9])]


def test_an_empty_plan_has_no_subsets():
    assert partition(GraphInfo([], [], 0, [0], [0], []), []) == []


def test_the_last_maker_of_a_tensor_has_it_as_graph_output():
    graph = graph_of(([0], [1]), ([1], [2]), ([2], [1]), outputs=[1])
    subsets = partition_graph_into_independent_node_subsets(graph, [1], greedily=True)
    assert [subset.output_tensors for subset in subsets] == [[1], [2], [1]]


def test_numpy_indices_are_accepted():
    assert partition(CHAIN, np.array([1])) == [(False, [0]), (True, [1]), (False, [2])]


@pytest.mark.parametrize("greedily", [True, False])
@pytest.mark.parametrize(
    ("graph", "claimed", "edges", "message"),
    [
        (CHAIN, [0, 3], None, "nodes_to_partition names node 3; the graph has 3 nodes"),
        (CHAIN, [-1], None, "nodes_to_partition names node -1"),
        (CHAIN, [], [(0, 3)], r"control edge \(0, 3\) leaves the plan, which has 3 positions"),
        (CHAIN, [], [(-1, 0)], r"control edge \(-1, 0\)"),
        (CHAIN, [], [(1, 1)], "node 1 at plan position 1 .* plan position 1 by a control edge"),
        (CHAIN, [], [(2, 0)], "node 0 at plan position 0 .* plan position 2 by a control edge"),
        (
            graph_of(([0], [1]), ([2], [2]), outputs=[], plan=[5, 6]),
            [],
            None,
            "node 6 at plan position 1 can never run: it waits for tensor 2",
        ),
        (graph_of(([-2], [1]), outputs=[]), [], None, "node 0 reads tensor -2"),
        (graph_of(([0], [-2]), outputs=[]), [], None, "node 0 writes tensor -2"),
        (graph_of(([0], [1, -2]), outputs=[]), [], None, "node 0 writes tensor -2"),
        (graph_of(([0], [1]), outputs=[-2]), [], None, "tensor -2 is a graph output"),
        (GraphInfo(CHAIN.nodes, [0, 1, 3], 3, [0], [3], []), [], None, "execution plan names node"),
        (GraphInfo(CHAIN.nodes, [0, 1], 3, [0], [3], []), [], None, "3 nodes for an execution pla"),
        (GraphInfo(CHAIN.nodes, [], 3, [0], [3], []), [], None, "each plan position needs its"),
    ],
)
def test_a_bad_graph_is_named(greedily, graph, claimed, edges, message):
    with pytest.raises(PartitionError, match=message):
        partition(graph, claimed, greedily, edges)


def test_large_graphs_of_every_shape_are_partitioned_as_defined():
    rng = random.Random(7)
    chain = [NodeInfo((i,), (i + 1,)) for i in range(150)]
    for nodes in (chain, chain[::-1], rng.sample(chain, len(chain))):
        graph = GraphInfo(nodes, range(150), 150, [0], [150], [])
        for greedily, unfused in MODES:
            for step in (1, 2, 5):
                assert_as_defined(graph, range(0, 150, step), greedily, None, unfused)
