"""Inputs and results of planners: sizes and times of use of tensors, and their places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from delegraph.errors import ArgumentError
from delegraph.lazy_dataclass import dataclass

Size: TypeAlias = int | tuple[int, ...]
"""Size of a buffer: bytes, or the dimensions of a texture (two or three) or tensor (four)."""


class TensorUsageRecord(NamedTuple):
    """Size of a tensor, the first task that writes it and the last task that reads it.

    Attributes:
        size: bytes, or the dimensions of a texture or tensor.
        first_task: plan position of the first task that uses the tensor.
        last_task: plan position of the last task that uses the tensor.
    """

    size: Size
    first_task: int
    last_task: int


ByteRecord: TypeAlias = tuple[int, int, int]
"""A usage record whose size is a number of bytes."""

ShapeRecord: TypeAlias = tuple[tuple[int, ...], int, int]
"""A usage record whose size has dimensions."""


SizeT = TypeVar("SizeT", bound=Size, covariant=True)


@dataclass(frozen=True, slots=True)
class ObjectsAssignment(Generic[SizeT]):
    """Sizes of memory objects, and the object of each tensor.

    Attributes:
        object_ids: the object of each record.
        object_sizes: the size of each object.
    """

    object_ids: Sequence[int]
    object_sizes: Sequence[SizeT]


@dataclass(frozen=True, slots=True)
class OffsetsAssignment:
    """Offset of each tensor in one buffer.

    Attributes:
        offsets: byte offset of each record's tensor.
        total_size: number of bytes of the buffer.
    """

    offsets: Sequence[int]
    total_size: int


def byte_records(records: Iterable[TensorUsageRecord]) -> list[ByteRecord]:
    """Return *records*, after checking that their sizes are in bytes.

    Raises:
        ArgumentError: a size is not a number or below 0, or a last task is before the first.
    """
    checked = []
    for index, (size, first_task, last_task) in enumerate(records):
        if isinstance(size, tuple):
            raise ArgumentError(f"record {index} has size {size}, needs a number of bytes")
        if size < 0 or not 0 <= first_task <= last_task:
            raise ArgumentError(
                f"record {index} has {size} bytes during tasks {first_task} to {last_task}; "
                "none may be negative, nor the last task before the first"
            )
        checked.append((size, first_task, last_task))
    return checked
