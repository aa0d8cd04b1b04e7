"""A model cut down to some of its operators, on the records of its file.

Whatever a record holds survives: ranges, versions, options of operators that this version does not
know. No interpreter is needed, so operators may be cut out that nothing here can run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from delegraph.schema import tables


@dataclass(frozen=True)
class Renumbering:
    """Old indices to new ones, in the old order.

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
        """Return the new indices."""
        return tuple(self.new[index] for index in indices)


def pruned(
    record: tables.Model,
    operators: Sequence[tables.Operator],
    inputs: Sequence[int],
    outputs: Sequence[int],
    *,
    whole: bool,
) -> tables.Model:
    """Return a model of *operators*, without the tensors, constants and codes nothing needs.

    Args:
        record: the model they come from, with one subgraph; its operator codes may have grown.
        operators: in execution order, with the tensor and code indices of *record*.
        inputs: tensor indices of the model's inputs.
        outputs: tensor indices of its outputs.
        whole: keep metadata and signatures, which describe the interface of the whole model.
    """
    subgraph = (record.subgraphs or ())[0]
    signatures = record.signature_defs if whole else None
    tensors = _tensors(subgraph.tensors or (), operators, inputs, outputs, signatures)
    codes = Renumbering.of(operator.opcode_index for operator in operators)
    metadata = _metadata(record) if whole else ()
    buffers = _buffers(record, tensors, metadata, whole)
    kept = tuple(
        _tensor((subgraph.tensors or ())[index], tensors, buffers) for index in tensors.kept
    )
    return record.replace(
        operator_codes=tuple((record.operator_codes or ())[index] for index in codes.kept),
        subgraphs=(
            subgraph.replace(
                tensors=kept,
                inputs=tensors.moved(inputs),
                outputs=tensors.moved(outputs),
                operators=tuple(_operator(o, tensors, codes) for o in operators),
            ),
        ),
        buffers=tuple((record.buffers or ())[index] for index in buffers.kept),
        metadata_buffer=_metadata_buffer(record, buffers) if whole else None,
        metadata=tuple(m.replace(buffer=buffers.new[m.buffer]) for m in metadata) or None,
        signature_defs=_signatures(signatures, tensors),
    )


def _metadata(record: tables.Model) -> list[tables.Metadata]:
    """Return the entries that have a buffer; readers pass over others."""
    count = len(record.buffers or ())
    return [entry for entry in record.metadata or () if entry.buffer < count]


def _metadata_buffer(record: tables.Model, buffers: Renumbering) -> tuple[int, ...] | None:
    """Return the older list of buffers with metadata."""
    return buffers.moved(i for i in record.metadata_buffer or () if i in buffers.new) or None


def _tensors(
    all_tensors: Sequence[tables.Tensor],
    operators: Sequence[tables.Operator],
    inputs: Sequence[int],
    outputs: Sequence[int],
    signatures: Sequence[tables.SignatureDef] | None,
) -> Renumbering:
    used = {*inputs, *outputs}
    for operator in operators:
        used.update(operator.inputs or (), operator.outputs or (), operator.intermediates or ())
    for signature in signatures or ():
        maps = (*(signature.inputs or ()), *(signature.outputs or ()))
        used.update(m.tensor_index for m in maps if m.tensor_index < len(all_tensors))
    for index in sorted(used):
        quantization = all_tensors[index].quantization if index >= 0 else None
        details = None if quantization is None else quantization.details
        if isinstance(details, tables.BlockwiseQuantization | tables.MultiAxisQuantization):
            scales = (details.scales, details.zero_points)
            used.update(i for i in scales if i < len(all_tensors))
    return Renumbering.of(used)


def _buffers(
    record: tables.Model,
    tensors: Renumbering,
    metadata: Sequence[tables.Metadata],
    whole: bool,
) -> Renumbering:
    """Return which buffers stay; the first one, empty by convention, always does."""
    all_tensors = (record.subgraphs or ())[0].tensors or ()
    count = len(record.buffers or ())
    used = [0, *(all_tensors[index].buffer for index in tensors.kept)]
    used += [entry.buffer for entry in metadata]
    used += (record.metadata_buffer or ()) if whole else ()
    return Renumbering.of(index for index in used if index < count)


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
    signatures: Sequence[tables.SignatureDef] | None, tensors: Renumbering
) -> tuple[tables.SignatureDef, ...] | None:
    def moved(maps: Sequence[tables.TensorMap] | None) -> tuple[tables.TensorMap, ...] | None:
        if maps is None:
            return None
        there = (m for m in maps if m.tensor_index in tensors.new)
        return tuple(m.replace(tensor_index=tensors.new[m.tensor_index]) for m in there)

    if signatures is None:
        return None
    return tuple(s.replace(inputs=moved(s.inputs), outputs=moved(s.outputs)) for s in signatures)
