"""Memory plans inside model files, in TFLM's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from delegraph.graph.external_buffers import records_of
from delegraph.graph.model import Model
from delegraph.memory import plan_best
from delegraph.micro.estimate import ArenaEstimate, estimate_arena
from delegraph.micro.offline_plans import METADATA_NAME, encode_offline_plan
from delegraph.micro.targets import ARENA_ALIGNMENT
from delegraph.schema import tables
from delegraph.schema.writer import write_model
from delegraph.tools.memory_report import MemoryReport

_PLANNED_ONLINE = -1


def offline_saving(model: Model, report: MemoryReport, estimate: ArenaEstimate) -> int:
    """Return the bytes of TFLM's arena that the best offline plan saves; 0 if it saves none.

    Args:
        model: the loaded model.
        report: memory of the model without delegates.
        estimate: the arena of the model as it is, with TFLM's own plan or the plan inside of it.
    """
    plan = plan_best(report.records, ARENA_ALIGNMENT)
    if not report.is_complete or plan.total_size >= estimate.head_bytes:
        return 0
    offsets = {t.index: o for t, o in zip(report.tensors, plan.offsets, strict=True)}
    content = np.frombuffer(_encoded(model, offsets), np.uint8)
    planned = replace(model, metadata={**model.metadata, METADATA_NAME: content})
    return max(estimate.total_bytes - estimate_arena(planned).total_bytes, 0)


def with_offline_plan(model: Model, offsets: Mapping[int, int]) -> bytes:
    """Return the model file with a memory plan for its first subgraph.

    Args:
        model: the loaded model.
        offsets: mapping from a tensor's index to its offset in bytes. TFLM chooses the offsets of
            other tensors. An earlier plan is removed.
    """
    record = records_of(model)
    content = np.frombuffer(_encoded(model, offsets), np.uint8)
    buffers = (*(record.buffers or ()), tables.Buffer(data=content))
    kept = [entry for entry in record.metadata or () if entry.name != METADATA_NAME]
    entry = tables.Metadata(name=METADATA_NAME, buffer=len(buffers) - 1)
    return write_model(record.replace(buffers=buffers, metadata=(*kept, entry)))


def _encoded(model: Model, offsets: Mapping[int, int]) -> bytes:
    """Return the plan of :func:`with_offline_plan` as the bytes of its metadata."""
    counts = [len(subgraph.tensors) for subgraph in model.subgraphs]
    places = [offsets.get(i, _PLANNED_ONLINE) for i in range(counts[0])]
    places += [_PLANNED_ONLINE] * sum(counts[1:])
    return encode_offline_plan(places, len(counts))
