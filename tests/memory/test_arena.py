from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError, StateError
from delegraph.memory import Allocation, SimpleMemoryArena, aligned_buffer, best_fit
from delegraph.memory.best_fit import NEVER, BestFit

STATM = Path("/proc/self/statm")


def offset_by_scanning(blocks, size, first, last, alignment):
    """The definition: look at the gaps between all blocks live at the same time, in order."""
    best = best_fit = None
    current = 0
    for block_first, block_last, offset, end in sorted(blocks, key=lambda block: block[2]):
        if block_last < first or block_first > last:
            continue
        aligned = (current + alignment - 1) // alignment * alignment
        if aligned + size <= offset and (best_fit is None or offset - aligned < best_fit):
            best, best_fit = aligned, offset - current
        current = max(current, end)
    return (current + alignment - 1) // alignment * alignment if best is None else best


def any_lifetime(rng, nodes):
    first = rng.randrange(nodes)
    last = rng.choice([first, min(first + rng.randrange(4), nodes), rng.randrange(first, nodes)])
    return first, rng.choice([last, last, last, NEVER])


@pytest.mark.parametrize("few", [0, 3, 10**9])
@pytest.mark.parametrize("nodes", [4, 30, 700])
@pytest.mark.parametrize("alignment", [1, 4, 24, 64])
def test_blocks_go_where_scanning_all_of_them_puts_them(monkeypatch, few, nodes, alignment):
    monkeypatch.setattr(best_fit, "FEW", few)
    rng = random.Random(nodes * 100 + alignment)
    for _ in range(12):
        found, blocks = BestFit(alignment), []
        largest = rng.choice([3, 100, 1000])
        for _ in range(60):
            first, last = any_lifetime(rng, nodes)
            size = rng.randrange(1, largest) * rng.choice([1, alignment])
            offset = offset_by_scanning(blocks, size, first, last, alignment)
            assert found.best_offset(size, first, last) == offset
            blocks.append((first, last, offset, offset + size))
            found.add(first, last, offset, size)


def test_a_crowd_of_blocks_is_placed_as_a_few_are():
    rng = random.Random(3)
    found, blocks = BestFit(64), []
    sizes = sorted((rng.randrange(1, 5000) for _ in range(900)), reverse=True)
    for size in sizes:
        first, last = sorted((rng.randrange(900), rng.randrange(900)))
        offset = offset_by_scanning(blocks, size, first, last, 64)
        assert found.best_offset(size, first, last) == offset
        blocks.append((first, last, offset, offset + size))
        found.add(first, last, offset, size)


def test_the_gap_to_beat_is_measured_from_the_unaligned_end():
    """Two gaps of 64 bytes: the second wins as the first one follows 28 bytes of padding."""
    arena = SimpleMemoryArena()
    for size, nodes in ((100, (0, 9)), (64, (0, 0)), (64, (0, 9)), (64, (0, 0)), (1, (0, 9))):
        arena.allocate(size, 0, *nodes)
    assert arena.allocate(64, 1, 1, 9).offset == 256


def test_worked_example_of_six_blocks():
    arena = SimpleMemoryArena(alignment=32)
    blocks = [(2047, 1, 3), (2047, 2, 5), (2047, 3, 6), (2047, 5, 6), (1023, 4, 6), (1023, 6, 6)]
    found = [arena.allocate(size, i, *nodes).offset for i, (size, *nodes) in enumerate(blocks)]
    assert found == [0, 2048, 4096, 0, 6144, 2048]
    assert arena.high_water_mark == 7167


def test_a_block_of_no_bytes_takes_no_room():
    arena = SimpleMemoryArena()
    arena.allocate(10, 0, 0, 1)
    assert arena.allocate(0, 1, 0, 1) == Allocation(1, 0, 1, 0, 0)
    assert arena.allocate(10, 2, 0, 1).offset == 64
    assert arena.high_water_mark == 74


def test_buffers_start_at_multiples_of_64_and_hold_the_plan():
    arena = SimpleMemoryArena()
    block = arena.allocate(1000, 0, 0, 1)
    assert arena.commit()
    buffer, offset, size = arena.resolve(block)
    assert (buffer.ctypes.data % 64, offset, size, len(buffer)) == (0, 0, 1000, 1000)


def test_growth_keeps_contents_and_smaller_plans_keep_the_buffer():
    arena = SimpleMemoryArena()
    small = arena.allocate(100, 0, 0, 1)
    arena.commit()
    arena.resolve(small)[0][:] = 7
    arena.allocate(1000, 1, 0, 1)
    assert arena.commit()
    buffer, _, _ = arena.resolve(small)
    assert (buffer[:100] == 7).all()
    arena.clear_plan()
    block = arena.allocate(50, 0, 0, 1)
    assert not arena.commit()
    assert arena.resolve(block)[0] is buffer
    assert arena.high_water_mark == 50


def test_a_released_buffer_comes_back_with_the_same_plan():
    arena = SimpleMemoryArena()
    block = arena.allocate(100, 0, 0, 1)
    arena.commit()
    arena.release_buffer()
    assert (arena.buffer_size, arena.committed) == (0, False)
    assert arena.commit()
    assert arena.resolve(block)[1:] == (0, 100)


def test_committing_nothing_moves_nothing():
    assert not SimpleMemoryArena().commit()


def test_purged_blocks_are_no_longer_in_the_way():
    arena = SimpleMemoryArena()
    blocks = [arena.allocate(64, i, i, NEVER) for i in range(3)]
    arena.purge_after(1)
    assert arena.allocate(64, 3, 0, 9).offset == 128
    arena.reset_allocations()
    assert arena.allocate(64, 4, 0, 9).offset == 0
    arena.activate_at(blocks, 1)
    assert arena.allocate(64, 5, 0, 9).offset == 128
    assert arena.high_water_mark == 192


def test_purging_the_past_keeps_what_is_still_used():
    arena = SimpleMemoryArena()
    for last in (1, 2, 3):
        arena.allocate(64, last, 0, last)
    arena.purge_before(3)
    assert arena.allocate(64, 9, 0, 9).offset == 0


def test_memory_that_is_only_planned_has_no_address():
    arena = SimpleMemoryArena()
    block = arena.allocate(10, 5, 0, 1)
    with pytest.raises(StateError, match="memory of tensor 5 is planned but not committed"):
        arena.resolve(block)


@pytest.mark.parametrize("alignment", [0, -4, 65])
def test_alignment_is_1_to_64(alignment):
    with pytest.raises(ArgumentError, match=re.escape(f"is {alignment}, needs 1 to 64")):
        SimpleMemoryArena(alignment)


def test_sizes_beyond_any_memory_are_refused():
    arena = SimpleMemoryArena()
    arena.allocate(2**61, 0, 0, 1)
    arena.allocate(2**60, 1, 0, 1)
    with pytest.raises(MemoryError, match="tensor 2 of "):
        arena.allocate(2**70, 2, 0, 1)
    with pytest.raises(MemoryError):
        arena.commit()
    assert (arena.buffer_size, arena.committed) == (0, False)
    with pytest.raises(MemoryError, match="a buffer of 9223372036854775807 bytes"):
        aligned_buffer(2**63 - 1)


@pytest.mark.skipif(not STATM.exists(), reason="only Linux tells the resident memory this way")
def test_a_large_plan_touches_no_memory():
    before = int(STATM.read_text().split()[1])
    arena = SimpleMemoryArena()
    block = arena.allocate(2**31, 0, 0, 1)
    arena.commit()
    arena.resolve(block)[0][2**30] = 1
    assert int(STATM.read_text().split()[1]) - before < 1000  # pages
