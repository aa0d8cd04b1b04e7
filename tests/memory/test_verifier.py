from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.errors import ArgumentError
from delegraph.memory import ObjectsAssignment, OffsetsAssignment, TensorUsageRecord, verify_plan

CHAIN = [TensorUsageRecord(8, 0, 1), TensorUsageRecord(8, 1, 2), TensorUsageRecord(8, 2, 3)]


def problems(plan, records=CHAIN, alignment=1):
    return [(found.records, found.problem) for found in verify_plan(records, plan, alignment)]


def test_a_right_plan_has_no_violations():
    assert problems(OffsetsAssignment([0, 8, 0], 16), alignment=8) == []
    assert problems(ObjectsAssignment([0, 1, 0], [8, 9])) == []


def test_tensors_in_use_at_the_same_task_must_not_share_a_byte():
    text = "bytes 0 to 8 during tasks 0 to 1 overlap bytes 7 to 15 during tasks 1 to 2"
    assert problems(OffsetsAssignment([0, 7, 15], 23)) == [((0, 1), text)]


def test_tensors_must_be_within_the_buffer():
    text = "bytes 8 to 16 are not within the buffer of 15"
    assert problems(OffsetsAssignment([0, 8, 0], 15)) == [((1,), text)]
    assert problems(OffsetsAssignment([-8, 0, -8], 8))[0][1].startswith("bytes -8 to 0 are not")


def test_offsets_must_be_aligned():
    found = problems(OffsetsAssignment([0, 12, 0], 20), alignment=8)
    assert found == [((1,), "offset 12 is not a multiple of 8")]


def test_every_tensor_must_be_placed():
    assert problems(OffsetsAssignment([0, 8], 16)) == [((), "2 offsets for 3 records")]
    assert problems(ObjectsAssignment([0, 1], [8, 8])) == [((), "2 object ids for 3 records")]


def test_tensors_in_use_at_the_same_task_must_not_share_an_object():
    text = "both use object 0 at the same task"
    assert problems(ObjectsAssignment([0, 0, 1], [8, 8])) == [((0, 1), text)]
    nested = [TensorUsageRecord(1, *tasks) for tasks in [(0, 9), (1, 2), (5, 6)]]
    found = problems(ObjectsAssignment([0, 0, 0], [1]), nested)
    assert [where for where, _ in found] == [(0, 1), (0, 2)]


def test_objects_must_exist_and_hold_their_tensors_in_every_dimension():
    assert problems(ObjectsAssignment([0, 2, 0], [8, 8]))[0][1].startswith(
        "object 2 does not exist"
    )
    found = problems(ObjectsAssignment([0, 1, 0], [8, 7]))
    assert found == [((1,), "size 8 does not fit object 1 of 7")]
    texture = [TensorUsageRecord((2, 4), 0, 0)]
    assert problems(ObjectsAssignment([0], [(2, 4)]), texture) == []
    assert problems(ObjectsAssignment([0], [(4, 2)]), texture)[0][0] == (0,)


def test_tensors_of_no_bytes_are_in_nobodys_way():
    records = [TensorUsageRecord(8, 0, 1), TensorUsageRecord(0, 0, 1)]
    assert problems(OffsetsAssignment([0, 4], 8), records) == []


def test_offsets_need_sizes_in_bytes():
    with pytest.raises(ArgumentError, match="needs a number of bytes"):
        verify_plan([TensorUsageRecord((1, 2), 0, 1)], OffsetsAssignment([0], 2))


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3), st.integers(0, 9)),
        max_size=12,
    )
)
def test_an_overlap_is_found_just_where_a_byte_is_used_twice_at_a_task(rows):
    records = [TensorUsageRecord(size, first, first + more) for size, first, more, _ in rows]
    offsets = [offset for *_, offset in rows]
    used = [
        {
            (task, byte)
            for task in range(record.first_task, record.last_task + 1)
            for byte in range(offset, offset + record.size)
        }
        for record, offset in zip(records, offsets, strict=True)
    ]
    pairs = [(i, j) for j in range(len(used)) for i in range(j) if used[i] & used[j]]
    found = [where for where, _ in problems(OffsetsAssignment(offsets, 100), records)]
    assert sorted(found) == sorted(pairs)
