from __future__ import annotations

import pytest

from delegraph.errors import MalformedModelError
from delegraph.schema.read_limit import LEAST_OBJECTS, MOST, ReadLimit

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("size", "chosen", "granted", "text"),
    [
        (0, None, MEGABYTE, f"the limit of {MEGABYTE} bytes"),
        (MEGABYTE, None, 64 * MEGABYTE, f"64 times the file's {MEGABYTE} bytes"),
        (100 * MEGABYTE, None, MOST + 400 * MEGABYTE, "the limit of"),
        (MEGABYTE, 2_000_000, 2_000_000, "the limit of 2000000 bytes"),
    ],
)
def test_what_is_copied_is_limited(size: int, chosen: int | None, granted: int, text: str) -> None:
    limit = ReadLimit(size, chosen)
    limit.take(granted, "x")
    with pytest.raises(MalformedModelError, match=f"x: .* takes more than {text}"):
        limit.take(1, "x")


@pytest.mark.parametrize("chosen", [None, 0])
def test_what_tables_become_is_limited_by_the_file_alone(chosen: int | None) -> None:
    ReadLimit(0, chosen).take_objects(LEAST_OBJECTS >> 10, 1 << 10, "tensors")
    limit = ReadLimit(MEGABYTE, chosen)
    limit.take_objects(64, MEGABYTE, "tensors")
    with pytest.raises(MalformedModelError, match=r"1 tensors: .* 64 times the file's 1048576 byt"):
        limit.take_objects(1, 1, "tensors")
