"""Every rule of the arena allocators; addresses are worked out by hand."""

from __future__ import annotations

import pytest

from delegraph.errors import ArenaTooSmallError, StateError
from delegraph.micro.arena_allocators import (
    NonPersistentArenaBufferAllocator,
    PersistentArenaBufferAllocator,
    RecordingSingleArenaBufferAllocator,
    SingleArenaBufferAllocator,
)


def test_persistent_memory_comes_from_the_end_aligned_downwards():
    arena = SingleArenaBufferAllocator(100, start=1000)
    assert arena.allocate_persistent_buffer(10, 16) == 1088  # 1090 down to 16
    assert arena.allocate_persistent_buffer(1, 4) == 1084
    assert arena.persistent_used_bytes == 16
    assert arena.buffer_size == 100


def test_alignment_need_not_be_a_power_of_two():
    arena = SingleArenaBufferAllocator(100, start=10)
    assert arena.allocate_persistent_buffer(4, 12) == 96  # 106 down
    assert arena.allocate_resizable_buffer(8, 12) == 12  # 10 up
    assert arena.allocate_temp(1, 24) == 24  # 20 up


def test_alignment_is_that_of_addresses_not_of_offsets():
    arena = SingleArenaBufferAllocator(64, start=3)
    assert arena.allocate_resizable_buffer(4, 16) == 16
    assert arena.non_persistent_used_bytes == 17  # the padding counts


def test_missing_persistent_memory_is_told_to_the_byte():
    arena = SingleArenaBufferAllocator(64)
    arena.allocate_resizable_buffer(32, 1)
    with pytest.raises(
        ArenaTooSmallError, match="48 bytes requested, 32 available, 16 missing"
    ) as e:
        arena.allocate_persistent_buffer(48, 16)
    assert e.value.missing == 16
    assert arena.persistent_used_bytes == 0


def test_exactly_all_memory_can_be_had():
    arena = SingleArenaBufferAllocator(64)
    arena.allocate_resizable_buffer(32, 16)
    assert arena.allocate_persistent_buffer(32, 16) == 32
    assert (arena.used_bytes, arena.available_memory(16)) == (64, 0)


def test_persistent_memory_grows_over_temporary_memory():
    arena = SingleArenaBufferAllocator(64)
    temp = arena.allocate_temp(48, 1)
    assert arena.allocate_persistent_buffer(48, 1) == 16 < temp + 48


def test_available_memory_is_never_negative():
    arena = SingleArenaBufferAllocator(64)
    arena.allocate_temp(48, 1)
    arena.allocate_persistent_buffer(48, 1)
    assert arena.available_memory(1) == 0


def test_available_memory_is_aligned_at_both_ends():
    arena = SingleArenaBufferAllocator(64)
    arena.allocate_temp(5, 1)
    arena.allocate_persistent_buffer(5, 1)  # tail at 59
    assert arena.available_memory(16) == 48 - 16


def test_temporary_memory_lies_behind_the_resizable_buffer():
    arena = SingleArenaBufferAllocator(64)
    arena.allocate_resizable_buffer(10, 4)
    first, second = arena.allocate_temp(4, 4), arena.allocate_temp(4, 8)
    assert (first, second) == (12, 16)
    assert arena.non_persistent_used_bytes == 20


def test_a_deallocated_temporary_gives_nothing_back_before_the_reset():
    arena = SingleArenaBufferAllocator(64)
    arena.deallocate_temp(arena.allocate_temp(40, 1))
    with pytest.raises(ArenaTooSmallError, match="24 available, 16 missing"):
        arena.allocate_temp(40, 1)
    arena.reset_temp_allocations()
    assert arena.allocate_temp(40, 1) == 0


def test_the_reset_needs_every_temporary_deallocated():
    arena = SingleArenaBufferAllocator(64, start=8)
    first, second = arena.allocate_temp(4, 4), arena.allocate_temp(4, 4)
    arena.deallocate_temp(first)
    assert not arena.is_all_temp_deallocated()
    with pytest.raises(StateError, match=r"deallocate_temp\(\) comes first"):
        arena.reset_temp_allocations()
    arena.deallocate_temp(second)
    assert arena.is_all_temp_deallocated()


def test_the_wrong_address_deallocated_is_seen_by_the_checksum():
    arena = SingleArenaBufferAllocator(64, start=8)
    arena.allocate_temp(4, 4)
    arena.deallocate_temp(12)  # the count is right
    assert not arena.is_all_temp_deallocated()


def test_the_buffer_cannot_be_resized_under_temporary_memory():
    arena = SingleArenaBufferAllocator(64)
    buffer = arena.allocate_resizable_buffer(10, 4)
    arena.deallocate_temp(arena.allocate_temp(4, 4))
    with pytest.raises(StateError, match=r"reset_temp_allocations\(\) comes first"):
        arena.resize_buffer(buffer, 12, 4)
    arena.reset_temp_allocations()
    arena.resize_buffer(buffer, 12, 4)
    assert arena.non_persistent_used_bytes == 12


def test_only_the_one_resizable_buffer_can_be_resized():
    arena = SingleArenaBufferAllocator(64, start=16)
    arena.allocate_resizable_buffer(10, 16)
    with pytest.raises(StateError, match="no resizable buffer at 20, only the one at 16"):
        arena.resize_buffer(20, 4, 16)


def test_a_buffer_behind_padding_cannot_be_deallocated():
    arena = SingleArenaBufferAllocator(64, start=3)
    buffer = arena.allocate_resizable_buffer(4, 16)
    with pytest.raises(StateError, match="no resizable buffer at 16, only the one at 3"):
        arena.deallocate_resizable_buffer(buffer)


def test_a_resizable_buffer_too_large_is_told_to_the_byte():
    arena = SingleArenaBufferAllocator(64, start=3)
    with pytest.raises(ArenaTooSmallError, match="52 bytes requested, 51 available, 1 missing"):
        arena.allocate_resizable_buffer(52, 16)


def test_the_overlay_replaces_the_buffer():
    arena = SingleArenaBufferAllocator(64)
    arena.allocate_resizable_buffer(40, 16)
    arena.reserve_non_persistent_overlay_memory(24, 16)
    assert arena.non_persistent_used_bytes == 24
    assert arena.overlay_memory_address == 0


def test_a_recording_arena_counts_what_was_met():
    arena = RecordingSingleArenaBufferAllocator(128)
    buffer = arena.allocate_resizable_buffer(40, 16)
    arena.resize_buffer(buffer, 10, 16)
    arena.allocate_persistent_buffer(10, 16)
    arena.allocate_persistent_buffer(6, 4)
    arena.allocate_temp(50, 1)
    with pytest.raises(ArenaTooSmallError):
        arena.allocate_persistent_buffer(200, 1)
    assert arena.requested_head_bytes == 10
    assert arena.requested_tail_bytes == 16
    assert arena.requested_bytes == 26
    assert arena.recorded_used_bytes == 10 + 16 + 8
    assert arena.allocation_count == 2


def test_a_split_head_ends_where_its_own_arena_does():
    head = NonPersistentArenaBufferAllocator(32, start=16)
    buffer = head.allocate_resizable_buffer(10, 16)
    with pytest.raises(StateError, match="there is a resizable buffer"):
        head.allocate_resizable_buffer(10, 16)
    with pytest.raises(ArenaTooSmallError, match="33 bytes requested, 32 available, 1 missing"):
        head.resize_buffer(buffer, 33, 16)
    with pytest.raises(ArenaTooSmallError, match="20 available, 1 missing"):
        head.allocate_temp(21, 4)
    temp = head.allocate_temp(20, 4)
    assert head.non_persistent_used_bytes == 32
    head.deallocate_temp(temp)
    assert head.is_all_temp_deallocated()
    head.reset_temp_allocations()
    assert head.available_memory(16) == 16
    head.deallocate_resizable_buffer(buffer)
    head.reserve_non_persistent_overlay_memory(32, 16)
    assert head.overlay_memory_address == 16


def test_a_split_tail_may_use_its_whole_arena():
    tail = PersistentArenaBufferAllocator(32, start=16)
    assert tail.allocate_persistent_buffer(20, 16) == 16
    assert tail.persistent_used_bytes == 32
    with pytest.raises(ArenaTooSmallError, match="1 missing"):
        tail.allocate_persistent_buffer(1, 1)
