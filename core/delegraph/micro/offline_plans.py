"""Offline memory plans: offsets of tensors in TFLM's arena, stored in a model file.

Source:
    AllocationInfoBuilder::GetOfflinePlannedOffsets, tflite-micro/micro/micro_allocation_info.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delegraph.errors import MalformedModelError
from delegraph.graph.model import Model
from delegraph.quantities import plural

METADATA_NAME = "OfflineMemoryAllocation"
_VERSION = 1
_HEADER = 3  # int32 values: version, number of subgraphs, number of offsets


def encode_offline_plan(offsets: Sequence[int], subgraph_count: int = 1) -> bytes:
    """Return an offline memory plan as the bytes of a metadata buffer.

    Args:
        offsets: offsets of all tensors of all subgraphs, in bytes from the start of the arena's
            head; -1 for constants, and for tensors whose offset the planner chooses.
        subgraph_count: number of subgraphs in the model.

    >>> encode_offline_plan([0, -1]).hex(" ", 4)
    '01000000 01000000 02000000 00000000 ffffffff'
    """
    return np.array([_VERSION, subgraph_count, len(offsets), *offsets], "<i4").tobytes()


def offline_plan(model: Model) -> list[int] | None:
    """Return the offsets of all tensors of all subgraphs; None if *model* has no offline plan.

    Raises:
        MalformedModelError: the number of offsets differs from the number of tensors.
    """
    content = model.metadata.get(METADATA_NAME)
    if content is None:
        return None
    words: list[int] = content[: content.size // 4 * 4].view("<i4").tolist()
    count = words[2] if len(words) >= _HEADER else -1
    tensors = sum(len(subgraph.tensors) for subgraph in model.subgraphs)
    if count != tensors:
        raise MalformedModelError(
            f"metadata {METADATA_NAME!r}: Nbr of offline buffer offsets ({count}) in metadata not "
            f"equal nbr tensors ({tensors})"
        )
    if len(words) < _HEADER + count:
        raise MalformedModelError(
            f"metadata {METADATA_NAME!r} has {len(words) - _HEADER} offsets, announces {count}"
        )
    return words[_HEADER : _HEADER + count]


def plan_in_words(model: Model) -> str:
    """Number of tensors that the plan inside a model places, in words; empty if it has no plan."""
    try:
        offsets = offline_plan(model)
    except MalformedModelError as error:
        return str(error)
    if offsets is None:
        return ""
    placed = sum(offset >= 0 for offset in offsets)
    return f"places of {placed} of {plural(len(offsets), 'tensor')} in TFLM's arena"
