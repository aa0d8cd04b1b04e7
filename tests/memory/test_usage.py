from __future__ import annotations

import random

import numpy as np
import pytest

import delegraph.memory
from delegraph.graph.model import OperatorSpec, SubgraphSpec, TensorSpec
from delegraph.memory import DeclaredGraph, TensorUsageRecord, usage_records
from delegraph.memory.arena_planner import PlanNode, TensorKind
from delegraph.schema.enums import BuiltinOperator, TensorType
from support.planner_graphs import Graph, planned


def rows(graph, **options):
    records, tensors = usage_records(graph, **options)
    return {tensor: tuple(record) for tensor, record in zip(tensors, records, strict=True)}


#  input 0 -> [add constant 1] -> 2 -> [split] -> 3, 4 (nobody reads 4) -> [join 3, 2] -> output 5
GRAPH = Graph(
    nodes=[
        PlanNode([0, 1], [2], inplace=4 | 8),
        PlanNode([2], [3, 4], [6]),
        PlanNode([3, 2, -1], [5], inplace=4),
    ],
    inputs=[0],
    outputs=[5],
    sizes=[10, 5, 20, 20, 8, 20, 3],
    kinds={1: TensorKind.OTHER},
)


def test_tensors_are_in_use_from_their_writer_to_their_last_reader():
    expected = {0: (10, 0, 0), 2: (20, 0, 2), 3: (20, 1, 2), 4: (8, 1, 1), 5: (20, 2, 2)}
    assert rows(GRAPH) == {**expected, 6: (3, 1, 1)}


def test_records_come_in_the_order_of_their_first_tasks():
    graph = Graph([PlanNode([1], [2]), PlanNode([2], [0])], [1], [0], [1, 1, 1])
    assert usage_records(graph)[1] == [1, 2, 0]


def test_inputs_and_what_nobody_reads_stay_to_the_end_where_that_is_wanted():
    kept = rows(GRAPH, keep_inputs=True)
    assert (kept[0], kept[4]) == ((10, 0, 2), (8, 1, 2))
    assert (kept[2], kept[6]) == ((20, 0, 2), (3, 1, 1))


def test_sizes_are_rounded_up():
    assert [size for size, _, _ in rows(GRAPH, alignment=16).values()] == [16, 32, 32, 16, 16, 32]


def test_tensors_that_share_have_one_record_under_their_root():
    shared = rows(GRAPH, root_of=lambda tensor: 2 if tensor == 3 else tensor)
    assert shared[2] == (20, 0, 2)
    assert 3 not in shared


def test_variables_and_tensors_of_no_bytes_are_left_out():
    kinds = {2: TensorKind.ARENA_RW_PERSISTENT}
    graph = Graph([PlanNode([0, 2], [1])], [0], [1], [4, 0, 4], [2], kinds)
    assert rows(graph) == {0: (4, 0, 0)}


def test_a_graph_without_nodes_keeps_its_inputs():
    assert rows(Graph([], [0], [0], [4])) == {0: (4, 0, 0)}


def random_graph(rng):
    count = rng.randrange(2, 30)
    nodes = []
    for i in range(count):
        inputs = [rng.randrange(max(0, i - 5), i + 1) for _ in range(rng.randrange(1, 4))]
        nodes.append(PlanNode(inputs, [i + 1], inplace=rng.choice([0, 4, 8, 4 | 8, 4 | 1])))
    sizes = [rng.choice([8, 16, 100]) for _ in range(count + 1)]
    for node in nodes:
        if node.inplace & 1:  # leaves the data as it is, so there are as many bytes
            sizes[node.outputs[0]] = sizes[node.inputs[0]]
    return Graph(nodes, [0], [count, rng.randrange(1, count + 1)], sizes)


def test_records_tell_what_the_arena_planner_plans_for():
    rng = random.Random(6)
    shared = 0
    for _ in range(200):
        graph = random_graph(rng)
        planner = planned(graph)
        expected = {
            tensor: (block.size, block.first_node, min(block.last_node, len(graph.nodes) - 1))
            for tensor, block in planner.allocations.items()
        }
        assert rows(graph, keep_inputs=True, root_of=planner.shared_root) == expected
        shared += graph.num_tensors - len(expected)
    assert shared > 100


def declared(**tensors):
    specs = {
        name: TensorSpec(i, name, *spec[:2], spec[1], *spec[2:])
        for i, (name, spec) in enumerate(tensors.items())
    }
    return tuple(specs.values())


def test_a_subgraph_is_planned_as_declared():
    tensors = declared(
        x=(TensorType.FLOAT32, (2, 3)),
        weights=(TensorType.FLOAT32, (3,), np.zeros(12, np.uint8)),
        state=(TensorType.INT8, (7,), None, True),
        words=(TensorType.STRING, (4,)),
        y=(TensorType.INT4, (5,)),
    )
    operator = OperatorSpec(0, "ADD", BuiltinOperator.ADD, 1, (0, 1, 2), (3, 4))
    spec = SubgraphSpec(0, "main", tensors, (operator,), (0,), (4,))
    assert rows(spec) == {0: (24, 0, 0), 4: (3, 0, 0)}
    graph = DeclaredGraph(spec, {"ADD": 12})
    assert (graph.num_tensors, graph.variables, graph.nodes[0].inplace) == (5, [2], 12)
    kinds = [graph.tensor_kind(i) for i in range(5)]
    other, arena = TensorKind.OTHER, TensorKind.ARENA_RW
    assert kinds == [arena, other, TensorKind.ARENA_RW_PERSISTENT, other, arena]


def test_every_public_name_can_be_had_from_the_package():
    for name in delegraph.memory.__all__:
        assert getattr(delegraph.memory, name) is not None, name
    with pytest.raises(AttributeError, match="attribute planner"):
        _ = delegraph.memory.planner
    assert delegraph.memory.TensorUsageRecord is TensorUsageRecord


def test_what_an_asynchronous_node_reads_is_in_use_while_others_run():
    nodes = [
        PlanNode([0], [1]),
        PlanNode([1], [2]),
        PlanNode([0], [3], held=[1]),
        PlanNode([2, 3], [4]),
    ]
    graph = Graph(nodes, [0], [4], [4] * 5)
    assert rows(graph)[1] == (4, 0, 2)
