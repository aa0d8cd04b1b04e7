"""Models changed so that what is inside of them can be read: more outputs, or a few nodes only.

Reading an inner tensor after ``invoke`` is not enough: its memory may hold another by then. An
output keeps its own, in every runtime. Tensors and operators keep their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delegraph.graph.model import Model
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model

UNIT = "unit"
"""The signature of a model of a few nodes."""


def tapped_model(model: Model, subgraph: int, tensors: Iterable[int]) -> bytes:
    """Return *model* with *tensors* among the outputs of a subgraph and of its signatures.

    Args:
        model: the whole model.
        subgraph: which one.
        tensors: tensor indices; those that are outputs or inputs already are left out.
    """
    records = read_model(model.content)
    spec = model.subgraphs[subgraph]
    added = [i for i in dict.fromkeys(tensors) if i not in {*spec.outputs, *spec.inputs}]
    graphs = list(records.subgraphs or ())
    graphs[subgraph] = graphs[subgraph].replace(outputs=(*spec.outputs, *added))
    signatures = [
        s.replace(outputs=(*(s.outputs or ()), *map(_named, added)))
        if s.subgraph_index == subgraph
        else s
        for s in records.signature_defs or ()
    ]
    changed = records.replace(subgraphs=tuple(graphs), signature_defs=tuple(signatures))
    return write_model(changed)


def unit_model(
    model: Model,
    subgraph: int,
    nodes: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """Return a model of some nodes of a subgraph, called by the signature :data:`UNIT`.

    Its inputs and outputs have the names of :func:`tap_name`. Subgraphs that nodes call stay.

    Args:
        model: the whole model.
        subgraph: which one.
        nodes: operator indices, in execution order.
        inputs: tensor indices that are passed in.
        outputs: tensor indices that are read.
    """
    records = read_model(model.content)
    graphs = list(records.subgraphs or ())
    operators = graphs[subgraph].operators or ()
    kept = tuple(operators[i] for i in nodes)
    graphs[subgraph] = graphs[subgraph].replace(
        operators=kept, inputs=tuple(inputs), outputs=tuple(outputs)
    )
    signature = tables.SignatureDef(
        signature_key=UNIT,
        subgraph_index=subgraph,
        inputs=tuple(map(_named, inputs)),
        outputs=tuple(map(_named, outputs)),
    )
    changed = records.replace(
        subgraphs=tuple(graphs),
        signature_defs=(signature,),
        metadata=None,
        metadata_buffer=None,
        buffers=_used_buffers(records, graphs, subgraph),
    )
    return write_model(changed)


def tap_name(tensor: int) -> str:
    """Return the name of a tensor in the signatures of these models."""
    return f"tensor {tensor}"


def _named(tensor: int) -> tables.TensorMap:
    return tables.TensorMap(name=tap_name(tensor), tensor_index=tensor)


def _used_buffers(
    records: tables.Model, graphs: Sequence[tables.SubGraph], subgraph: int
) -> tuple[tables.Buffer, ...]:
    """Return all buffers, those empty that no operator of the changed subgraph reads any more."""
    used = set[int]()
    for index, graph in enumerate(graphs):
        tensors = graph.tensors or ()
        needed = set(range(len(tensors)))
        if index == subgraph:
            needed = {i for o in graph.operators or () for i in o.inputs or () if i >= 0}
            needed |= {i for n in needed for i in _scale_tensors(tensors[n])}
        used |= {tensors[i].buffer for i in needed}
    empty = tables.Buffer()
    return tuple(b if i in used else empty for i, b in enumerate(records.buffers or ()))


def _scale_tensors(tensor: tables.Tensor) -> list[int]:
    """Return the tensors that hold the scales of another."""
    details = None if tensor.quantization is None else tensor.quantization.details
    found = [getattr(details, name, -1) for name in ("scales", "zero_points")]
    return [index for index in found if index >= 0]
