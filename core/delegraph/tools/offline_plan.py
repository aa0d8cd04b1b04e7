"""Memory plans inside model files, in TFLM's format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from delegraph.graph.external_buffers import records_of
from delegraph.graph.model import Model
from delegraph.micro.offline_plans import METADATA_NAME, encode_offline_plan
from delegraph.schema import tables
from delegraph.schema.writer import write_model

_PLANNED_ONLINE = -1


def with_offline_plan(model: Model, offsets: Mapping[int, int]) -> bytes:
    """Return the model file with a memory plan for its first subgraph.

    Args:
        model: the loaded model.
        offsets: mapping from a tensor's index to its offset in bytes. TFLM chooses the offsets of
            other tensors. An earlier plan is removed.
    """
    record = records_of(model)
    counts = [len(subgraph.tensors) for subgraph in model.subgraphs]
    places = [offsets.get(i, _PLANNED_ONLINE) for i in range(counts[0])]
    places += [_PLANNED_ONLINE] * sum(counts[1:])
    content = np.frombuffer(encode_offline_plan(places, len(counts)), np.uint8)
    buffers = (*(record.buffers or ()), tables.Buffer(data=content))
    kept = [entry for entry in record.metadata or () if entry.name != METADATA_NAME]
    entry = tables.Metadata(name=METADATA_NAME, buffer=len(buffers) - 1)
    return write_model(record.replace(buffers=buffers, metadata=(*kept, entry)))
