"""Smaller copies that still show what a copy shows.

Source:
    Greedy, as in QuickCheck: the first simpler copy with the same fault is taken, and so on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from delegraph.errors import DelegraphError
from delegraph.schema import read_model, tables, write_model
from delegraph.schema.pruning import pruned
from delegraph.testing.sweep.judging import Fault
from fuzz.copies import Copy


def reduced(
    copy: Copy, fault: Fault, try_it: Callable[[Copy], Fault | None], seconds: float
) -> Copy:
    """Return the simplest copy found in *seconds* with the same kind of fault.

    Args:
        copy: shows *fault*.
        fault: its kind must stay, and its place unless nobody knows it.
        try_it: returns what comes of a copy.
        seconds: after which the simplest so far is returned.
    """
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for simpler in simpler_copies(copy):
            found = try_it(simpler)
            if found is not None and (found.kind, found.where) == (fault.kind, fault.where):
                copy, progress = simpler, True
                break
            if time.monotonic() > end:
                break
    return copy


def simpler_copies(copy: Copy) -> Iterator[Copy]:
    """Yield copies with fewer parts, the smallest first."""
    if copy.steps:
        yield replace(copy, steps=())
    try:
        model = read_model(np.frombuffer(copy.content, np.uint8))
    except DelegraphError:
        return
    for simpler in _simpler_models(model):
        try:
            content = write_model(simpler)
        except (TypeError, OverflowError):
            continue
        if content != copy.content:
            yield replace(copy, content=content)


def _simpler_models(model: tables.Model) -> Iterator[tables.Model]:
    nothing = {"metadata": None, "metadata_buffer": None, "signature_defs": None,
               "description": None}  # fmt: skip
    yield model.replace(**nothing)
    graphs = model.subgraphs or ()
    for at in reversed(range(1, len(graphs))):
        yield model.replace(subgraphs=(*graphs[:at], *graphs[at + 1 :]))
    for at, graph in enumerate(graphs):
        for simpler in _simpler_graphs(graph):
            yield model.replace(subgraphs=(*graphs[:at], simpler, *graphs[at + 1 :]))
    yield _without_unused(model)
    for at, graph in enumerate(graphs):
        for tensors in _plainer_tensors(graph.tensors or ()):
            plainer = graph.replace(tensors=tensors)
            yield model.replace(subgraphs=(*graphs[:at], plainer, *graphs[at + 1 :]))


def _simpler_graphs(graph: tables.SubGraph) -> Iterator[tables.SubGraph]:
    """Yield subgraphs with fewer nodes, outputs and inputs."""
    nodes = graph.operators or ()
    for size in sorted({len(nodes) // 2, 1} - {0}, reverse=True):
        for at in reversed(range(0, len(nodes), size)):
            kept = (*nodes[:at], *nodes[at + size :])
            gone = {i for node in nodes[at : at + size] for i in node.outputs or ()}
            read = {i for node in kept for i in node.inputs or ()}
            fed = (*(graph.inputs or ()), *sorted(gone & read))
            left = tuple(i for i in graph.outputs or () if i not in gone)
            yield graph.replace(operators=kept, inputs=fed, outputs=left)
            yield graph.replace(operators=kept)
    for name in ("outputs", "inputs"):
        items = getattr(graph, name) or ()
        for at in range(len(items)):
            yield graph.replace(**{name: (*items[:at], *items[at + 1 :])})


def _plainer_tensors(tensors: tuple[tables.Tensor, ...]) -> Iterator[tuple[tables.Tensor, ...]]:
    for at, tensor in enumerate(tensors):
        for plain in (
            tensor.replace(quantization=None),
            tensor.replace(sparsity=None),
            tensor.replace(shape_signature=None),
            tensor.replace(is_variable=False),
        ):
            if plain != tensor:
                yield (*tensors[:at], plain, *tensors[at + 1 :])


def _without_unused(model: tables.Model) -> tables.Model:
    """Return *model* without unused parts; one whose indices lead nowhere stays as it is."""
    try:
        return pruned(model)
    except (IndexError, KeyError):
        return model
