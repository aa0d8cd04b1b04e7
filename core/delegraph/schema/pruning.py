"""Removes tensors, constants and operator codes that no operator of a model needs.

The records of the model file are changed; all other content is kept. No interpreter is needed, so
models may have operators that Delegraph cannot run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delegraph.lazy_dataclass import dataclass
from delegraph.schema import tables


@dataclass(frozen=True)
class Renumbering:
    """New indices for the kept items of a list, in the same order.

    >>> renumbering = Renumbering.of([5, 2, 2])
    >>> renumbering.kept, renumbering.moved([2, 5, -1])
    ((2, 5), (0, 1, -1))
    """

    kept: tuple[int, ...]
    new: dict[int, int]

    @classmethod
    def of(cls, indices: Iterable[int]) -> Renumbering:
        """Return the renumbering that keeps *indices*; -1 stays -1."""
        kept = tuple(sorted({index for index in indices if index >= 0}))
        return cls(kept, {old: new for new, old in enumerate(kept)} | {-1: -1})

    def moved(self, indices: Iterable[int]) -> tuple[int, ...]:
        """Return the new index of each of *indices*."""
        return tuple(self.new[index] for index in indices)


def pruned(record: tables.Model) -> tables.Model:
    """Return *record* without unused tensors, constants and operator codes.

    A part is needed if an operator, an input or output of a subgraph, a signature or metadata
    refers to it.
    """
    subgraphs = record.subgraphs or ()
    metadata = _metadata(record)
    tensors = [_tensors(record, index) for index in range(len(subgraphs))]
    operators = [operator for s in subgraphs for operator in s.operators or ()]
    codes = Renumbering.of(operator.opcode_index for operator in operators)
    buffers = _buffers(record, tensors, metadata)
    return record.replace(
        operator_codes=tuple((record.operator_codes or ())[index] for index in codes.kept),
        subgraphs=tuple(
            _subgraph(*each, codes, buffers) for each in zip(subgraphs, tensors, strict=True)
        ),
        buffers=tuple((record.buffers or ())[index] for index in buffers.kept),
        metadata_buffer=_metadata_buffer(record, buffers),
        metadata=tuple(m.replace(buffer=buffers.new[m.buffer]) for m in metadata) or None,
        signature_defs=_signatures(record.signature_defs, tensors),
    )


def _metadata(record: tables.Model) -> list[tables.Metadata]:
    """Return *record*'s metadata entries whose buffer exists; readers skip all others."""
    count = len(record.buffers or ())
    return [entry for entry in record.metadata or () if entry.buffer < count]


def _metadata_buffer(record: tables.Model, buffers: Renumbering) -> tuple[int, ...] | None:
    """Return *record*'s older list of metadata buffers, renumbered by *buffers*; None if empty."""
    return buffers.moved(i for i in record.metadata_buffer or () if i in buffers.new) or None


def _tensors(record: tables.Model, index: int) -> Renumbering:
    """Return the renumbering of the tensors that are kept in subgraph *index* of *record*."""
    subgraph = (record.subgraphs or ())[index]
    all_tensors = subgraph.tensors or ()
    used = {*(subgraph.inputs or ()), *(subgraph.outputs or ())}
    for operator in subgraph.operators or ():
        used.update(operator.inputs or (), operator.outputs or (), operator.intermediates or ())
    for signature in record.signature_defs or ():
        if signature.subgraph_index == index:
            maps = (*(signature.inputs or ()), *(signature.outputs or ()))
            used.update(m.tensor_index for m in maps if m.tensor_index < len(all_tensors))
    for i in sorted(used):
        quantization = all_tensors[i].quantization if i >= 0 else None
        details = None if quantization is None else quantization.details
        if isinstance(details, tables.BlockwiseQuantization | tables.MultiAxisQuantization):
            scales = (details.scales, details.zero_points)
            used.update(s for s in scales if s < len(all_tensors))
    return Renumbering.of(used)


def _buffers(
    record: tables.Model, tensors: Sequence[Renumbering], metadata: Sequence[tables.Metadata]
) -> Renumbering:
    """Return the renumbering of the used buffers; buffer 0, empty by convention, is always kept.

    *tensors* are the kept tensors of each subgraph, and *metadata* the kept metadata entries.
    """
    count = len(record.buffers or ())
    used = [0, *(entry.buffer for entry in metadata), *(record.metadata_buffer or ())]
    for subgraph, kept in zip(record.subgraphs or (), tensors, strict=True):
        used += [(subgraph.tensors or ())[index].buffer for index in kept.kept]
    return Renumbering.of(index for index in used if index < count)


def _subgraph(
    record: tables.SubGraph, tensors: Renumbering, codes: Renumbering, buffers: Renumbering
) -> tables.SubGraph:
    all_tensors = record.tensors or ()
    return record.replace(
        tensors=tuple(_tensor(all_tensors[index], tensors, buffers) for index in tensors.kept),
        inputs=tensors.moved(record.inputs or ()),
        outputs=tensors.moved(record.outputs or ()),
        operators=tuple(_operator(o, tensors, codes) for o in record.operators or ()),
    )


def _tensor(record: tables.Tensor, tensors: Renumbering, buffers: Renumbering) -> tables.Tensor:
    quantization = record.quantization
    if quantization is not None and isinstance(
        quantization.details, tables.BlockwiseQuantization | tables.MultiAxisQuantization
    ):
        details = quantization.details
        details = details.replace(
            scales=tensors.new.get(details.scales, -1),
            zero_points=tensors.new.get(details.zero_points, -1),
        )
        quantization = quantization.replace(details=details)
    return record.replace(buffer=buffers.new[record.buffer], quantization=quantization)


def _operator(record: tables.Operator, tensors: Renumbering, codes: Renumbering) -> tables.Operator:
    intermediates = record.intermediates
    return record.replace(
        opcode_index=codes.new[record.opcode_index],
        inputs=tensors.moved(record.inputs or ()),
        outputs=tensors.moved(record.outputs or ()),
        intermediates=None if intermediates is None else tensors.moved(intermediates),
    )


def _signatures(
    signatures: Sequence[tables.SignatureDef] | None, tensors: Sequence[Renumbering]
) -> tuple[tables.SignatureDef, ...] | None:
    def moved(
        maps: Sequence[tables.TensorMap] | None, new: dict[int, int]
    ) -> tuple[tables.TensorMap, ...] | None:
        if maps is None:
            return None
        there = (m for m in maps if m.tensor_index in new)
        return tuple(m.replace(tensor_index=new[m.tensor_index]) for m in there)

    def signature(record: tables.SignatureDef) -> tables.SignatureDef:
        known = record.subgraph_index < len(tensors)
        new = tensors[record.subgraph_index].new if known else {}
        return record.replace(inputs=moved(record.inputs, new), outputs=moved(record.outputs, new))

    return None if signatures is None else tuple(map(signature, signatures))
