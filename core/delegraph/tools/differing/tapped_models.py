"""Changes models so that inner tensors can be read: adds outputs, or keeps only some nodes.

An inner tensor cannot simply be read after ``invoke``, because another tensor may have reused its
memory. An output keeps its memory in every runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from delegraph.operators.memory_limit import physical_memory
from delegraph.schema import tables
from delegraph.schema.writer import write_model
from delegraph.tools.setup import Setup

UNIT = "unit"
"""Name of the signature of a model of a few nodes."""


def copy_setup(setup: Setup, path: Path) -> Setup:
    """Return *setup* for a changed copy of its model in the file *path*, with memory for all."""
    return replace(with_room_for_all(setup), model=str(path))


def with_room_for_all(setup: Setup) -> Setup:
    """Return *setup* with a memory limit high enough for a model that keeps all tensors.

    A limit that the user has chosen stays; official runtimes have none by default.
    """
    if setup.memory_limit is not None or setup.runtime != "delegraph":
        return setup
    return replace(setup, memory_limit=physical_memory() // 4)


def tapped_model(records: tables.Model, subgraph: int, tensors: Iterable[int]) -> bytes:
    """Return a model in which *tensors* are outputs of a subgraph and of its signatures.

    Args:
        records: records of the whole model.
        subgraph: index of the subgraph.
        tensors: tensor indices; present outputs and inputs among them are ignored.
    """
    graphs = list(records.subgraphs or ())
    graph = graphs[subgraph]
    outputs = graph.outputs or ()
    added = [i for i in dict.fromkeys(tensors) if i not in {*outputs, *(graph.inputs or ())}]
    graphs[subgraph] = graph.replace(outputs=(*outputs, *added))
    signatures = [
        s.replace(outputs=(*(s.outputs or ()), *(_named(i, i) for i in added)))
        if s.subgraph_index == subgraph
        else s
        for s in records.signature_defs or ()
    ]
    return write_model(records.replace(subgraphs=tuple(graphs), signature_defs=tuple(signatures)))


def unit_model(
    records: tables.Model,
    subgraph: int,
    nodes: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> tuple[bytes, tuple[int, ...]]:
    """Return a model of some nodes of a subgraph, called by the signature :data:`UNIT`.

    Its inputs and outputs are named by :func:`tap_name`. Subgraphs that the nodes call are kept.

    Args:
        records: records of the whole model.
        subgraph: index of the subgraph.
        nodes: operator indices, in execution order.
        inputs: indices of the tensors that become inputs.
        outputs: indices of the tensors that become outputs.

    Returns:
        The file, and for each of its tensors the index in the whole model. The file holds only
        tensors that the nodes use, to keep it small.
    """
    graphs = list(records.subgraphs or ())
    operators = [(graphs[subgraph].operators or ())[i] for i in nodes]
    kept = _used_tensors(graphs[subgraph].tensors or (), operators, (*inputs, *outputs))
    numbers = {-1: -1} | {tensor: number for number, tensor in enumerate(kept)}

    def numbered(tensors: Iterable[int] | None) -> tuple[int, ...] | None:
        return None if tensors is None else tuple(numbers[i] for i in tensors)

    graphs[subgraph] = graphs[subgraph].replace(
        tensors=tuple(_renumbered((graphs[subgraph].tensors or ())[i], numbers) for i in kept),
        operators=tuple(
            o.replace(
                inputs=numbered(o.inputs),
                outputs=numbered(o.outputs),
                intermediates=numbered(o.intermediates),
            )
            for o in operators
        ),
        inputs=numbered(inputs),
        outputs=numbered(outputs),
    )
    signature = tables.SignatureDef(
        signature_key=UNIT,
        subgraph_index=subgraph,
        inputs=tuple(_named(i, numbers[i]) for i in inputs),
        outputs=tuple(_named(i, numbers[i]) for i in outputs),
    )
    changed = _with_used_buffers(records, graphs)
    return write_model(
        changed.replace(signature_defs=(signature,), metadata=None, metadata_buffer=None)
    ), kept


def separated_model(
    records: tables.Model,
    subgraph: int,
    nodes: Sequence[int],
    inputs: Mapping[int, Sequence[int]],
    folded: Sequence[int] = (),
) -> tuple[bytes, tuple[int, ...]]:
    """Return a model of some nodes that read only the model's inputs, not each other's results.

    It is called by the signature :data:`UNIT`. The result of each node is a new tensor, which is an
    output.

    Args:
        records: records of the whole model.
        subgraph: index of the subgraph.
        nodes: operator indices, in execution order.
        inputs: mapping from the index of each tensor that becomes an input to its shape. Delegates
            may leave nodes whose inputs have no known shape in the file.
        folded: operator indices of the nodes that convert constants for *nodes*, in execution
            order. They come first, and their results are no outputs.

    Returns:
        The file, and for each of its tensors the index in the whole model of the tensor whose
        values it gets.
    """
    graphs = list(records.subgraphs or ())
    graph = graphs[subgraph]
    tensors = list(graph.tensors or ())
    for tensor, shape in inputs.items():
        tensors[tensor] = tensors[tensor].replace(shape=tuple(shape), shape_signature=None)
    meant = list(range(len(tensors)))
    operators = [(graph.operators or ())[node] for node in (*folded, *nodes)]
    for number, operator in enumerate(operators[len(folded) :], len(folded)):
        results = []
        for tensor in operator.outputs or ():
            results.append(len(tensors) if tensor >= 0 else -1)
            if tensor >= 0:
                tensors.append(tensors[tensor])
                meant.append(tensor)
        operators[number] = operator.replace(outputs=tuple(results))
    made = range(len(graph.tensors or ()), len(tensors))
    read = tuple(inputs)
    graphs[subgraph] = graph.replace(
        tensors=tuple(tensors), operators=tuple(operators), inputs=read, outputs=tuple(made)
    )
    signature = tables.SignatureDef(
        signature_key=UNIT,
        subgraph_index=subgraph,
        inputs=tuple(_named(i, i) for i in read),
        outputs=tuple(_named(i, i) for i in made),
    )
    changed = records.replace(subgraphs=tuple(graphs), signature_defs=(signature,))
    return write_model(changed.replace(metadata=None, metadata_buffer=None)), tuple(meant)


def tap_name(tensor: int) -> str:
    """Return the name that a tensor has in the signatures of tapped models."""
    return f"tensor {tensor}"


def _named(tensor: int, index: int) -> tables.TensorMap:
    return tables.TensorMap(name=tap_name(tensor), tensor_index=index)


def _used_tensors(
    tensors: Sequence[tables.Tensor], operators: Sequence[tables.Operator], others: Sequence[int]
) -> tuple[int, ...]:
    """Return the tensors that operators use, the tensors that hold their scales, and *others*."""
    used = set(others)
    for operator in operators:
        for named in (operator.inputs, operator.outputs, operator.intermediates):
            used.update(i for i in named or () if i >= 0)
    return tuple(sorted(used | {i for n in used for i in _scale_tensors(tensors[n]).values()}))


def _scale_tensors(tensor: tables.Tensor) -> dict[str, int]:
    """Return the tensors that hold a blockwise tensor's scales, by field name."""
    details = None if tensor.quantization is None else tensor.quantization.details
    found = {name: getattr(details, name, -1) for name in ("scales", "zero_points")}
    return {name: index for name, index in found.items() if index >= 0}


def _renumbered(tensor: tables.Tensor, numbers: Mapping[int, int]) -> tables.Tensor:
    """Return *tensor* with the indices of its scale tensors mapped by *numbers*."""
    scales = {name: numbers[index] for name, index in _scale_tensors(tensor).items()}
    if not scales or tensor.quantization is None or tensor.quantization.details is None:
        return tensor
    details = tensor.quantization.details.replace(**scales)
    return tensor.replace(quantization=tensor.quantization.replace(details=details))


def _with_used_buffers(records: tables.Model, graphs: Sequence[tables.SubGraph]) -> tables.Model:
    """Return *records* with the subgraphs *graphs* and without unused buffers."""
    used = sorted({0, *(t.buffer for graph in graphs for t in graph.tensors or ())})
    numbers = {buffer: number for number, buffer in enumerate(used)}
    moved = tuple(
        graph.replace(
            tensors=tuple(t.replace(buffer=numbers[t.buffer]) for t in graph.tensors or ())
        )
        for graph in graphs
    )
    buffers = records.buffers or ()
    return records.replace(subgraphs=moved, buffers=tuple(buffers[i] for i in used))
