"""What the planners take and give: when tensors are in use, and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Size: TypeAlias = int | tuple[int, ...]
"""Bytes of a buffer; or two, three or four (batch, height, width, channels) dimensions."""


class TensorUsageRecord(NamedTuple):
    """A tensor's size, and the tasks from the first that writes it to the last that reads it.

    Attributes:
        size: bytes, or the dimensions of a texture or tensor.
        first_task: position in the plan; the tensor is in use from here.
        last_task: position in the plan; the tensor is in use up to here, this task included.
    """

    size: Size
    first_task: int
    last_task: int


@dataclass(frozen=True, slots=True)
class ObjectsAssignment:
    """Memory objects, and the one that each tensor uses.

    Attributes:
        object_ids: the object of each record.
        object_sizes: the size of each object.
    """

    object_ids: Sequence[int]
    object_sizes: Sequence[Size]


@dataclass(frozen=True, slots=True)
class OffsetsAssignment:
    """Where each tensor is in one buffer.

    Attributes:
        offsets: first byte of each record.
        total_size: bytes of the buffer.
    """

    offsets: Sequence[int]
    total_size: int
