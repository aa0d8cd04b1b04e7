"""Models made of two: the nodes of one read what the other computes."""

from __future__ import annotations

from random import Random

from delegraph.schema import tables
from delegraph.testing.sweep.chains import appended


def joined(model: tables.Model, donor: tables.Model, chance: Random) -> tables.Model:
    """Return *model* with the first subgraph of *donor* appended to its own.

    Some inputs of the donor become tensors of the model, of the same type and shape where there
    are any; the others become inputs. Outputs of both are outputs. Subgraphs that the donor's
    operators call are not taken along.
    """
    if not model.subgraphs or not donor.subgraphs:
        return model
    graph, added = model.subgraphs[0], donor.subgraphs[0]
    wired: dict[int, int] = {}
    for i in added.inputs or ():
        found = _fitting(graph, (added.tensors or ())[i], chance) if i >= 0 else None
        if found is not None and chance.random() < 0.8:
            wired[i] = found
    return appended(model, donor, wired)


def _fitting(graph: tables.SubGraph, wanted: tables.Tensor, chance: Random) -> int | None:
    """Return the index of a tensor that can replace *wanted*; computed tensors are preferred."""
    computed = [i for node in graph.operators or () for i in node.outputs or () if i >= 0]
    fed = [i for i in graph.inputs or () if i >= 0]
    tensors = graph.tensors or ()
    places = [i for i in (*computed, *fed) if i < len(tensors)]
    same = [i for i in places if (tensors[i].type, tensors[i].shape) == (wanted.type, wanted.shape)]
    alike = [i for i in places if tensors[i].type == wanted.type]
    for group in (same, alike, places):
        if group and (group is same or chance.random() < 0.6):
            return chance.choice(group)
    return None
