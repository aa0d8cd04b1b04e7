from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.errors import ArgumentError
from delegraph.memory.arena_planner import ArenaPlanner, PlanNode, TensorKind
from support.planner_graphs import Graph, planned

NEVER = 10**9
RESHAPE, BINARY = 4 | 1, 4 | 8  # in-place bits of RESHAPE, and of ADD and MUL


def offset(planner, tensor):
    address = planner.address(tensor)
    return None if address is None else address[1]


def offsets(planner, graph):
    return [offset(planner, tensor) for tensor in range(graph.num_tensors)]


def lifetimes(graph, roots, preserve_all):
    """Return (first, last) node of each tensor that owns memory, by reading the graph afresh."""
    first = dict.fromkeys([*graph.inputs, *graph.variables], 0)
    last = {}
    for position, node in enumerate(graph.nodes):
        for tensor in [*node.outputs, *node.temporaries]:
            first.setdefault(roots[tensor], position)
        for tensor in [*node.inputs, *node.temporaries]:
            if tensor != -1:
                last[roots[tensor]] = position
    kept = {roots[tensor] for tensor in [*graph.inputs, *graph.outputs, *graph.variables]}
    forever = kept | (first.keys() - last.keys())
    return {
        tensor: (start, NEVER if preserve_all or tensor in forever else last[tensor])
        for tensor, start in first.items()
    }


def check(planner, graph, *, preserve_all=False, alignment=64):
    """Fail if tensors in use at the same time overlap, are misaligned, too small or missing."""
    roots = [planner.shared_root(tensor) for tensor in range(graph.num_tensors)]
    alive = lifetimes(graph, roots, preserve_all)
    blocks = []
    for tensor, (first, last) in alive.items():
        kind = graph.tensor_kind(tensor)
        if kind is TensorKind.OTHER or graph.sizes[tensor] == 0:
            assert planner.address(tensor) is None
            continue
        buffer, start, size = planner.address(tensor)
        assert buffer.ctypes.data % 64 == 0
        assert start % alignment == 0
        assert size == graph.sizes[tensor]
        assert start + size <= len(buffer)
        if kind is TensorKind.ARENA_RW_PERSISTENT:
            last = NEVER
        blocks.append((kind, start, start + size, first, last, tensor))
    for i, (kind, start, end, first, last, tensor) in enumerate(blocks):
        for other_kind, other_start, other_end, other_first, other_last, other in blocks[:i]:
            together = kind is other_kind and first <= other_last and other_first <= last
            overlap = start < other_end and other_start < end
            assert not (together and overlap), f"tensors {tensor} and {other}"
    for tensor, root in enumerate(roots):
        if tensor != root and planner.address(root) is not None:
            assert planner.address(tensor)[1] == planner.address(root)[1]


def any_graph(rng):
    count = rng.randrange(14)
    inputs = list(range(rng.randrange(4)))
    size = rng.choice([lambda: rng.randrange(200), lambda: rng.choice([4, 64, 64, 100])])
    sizes = [size() for _ in inputs]
    readable = [-1, *inputs]
    nodes = []
    for _ in range(count):
        reads = [rng.choice(readable) for _ in range(rng.randrange(4))]
        writes = list(range(len(sizes), len(sizes) + rng.choice([1, 1, 1, 2])))
        inplace = rng.choice([0, 0, 4, 8, 16, RESHAPE, BINARY])
        same = reads and reads[0] >= 0 and rng.random() < 0.7
        sizes += [sizes[reads[0]] if same else size() for _ in writes]
        if inplace == RESHAPE and reads and reads[0] >= 0:  # leaves the data as it is
            sizes[writes[0]] = sizes[reads[0]]
        readable += writes
        temporaries = []
        if rng.random() < 0.2:
            temporaries.append(len(sizes))
            sizes.append(size())
        nodes.append(PlanNode(reads, writes, temporaries, inplace))
    made = [tensor for node in nodes for tensor in node.outputs]
    outputs = rng.sample(made, min(len(made), rng.randrange(3)))
    variables = rng.sample(inputs, min(len(inputs), rng.randrange(2)))
    kinds = dict.fromkeys(variables, TensorKind.ARENA_RW_PERSISTENT)
    for tensor in range(len(sizes)):
        if rng.random() < 0.05:
            kinds[tensor] = TensorKind.OTHER
    return Graph(nodes, inputs, outputs, sizes, variables, kinds)


@settings(max_examples=500, derandomize=True)
@given(seed=st.integers(0, 2**32), preserve_all=st.booleans(), alignment=st.sampled_from([4, 64]))
def test_tensors_in_use_together_never_overlap(seed, preserve_all, alignment):
    graph = any_graph(random.Random(seed))
    planner = planned(graph, preserve_all_tensors=preserve_all, alignment=alignment)
    check(planner, graph, preserve_all=preserve_all, alignment=alignment)


@settings(max_examples=200, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_tensors_in_use_together_never_overlap_when_planned_in_pieces(seed):
    rng = random.Random(seed)
    graph = any_graph(rng)
    planner = ArenaPlanner(graph)
    planner.plan_allocations()
    ends = sorted(rng.randrange(len(graph.nodes) + 1) for _ in range(3))
    for first, end in zip([0, *ends], [*ends, max(len(graph.nodes), 1)], strict=True):
        if first < end or first == 0:
            planner.execute_allocations(first, max(end - 1, 0))
    check(planner, graph)


def test_worked_example_of_the_order_of_placement():
    nodes = [PlanNode([0, 1], [2]), PlanNode([2, 0], [4, 5]), PlanNode([4, 5], [3])]
    graph = Graph(nodes, [0, 1], [3], [3 * (i + 1) for i in range(6)])
    assert offsets(planned(graph, alignment=4), graph) == [0, 4, 48, 48, 32, 12]


def chain(*inplace, size=64):
    nodes = [PlanNode([i], [i + 1], inplace=bits) for i, bits in enumerate(inplace)]
    return Graph(nodes, [0], [len(nodes)], [size] * (len(nodes) + 1))


def test_a_chain_alternates_between_two_places_beside_its_input():
    graph = chain(0, 0, 0, 0, 0)
    assert offsets(planned(graph), graph) == [0, 64, 128, 64, 128, 64]


def test_inputs_and_outputs_share_with_nobody():
    graph = chain(BINARY, BINARY, BINARY, RESHAPE)
    planner = planned(graph)
    assert [planner.shared_root(tensor) for tensor in range(5)] == [0, 1, 1, 1, 4]


def test_a_variable_that_a_node_writes_shares_with_nobody():
    graph = chain(0, RESHAPE, 0)
    graph.variables = [2]
    assert planned(graph).shared_root(2) == 2


def test_a_node_that_changes_data_takes_over_only_what_nobody_else_reads():
    graph = chain(0, BINARY, 0, 0)
    graph.nodes[3].inputs = [3, 1]
    assert planned(graph).shared_root(2) == 2
    graph.nodes[1].inplace = RESHAPE
    assert planned(graph).shared_root(2) == 1


def test_a_node_that_changes_data_does_not_take_over_what_a_view_reads():
    """Tensor 2 is a view of 1, so overwriting 1 by way of a second view 3 would change it."""
    nodes = [
        PlanNode([0], [1]),
        PlanNode([1], [2], inplace=RESHAPE),
        PlanNode([1], [3], inplace=RESHAPE),
        PlanNode([3], [4], inplace=BINARY),
        PlanNode([2, 4], [5]),
    ]
    planner = planned(Graph(nodes, [0], [5], [64] * 6))
    assert [planner.shared_root(tensor) for tensor in (2, 3, 4)] == [1, 1, 4]


@pytest.mark.parametrize(("size", "root"), [(4, 2), (8, 1)])
def test_scalars_share_with_nobody(size, root):
    graph = chain(0, BINARY, 0, size=size)
    assert planned(graph).shared_root(2) == root


def test_the_second_input_is_taken_over_when_the_first_one_cannot():
    graph = chain(0, BINARY, 0)
    graph.nodes[1].inputs = [0, 1]
    assert planned(graph).shared_root(2) == 1


def test_shared_memory_lives_until_its_last_reader():
    graph = chain(0, RESHAPE, 0, 0)
    graph.nodes[3].inputs = [3, 2]
    planner = planned(graph)
    assert planner.shared_root(2) == 1
    assert offset(planner, 1) == offset(planner, 2)
    check(planner, graph)


def test_sharing_ends_when_sizes_part():
    graph = chain(0, BINARY, 0)
    planner = ArenaPlanner(graph)
    planner.plan_allocations()
    graph.sizes[2] = 640
    planner.execute_allocations(0, 2)
    assert planner.shared_root(2) == 2
    assert offset(planner, 2) != offset(planner, 1)


def test_sharing_ends_when_the_root_leaves_the_arena():
    graph = chain(0, BINARY, 0)
    planner = ArenaPlanner(graph)
    planner.plan_allocations()
    graph.kinds[1] = TensorKind.OTHER
    planner.execute_allocations(0, 2)
    assert planner.shared_root(2) == 2
    assert planner.address(1) is None
    assert planner.address(2) is not None


def test_preserving_all_tensors_gives_each_its_own_memory():
    graph = chain(0, BINARY, RESHAPE, 0)
    planner = planned(graph, preserve_all_tensors=True)
    assert offsets(planner, graph) == [0, 64, 128, 192, 256]


def test_unread_tensors_keep_their_memory():
    nodes = [PlanNode([0], [1]), PlanNode([0], [2]), PlanNode([2], [3])]
    graph = Graph(nodes, [0], [3], [64] * 4)
    assert len(set(offsets(planned(graph), graph))) == 4


def test_temporaries_live_during_their_node():
    graph = chain(0, 0, 0)
    graph.sizes += [64, 64]
    graph.nodes[0].temporaries, graph.nodes[2].temporaries = [4], [5]
    planner = planned(graph)
    assert offsets(planner, graph) == [0, 64, 128, 64, 128, 192]


def test_variables_live_in_an_arena_of_their_own():
    graph = chain(0, 0)
    graph.sizes.append(100)
    graph.variables, graph.kinds = [3], {3: TensorKind.ARENA_RW_PERSISTENT}
    planner = planned(graph)
    assert planner.arena_bytes == (192, 100)
    assert planner.address(3)[0] is not planner.address(0)[0]


def test_variables_are_placed_once():
    graph = chain(0, 0)
    graph.sizes += [100, 100]
    graph.variables = [3, 4]
    graph.kinds = dict.fromkeys(graph.variables, TensorKind.ARENA_RW_PERSISTENT)
    planner = planned(graph)
    before = offsets(planner, graph)
    planner.execute_allocations(0, 1)
    assert offsets(planner, graph) == before
    assert planner.arena_bytes == (192, 228)


def test_an_absent_variable_is_an_error():
    graph = chain(0)
    graph.variables = [-1]
    with pytest.raises(ArgumentError, match="-1 is among the graph's variables"):
        planned(graph)


def test_tensors_of_no_bytes_have_no_address():
    graph = chain(0, 0)
    graph.sizes[1] = 0
    assert offsets(planned(graph), graph) == [0, None, 64]


def test_a_graph_without_nodes_has_its_inputs():
    graph = Graph([], [0, 1, -1], [0, -1], [10, 20])
    assert offsets(planned(graph), graph) == [0, 64]


def test_all_addresses_change_when_the_buffer_moves():
    graph = chain(0, 0, 0)
    planner = ArenaPlanner(graph)
    planner.plan_allocations()
    assert list(planner.execute_allocations(0, 0)) == [0, 1, 2, 3]
    assert offsets(planner, graph) == [0, 64, None, None]
    assert list(planner.execute_allocations(1, 1)) == [0, 1, 2, 3]
    assert list(planner.execute_allocations(2, 2)) == [3]
    assert list(planner.execute_allocations(2, 2)) == []


def test_contents_survive_planning_in_pieces():
    graph = chain(0, 0, 0)
    planner = ArenaPlanner(graph)
    planner.plan_allocations()
    planner.execute_allocations(0, 0)
    planner.address(1)[0][64:128] = 5
    planner.execute_allocations(1, 2)
    assert (planner.address(1)[0][64:128] == 5).all()


def test_a_larger_plan_replaces_the_buffer_and_a_smaller_one_keeps_it():
    graph = chain(0, 0)
    planner = planned(graph)
    buffer = planner.address(0)[0]
    graph.sizes = [32] * 3
    planner.reset_allocations()
    assert planner.address(0) is None
    planner.execute_allocations(0, 1)
    assert planner.address(0)[0] is buffer
    graph.sizes = [640] * 3
    planner.reset_allocations()
    planner.execute_allocations(0, 1)
    assert planner.address(0)[0] is not buffer
    check(planner, graph)


def test_a_tensor_that_outgrew_its_place_has_no_address():
    graph = chain(0, 0)
    planner = planned(graph)
    graph.sizes[1] = 65
    assert planner.address(1) is None


def test_tensors_behind_a_node_can_be_planned_again():
    graph = chain(0, 0, 0, 0)
    planner = planned(graph)
    before = offsets(planner, graph)
    assert planner.reset_allocations_after(1) == [3, 4]
    assert offsets(planner, graph) == [*before[:3], None, None]
    graph.sizes[3] = graph.sizes[4] = 200
    planner.execute_allocations(2, 3)
    assert offsets(planner, graph)[:3] == before[:3]
    check(planner, graph)


def test_released_memory_comes_back_at_the_same_offsets():
    graph = chain(0, 0)
    graph.sizes.append(100)
    graph.variables, graph.kinds = [3], {3: TensorKind.ARENA_RW_PERSISTENT}
    planner = planned(graph)
    before = offsets(planner, graph)
    variables = planner.address(3)[0]
    planner.release_non_persistent_memory()
    assert not planner.has_non_persistent_memory
    assert planner.arena_bytes == (0, 100)
    assert offsets(planner, graph) == [None, None, None, 0]
    planner.acquire_non_persistent_memory()
    planner.acquire_non_persistent_memory()
    assert offsets(planner, graph) == before
    assert planner.address(3)[0] is variables


def test_plans_over_the_limit_get_no_memory():
    graph = chain(0, 0)
    planner = ArenaPlanner(graph)
    planner.plan_allocations()
    with pytest.raises(MemoryError, match="the plan needs 192 bytes of 191 allowed"):
        planner.execute_allocations(0, 1, limit=191)
    assert planner.arena_bytes == (0, 0)
    graph.sizes[1] = 2**80
    with pytest.raises(MemoryError, match="tensor 1 of 1208925819614629174706176 bytes"):
        planner.execute_allocations(0, 1, limit=10**30)


def test_thousands_of_tensors_in_use_at_once_do_not_overlap():
    rng = random.Random(5)
    fan = [PlanNode([0], [i + 1]) for i in range(700)]
    join = [PlanNode(range(1, 701), [701])]
    graph = Graph([*fan, *join], [0], [701], [rng.randrange(300) for _ in range(702)])
    check(planned(graph), graph)


def test_what_an_asynchronous_node_reads_keeps_its_memory_while_others_run():
    nodes = [PlanNode([0], [1]), PlanNode([1], [2]), PlanNode([0], [3]), PlanNode([2, 3], [4])]
    sizes = [64, 64, 64, 64, 64]
    planner = planned(Graph(nodes, [0], [4], sizes))
    assert planner.address(1)[1] == planner.address(3)[1]
    nodes[2].held = [1]
    planner = planned(Graph(nodes, [0], [4], sizes))
    assert planner.address(1)[1] != planner.address(3)[1]


@pytest.mark.parametrize("held", [[], [3]])
def test_what_is_read_by_an_asynchronous_node_is_not_overwritten_in_place(held):
    """Tensor 3 is 2 reshaped, and 2 was computed in place of 1: TFLite counts readers of 1 only."""
    nodes = [
        PlanNode([0], [1]),
        PlanNode([1], [2], inplace=BINARY),
        PlanNode([2], [3], inplace=RESHAPE),
        PlanNode([2, 0], [4]),
        PlanNode([3], [5], inplace=BINARY),
        PlanNode([2], [6], held=held),
        PlanNode([4, 5, 6], [7]),
    ]
    planner = planned(Graph(nodes, [0], [7], [64] * 8))
    assert (planner.shared_root(5) == planner.shared_root(2)) == (not held)
