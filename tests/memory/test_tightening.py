from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from delegraph.memory.arena import TOLERATED, Allocation, is_tight
from delegraph.memory.arena_planner import ArenaPlanner, PlanNode
from delegraph.memory.bounds import lower_bound
from delegraph.memory.records import OffsetsAssignment, TensorUsageRecord
from delegraph.memory.tightening import tightened
from delegraph.memory.usage import usage_records
from delegraph.memory.verifier import verify_plan
from support.planner_graphs import Graph, planned


def random_graph(rng, sizes=(4, 60, 64, 500, 1028, 2048)):
    count = rng.randrange(2, 25)
    nodes = []
    for i in range(count):
        inputs = [rng.randrange(max(0, i - 6), i + 1) for _ in range(rng.randrange(1, 4))]
        nodes.append(PlanNode(inputs, [i + 1], inplace=rng.choice([0, 0, 4])))
    return Graph(nodes, [0], [count], [rng.choice(sizes) for _ in range(count + 1)])


def arena_of(graph, **options):
    """Return the planner, the records and the plan of its arena."""
    planner = planned(graph, **options)
    records, tensors = usage_records(graph, keep_inputs=True, root_of=planner.shared_root)
    offsets = [planner.address(tensor)[1] for tensor in tensors]
    return planner, records, OffsetsAssignment(offsets, planner.arena_bytes[0])


def test_tightened_plans_are_right_and_never_larger():
    rng = random.Random(8)
    smaller = 0
    for _ in range(150):
        graph = random_graph(rng)
        _, records, plan = arena_of(graph, tighten=True)
        _, _, greedy = arena_of(graph)
        assert not verify_plan(records, plan, 64)
        assert plan.total_size <= greedy.total_size
        smaller += plan.total_size < greedy.total_size
        if greedy.total_size <= 1.01 * lower_bound(records, 64):
            assert plan == greedy  # TFLite's offsets
    assert smaller > 20


RESHAPE, BINARY = 1 | 4, 4 | 8


def any_node(rng, position):
    """Return a node that makes the next tensor of one or two of the last three."""
    reads = rng.sample(
        range(max(0, position - 2), position + 1), min(position + 1, rng.choice([1, 2]))
    )
    return PlanNode(reads, [position + 1], inplace=rng.choice([0, RESHAPE, BINARY, BINARY]))


def wrong_reads(graph, root_of):
    """Return the nodes that read an input after another tensor's values have taken its place."""
    values = {}  # of the tensor that each root's memory holds, by what made them
    made = {0: "input"}
    values[root_of(0)] = "input"
    wrong = []
    for position, node in enumerate(graph.nodes):
        if any(values[root_of(tensor)] != made[tensor] for tensor in node.inputs):
            wrong.append(position)
        output = node.outputs[0]
        made[output] = made[node.inputs[0]] if node.inplace == RESHAPE else position
        values[root_of(output)] = made[output]
    return wrong


def test_nothing_is_overwritten_in_place_that_is_read_afterwards():
    rng = random.Random(4)
    as_tflite = 0
    for _ in range(600):
        graph = Graph([any_node(rng, i) for i in range(10)], [0], [10], [64] * 11)
        planner, *_ = arena_of(graph, tighten=True)
        assert not wrong_reads(graph, planner.shared_root)
        as_tflite += bool(wrong_reads(graph, arena_of(graph)[0].shared_root))
    assert as_tflite  # there are such graphs among them


def test_a_graph_whose_shapes_become_known_late_is_planned_on():
    rng = random.Random(3)
    for _ in range(60):
        graph = random_graph(rng)
        planner = ArenaPlanner(graph, tighten=True)
        planner.plan_allocations()
        middle = rng.randrange(len(graph.nodes))
        planner.execute_allocations(0, middle)
        planner.reset_allocations_after(middle)
        for tensor in range(middle + 2, len(graph.sizes)):
            graph.sizes[tensor] = 60
        planner.execute_allocations(middle + 1, len(graph.nodes) - 1)
        records, tensors = usage_records(graph, keep_inputs=True, root_of=planner.shared_root)
        offsets = [planner.address(tensor)[1] for tensor in tensors]
        assert not verify_plan(records, OffsetsAssignment(offsets, planner.arena_bytes[0]), 64)


blocks = st.lists(
    st.tuples(st.integers(1, 300), st.integers(0, 8), st.sampled_from([0, 1, 3, 2**31 - 1])),
    max_size=12,
)


@given(blocks)
def test_blocks_keep_all_but_their_offsets(rows):
    offset, laid = 0, []
    for tensor, (size, first, more) in enumerate(rows):
        laid.append(Allocation(tensor, first, min(first + more, 2**31 - 1), offset, size))
        offset += -(-size // 16) * 16
    result = tightened(laid, 16)
    if result is None:
        return
    assert [block._replace(offset=0) for block in result] == [b._replace(offset=0) for b in laid]
    end = max(block.offset + block.size for block in result)
    records = [TensorUsageRecord(b.size, b.first_node, b.last_node) for b in result]
    assert not verify_plan(records, OffsetsAssignment([b.offset for b in result], end), 16)
    assert end < max(block.offset + block.size for block in laid)


def test_a_plan_that_looks_tight_is_so():
    rng, tight = random.Random(3), 0
    for _ in range(2000):
        starts = sorted(rng.randrange(6) for _ in range(rng.randrange(1, 6)))
        blocks, end = [], 0
        for tensor, first in enumerate(starts):
            offset, size = rng.choice([0, end]), rng.choice([1, 60, 64, 500, 6400])
            blocks.append(Allocation(tensor, first, first + rng.randrange(4), offset, size))
            end = -(-(offset + size) // 64) * 64
        records = [TensorUsageRecord(b.size, b.first_node, b.last_node) for b in blocks]
        total = max(block.offset + block.size for block in blocks)
        if is_tight(blocks, 64):
            tight += 1
            assert total <= TOLERATED * lower_bound(records, 64)
    assert 500 < tight < 2000
