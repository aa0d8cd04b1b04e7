"""The bounds of a file, each from both sides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from delegraph.errors import MalformedModelError
from delegraph.schema.flatbuffer import MAX_NUMBERS, MAX_TABLES, Flatbuffer, Rows
from delegraph.schema.table import INT32, UINT8, UINT16, UINT32, UINT64

MEGABYTE = 1 << 20


def file(*values: int, dtype: str = "<u4") -> Flatbuffer:
    return Flatbuffer(np.array(values, dtype).view(np.uint8))


def empty(size: int) -> Flatbuffer:
    return Flatbuffer(np.zeros(size, np.uint8))


def at(*positions: int) -> np.ndarray:
    return np.array(positions, np.int64)


@pytest.mark.parametrize("dtype", [UINT8, UINT16, INT32, UINT64], ids=str)
def test_a_number_may_be_the_last_of_the_file(dtype: np.dtype) -> None:
    last = 16 - dtype.itemsize
    assert empty(16).values(dtype, at(0, last), "x").tolist() == [0, 0]
    for outside in (last + 1, 16, -1):
        with pytest.raises(MalformedModelError, match=f"x at byte {outside} lies outside of the"):
            empty(16).values(dtype, at(0, outside), "x")


def test_a_file_smaller_than_a_number_has_none() -> None:
    with pytest.raises(MalformedModelError, match=r"byte 0 lies outside of the file \(3 bytes\)"):
        empty(3).values(UINT32, at(0), "x")


def test_numbers_stand_at_any_byte() -> None:
    found = file(1, 2, 3, 0, dtype="u1").values(UINT16, at(2, 0, 1), "x")
    assert (found.dtype, found.tolist()) == (UINT16, [3, 0x201, 0x302])


def test_an_offset_leads_forward_to_where_another_number_fits() -> None:
    assert file(8, 4, 7).follow(at(0, 4), "x").tolist() == [8, 8]
    with pytest.raises(MalformedModelError, match="x at byte 4 points past the end"):
        file(8, 5, 7).follow(at(0, 4), "x")
    with pytest.raises(MalformedModelError, match="x at byte 0 points past the end"):
        file((1 << 32) - 1, 0).follow(at(0), "x")


@pytest.mark.parametrize(("itemsize", "most"), [(1, 8), (2, 4), (4, 2), (8, 1)])
def test_a_list_may_fill_the_rest_of_the_file(itemsize: int, most: int) -> None:
    starts, lengths = file(4, most, 0, 0).vectors(at(0), itemsize, "x")
    assert (starts.tolist(), lengths.tolist()) == ([8], [most])
    with pytest.raises(MalformedModelError, match="x at byte 4 has more items than the file can"):
        file(4, most + 1, 0, 0).vectors(at(0), itemsize, "x")


Count = Callable[[Flatbuffer, int], None]


def numbers(itemsize: int) -> Count:
    return lambda made, count: made.count_numbers(count, itemsize, "x")


def tables(made: Flatbuffer, count: int) -> None:
    made.count_tables(count, "x")


def characters(made: Flatbuffer, count: int) -> None:
    made.count_characters(count, "x")


@pytest.mark.parametrize(
    ("size", "count", "enough", "too_many", "message"),
    [
        (4000, tables, 1000, 2000, "x: more tables than a file of 4000 bytes can hold"),
        (5 * MEGABYTE, tables, MAX_TABLES, MAX_TABLES + 1, "x: more tables than"),
        (400, characters, MEGABYTE, 2 * MEGABYTE, "x: texts hold more than a file of 400 bytes"),
        (MEGABYTE, characters, 4 * MEGABYTE, 6 * MEGABYTE, "x: texts hold more than a file of"),
        (MEGABYTE, numbers(8), MEGABYTE // 2, MEGABYTE, "x: lists hold more than a file of"),
        (2 * MEGABYTE, numbers(1), MAX_NUMBERS, MAX_NUMBERS + 1, "x: lists hold more than"),
    ],
)
def test_what_is_copied_is_limited_in_total(
    size: int, count: Count, enough: int, too_many: int, message: str
) -> None:
    count(empty(size), enough)
    with pytest.raises(MalformedModelError, match=message):
        count(empty(size), too_many)
    in_parts = empty(size)
    count(in_parts, too_many // 2)
    with pytest.raises(MalformedModelError, match=message):
        count(in_parts, too_many - too_many // 2)


def test_a_user_may_grant_more_tables_in_proportion_to_the_file() -> None:
    content = np.zeros(16 * MEGABYTE, np.uint8)
    granted = Flatbuffer(content, 3 * MAX_TABLES)
    granted.count_tables(3 * MAX_TABLES, "x")
    granted.count_numbers(2 * MAX_NUMBERS, 1, "x")
    with pytest.raises(MalformedModelError, match=r"the limit of 3000000; .*tables=\.\.\."):
        granted.count_tables(1, "x")
    with pytest.raises(MalformedModelError, match="than a file of 4000 bytes can hold"):
        Flatbuffer(content[:4000], 3 * MAX_TABLES).count_tables(2000, "x")


def test_numbers_and_texts_are_limited_together() -> None:
    made = empty(MEGABYTE)
    characters(made, 3 * MEGABYTE)
    with pytest.raises(MalformedModelError, match="lists hold more than"):
        numbers(8)(made, MEGABYTE // 2)


def table(vtable_size: int, *offsets: int) -> bytes:
    """A vtable at byte 0, and its table right after."""
    vtable = np.array([vtable_size, 8, *offsets], "<u2").tobytes()
    return vtable + np.array([len(vtable)], "<i4").tobytes()


def rows(content: bytes, fields: int) -> Rows:
    made = Flatbuffer(np.frombuffer(content, np.uint8))
    return Rows(made, at(len(content) - 4), fields, "T")


def test_a_vtable_may_hold_more_or_fewer_fields_than_are_asked_for() -> None:
    content = table(8, 4, 6)  # the table stands at byte 8
    assert rows(content, 2).field(0) == [12]
    assert rows(content, 2).field(1) == [14]
    assert rows(content, 3).field(2) is None
    assert rows(table(6, 4, 6), 2).field(1) is None  # beyond the size that the vtable states
    assert rows(table(4), 1).field(0) is None


@pytest.mark.parametrize("size", [0, 2, 3, 5, 7, 14])
def test_a_vtable_is_whole_inside_the_file_and_of_even_size(size: int) -> None:
    with pytest.raises(MalformedModelError, match="vtable of T at byte 0 is damaged"):
        rows(table(size, 4, 6), 2)
    assert rows(table(12, 4, 6), 2).field(0) == [12]  # that goes up to the end of the file
