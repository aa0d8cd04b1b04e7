"""The micro allocator, and what it and TFLM's own tests say a model takes."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph.errors import (
    ArenaTooSmallError,
    ArgumentError,
    ModelError,
    OperatorError,
    StateError,
)
from delegraph.graph.loader import load_model, parse_model
from delegraph.memory.records import OffsetsAssignment, TensorUsageRecord
from delegraph.memory.verifier import verify_plan
from delegraph.micro.allocation_info import allocation_infos
from delegraph.micro.allocator import Kept, MicroAllocator
from delegraph.micro.estimate import estimate_arena
from delegraph.micro.layout import Layout
from delegraph.micro.offline_plans import METADATA_NAME, encode_offline_plan
from delegraph.micro.planners import BufferPlan, GreedyMemoryPlanner, NonPersistentMemoryPlannerShim
from delegraph.micro.recording_allocator import RecordingMicroAllocator
from delegraph.micro.targets import TARGET_32, TARGET_64
from delegraph.testing import graph_model, subgraphs_model, tensor
from support.corpus import corpus_file, corpus_rows, needs_corpus

TWELVE = tensor((3, 4))  # 48 bytes


def branches(metadata=None):
    nodes = [("SIN", "t0", "t1"), ("COS", "t0", "t2"), ("ADD", "t1 t2", "t3")]
    tensors = {f"t{i}": TWELVE for i in range(4)}
    model = graph_model(nodes, inputs="t0", outputs="t3", tensors=tensors, metadata=metadata)
    return parse_model(model)


def aligned_arena(size):
    """Return memory whose first byte has an address that is a multiple of 64."""
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def offsets(memory, arena):
    start = arena.ctypes.data
    return [None if raw is None else raw.ctypes.data - start for raw in memory.tensors[0]]


def finished(model, allocator):
    allocator.start_model_allocation(model)
    return allocator.finish_model_allocation(model)


def test_of_equal_tensors_the_later_one_is_placed_first():
    arena = aligned_arena(4096)
    memory = finished(branches(), MicroAllocator.create(arena))
    assert offsets(memory, arena) == [0, 96, 48, 0]
    assert memory.planned_bytes == 144


def test_the_linear_planner_gives_each_tensor_bytes_of_its_own():
    arena = aligned_arena(8192)
    allocator = MicroAllocator.create(arena, planner="linear")
    assert offsets(finished(branches(), allocator), arena) == [0, 48, 96, 144]
    assert allocator.preserves_all_tensors


def test_offline_offsets_are_taken_from_the_file():
    arena = aligned_arena(4096)
    model = branches({METADATA_NAME: encode_offline_plan([256, -1, 0, -1])})
    assert offsets(finished(model, MicroAllocator.create(arena)), arena) == [256, 96, 0, 48]


def test_a_planner_of_the_callers_is_used_and_takes_no_room():
    arena = aligned_arena(4096)
    allocator = MicroAllocator.create(arena, planner=NonPersistentMemoryPlannerShim(
        BufferPlan([0, 512, 256, 128])))  # fmt: skip
    assert allocator.persistent_used_bytes == TARGET_32.single_arena + TARGET_32.micro_allocator
    assert offsets(finished(branches(), allocator), arena) == [0, 512, 256, 128]


def test_sizes_are_rounded_up_to_sixteen_for_the_planner():
    arena = aligned_arena(4096)
    model = parse_model(graph_model([("SIN", "x", "y")], inputs="x", outputs="y",
                                    tensors={"x": tensor((5,)), "y": tensor((5,))}))  # fmt: skip
    assert finished(model, MicroAllocator.create(arena)).planned_bytes == 64
    assert finished(model, MicroAllocator.create(arena)).tensors[0][0].size == 20


def test_an_arena_at_an_odd_address_starts_at_the_next_multiple_of_sixteen():
    arena = aligned_arena(4096)
    memory = finished(branches(), MicroAllocator.create(arena[3:]))
    assert offsets(memory, arena) == [16, 112, 64, 16]


def test_values_written_to_tensors_are_in_the_callers_memory():
    arena = bytearray(4096)
    memory = finished(branches(), MicroAllocator.create(arena))
    memory.tensors[0][0][:] = 0xA5
    assert arena.count(0xA5) == 48


def test_read_only_memory_is_refused():
    with pytest.raises(ArgumentError, match="read-only, needs to be writable"):
        MicroAllocator.create(memoryview(bytes(64)))


def test_an_unknown_planner_is_refused():
    with pytest.raises(ArgumentError, match="no planner 'best'; there are 'greedy' and 'linear'"):
        MicroAllocator.create(bytearray(4096), planner="best")


def test_a_model_is_started_once_and_finished_once():
    allocator = MicroAllocator.create(bytearray(4096))
    with pytest.raises(StateError, match=r"start_model_allocation\(\) comes first"):
        allocator.finish_model_allocation(branches())
    allocator.start_model_allocation(branches())
    with pytest.raises(StateError, match=r"finish_model_allocation\(\) comes first"):
        allocator.start_model_allocation(branches())


def test_a_node_may_have_twelve_scratch_buffers():
    allocator = MicroAllocator.create(bytearray(4096))
    allocator.start_model_allocation(branches())
    numbers = [allocator.request_scratch_buffer_in_arena(16) for _ in range(12)]
    with pytest.raises(OperatorError, match=r"exceeds limit per operator \(12\)"):
        allocator.request_scratch_buffer_in_arena(16)
    allocator.finish_prepare_node_allocations(0)
    assert [*numbers, allocator.request_scratch_buffer_in_arena(16)] == list(range(13))


def test_scratch_is_planned_beside_the_tensors_of_its_node():
    arena = aligned_arena(4096)
    allocator = MicroAllocator.create(arena)
    allocator.start_model_allocation(branches())
    for node, size in ((0, 100), (1, 0), (2, 40)):
        if size:
            allocator.request_scratch_buffer_in_arena(size)
        allocator.finish_prepare_node_allocations(node)
    memory = allocator.finish_model_allocation(branches())
    start = arena.ctypes.data
    # 112 bytes in step 1; then, of 48 each: the other scratch buffer, t3, t2, t1, t0
    placed = [*memory.tensors[0], *memory.scratch]
    assert [raw.ctypes.data - start for raw in placed] == [192, 144, 96, 48, 0, 0]
    assert [raw.size for raw in memory.scratch] == [100, 40]


def test_temporary_memory_must_be_given_back_before_the_node_is_finished():
    allocator = MicroAllocator.create(bytearray(4096))
    allocator.start_model_allocation(branches())
    temp = allocator.allocate_temp_tensor(branches().subgraphs[0].tensors[0])
    assert not allocator.is_all_temp_deallocated()
    with pytest.raises(StateError, match=r"deallocate_temp\(\) comes first"):
        allocator.finish_prepare_node_allocations(0)
    allocator.deallocate_temp_tensor(temp)
    allocator.finish_prepare_node_allocations(0)


def test_models_that_follow_each_other_share_the_head_and_stack_their_tails():
    small, large = branches(), parse_model(graph_model([("SIN", "x", "y")], inputs="x", outputs="y",
        tensors={"x": tensor((1000,)), "y": tensor((1000,))}))  # fmt: skip
    arena = aligned_arena(16384)
    allocator = MicroAllocator.create(arena)
    finished(large, allocator)
    tail = allocator.persistent_used_bytes
    assert allocator.used_bytes - tail == 8000
    memory = finished(small, allocator)
    assert allocator.used_bytes - allocator.persistent_used_bytes == 8000
    assert allocator.persistent_used_bytes > tail
    assert offsets(memory, arena)[0] == 0


def test_two_arenas_hold_what_stays_and_what_passes():
    kept, passing = aligned_arena(1024), aligned_arena(1024)
    nodes = [("ADD", "x v", "y")]
    tensors = {"v": tensor((4,), is_variable=True)}
    model = parse_model(graph_model(nodes, inputs="x", outputs="y", tensors=tensors))
    memory = finished(model, MicroAllocator.create_split(kept, passing))
    inside = [np.shares_memory(raw, passing) for raw in memory.tensors[0]]
    assert inside == [True, False, True]
    assert np.shares_memory(memory.tensors[0][1], kept)


def test_two_arenas_must_be_two():
    arena = bytearray(1024)
    with pytest.raises(ArgumentError, match="both arenas are the same memory"):
        MicroAllocator.create_split(arena, arena)


def test_working_memory_of_the_planner_is_asked_for_to_16_bytes():
    model = branches()
    needed = estimate_arena(model).total_bytes
    with pytest.raises(ArenaTooSmallError):
        finished_on_paper(model, needed - 16)
    for more in range(20):
        finished_on_paper(model, needed + more)


def test_scratch_handles_are_kept_once_for_each_subgraph():
    one = [([("SIN", "x", "y")], "x", "y", {})]
    used = []
    for subgraphs in (one, one * 2):
        model = parse_model(subgraphs_model(subgraphs))
        sizes = []
        for requests in (0, 1):
            allocator = MicroAllocator.create(bytearray(4096))
            allocator.start_model_allocation(model)
            for _ in range(requests):
                allocator.request_scratch_buffer_in_arena(4)
            allocator.finish_prepare_node_allocations(0)
            allocator.finish_model_allocation(model)
            sizes.append(allocator.persistent_used_bytes)
        used.append(sizes[1] - sizes[0])
    assert used == [TARGET_32.scratch_handle, 2 * TARGET_32.scratch_handle]


def finished_on_paper(model, size, allocator_class=MicroAllocator, target=TARGET_32):
    allocator = allocator_class.create(size, target=target)
    layout = Layout(model, allocator)
    operators = model.subgraphs[0].operators
    layout.start()
    for operator in operators:
        layout.init(0, operator)
    for operator in operators:
        layout.prepare(0, operator)
        layout.finish_prepare(operator)
    layout.finish()
    return allocator


@needs_corpus
def test_the_keyword_model_takes_what_tflm_itself_measures():
    """The figures of memory_arena_threshold_test.cc of TFLM, measured on x86-64.

    They are those of a build with TF_LITE_STATIC_MEMORY; TFLM allows itself 3 %.
    """
    model = load_model(corpus_file("tflm__keyword_scrambled"))
    target = TARGET_64
    allocator = finished_on_paper(model, 22 * 1024, RecordingMicroAllocator, target)
    own = (
        target.single_arena + target.greedy_planner + target.micro_allocator
        + target.builtin_data_allocator + target.subgraph_allocations
    )  # fmt: skip
    head = allocator.used_bytes - allocator.persistent_used_bytes
    assert head == 672
    assert allocator.persistent_used_bytes - own == 13800
    assert allocator.used_bytes - own == 14472
    recorded = allocator.recorded
    assert recorded[Kept.VARIABLES].used_bytes == 10240
    assert recorded[Kept.TENSORS].used_bytes == 128
    assert recorded[Kept.QUANTIZATION].used_bytes == 64
    assert recorded[Kept.EVAL_TENSORS].count == 54
    assert recorded[Kept.NODES].count == 15
    assert recorded[Kept.BUFFERS].used_bytes == pytest.approx(840, rel=0.03)


@needs_corpus
def test_the_head_of_every_real_model_holds_its_tensors_apart():
    """By the verifier, which knows nothing of TFLM."""
    seen = 0
    for row in corpus_rows():
        try:
            model = load_model(corpus_file(row["name"]))
        except ModelError:
            continue
        infos = [info for info in allocation_infos(model) if info.needs_allocating]
        planner = GreedyMemoryPlanner()
        records = []
        for info in infos:
            size = -(-info.size // 16) * 16
            planner.add_buffer(size, info.first_use, info.last_use)
            # steps of -1 are those of tensors that nobody uses
            records.append(TensorUsageRecord(size, info.first_use + 1, info.last_use + 1))
        plan = OffsetsAssignment(list(planner.offsets), planner.maximum_memory_size)
        assert verify_plan(records, plan, alignment=16) == [], row["name"]
        seen += 1
    assert seen > 0


def test_the_report_has_totals_and_every_kind_there_is():
    allocator = finished_on_paper(branches(), 4096, RecordingMicroAllocator)
    lines = allocator.report().splitlines()
    total = allocator.used_bytes
    assert lines[0] == f"[RecordingMicroAllocator] Arena allocation total {total} bytes"
    assert lines[1] == "[RecordingMicroAllocator] Arena allocation head 144 bytes"
    assert lines[3] == (
        "[RecordingMicroAllocator] 'TfLiteEvalTensor data' used 48 bytes with alignment overhead "
        "(requested 48 bytes for 4 allocations)"
    )
    assert not any("variable" in line for line in lines)


def test_operators_without_a_known_kernel_are_named():
    nodes = [("SIN", "x", "s"), ("EXPM1", "s", "t"), ("ATAN2", "t t", "y")]
    estimate = estimate_arena(parse_model(graph_model(nodes, inputs="x", outputs="y")))
    assert estimate.unknown_operators == ("ATAN2", "EXPM1")
    assert estimate.uncertainty_bytes > 2 * 64


def test_the_greedy_planner_is_the_default():
    allocator = MicroAllocator.create(bytearray(4096))
    own = TARGET_32.single_arena + TARGET_32.greedy_planner + TARGET_32.micro_allocator
    assert allocator.persistent_used_bytes == own
    assert GreedyMemoryPlanner().scratch_bytes(3) == 120
