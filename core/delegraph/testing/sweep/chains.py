"""Chains of several operators: nodes of one case read outputs of another case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from delegraph.delegation.partition_tolerance import STEPS
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.testing.subgraphs import main_subgraph
from delegraph.testing.sweep.draft import Draft

LONGEST = 5
"""Largest number of operators in a chain."""

JUMPING = STEPS | {"BITCAST", "CAST", "LSH_PROJECTION"}
"""Operators that magnify a difference in a float's last bit."""

_FLOATS = (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16)
_WEIGHTS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)


def chain_names(chance: Random, operators: Sequence[str]) -> tuple[str, ...]:
    """Return two or more of *operators*, drawn by *chance*."""
    return tuple(chance.choice(list(operators)) for _ in range(chance.randint(2, LONGEST)))


def can_read(first: Draft, second: Draft) -> bool:
    """Whether an input of the second model fits the output of a node in the first."""
    made = {_kind(first.tensors[i], first.tensors[i].shape or ()) for i in _computed(first)}
    inputs = zip(second.main.inputs or (), second.steps[0], strict=True)
    return any(_kind(second.tensors[i], x.shape) in made for i, x in inputs if _reads(second, i))


def _reads(draft: Draft, index: int) -> bool:
    """Whether input *index* of the model may be computed by another operator.

    It may not if the operator's results jump at steps, or if a hybrid operator quantizes this
    input. Only graph inputs are then exact enough.
    """
    if draft.tensors[index].type not in _FLOATS:
        return True
    codes = draft.records.operator_codes or ()
    is_hybrid = any(tensor.type in _WEIGHTS for tensor in draft.tensors)
    return not is_hybrid and JUMPING.isdisjoint(code.builtin_code.name for code in codes)


def _computed(draft: Draft) -> list[int]:
    """Return the indices of computed tensors, in the order of the plan."""
    return [i for node in draft.main.operators or () for i in node.outputs or () if i >= 0]


def adapted(first: Draft, second: Draft) -> Draft | None:
    """Return the model *second*, changed so that one of its inputs fits a tensor of *first*.

    Other inputs of the same old shape get the new shape, too, because element-wise operators
    require equal shapes. The result is None if no tensor has the type and rank of an input.
    """
    for index in reversed(_computed(first)):
        source = first.tensors[index]
        shape = tuple(source.shape or ())
        for number, i in enumerate(second.main.inputs or ()):
            old = second.steps[0][number].shape
            fits = second.tensors[i].type == source.type and len(old) == len(shape)
            if fits and 0 not in shape and _reads(second, i):
                return _with_shape(second, old, shape).with_tensor(
                    i, quantization=source.quantization
                )
    return None


def _with_shape(draft: Draft, old: tuple[int, ...], new: tuple[int, ...]) -> Draft:
    """Return the draft with shape *new* for all inputs and outputs of shape *old*."""
    inputs = draft.main.inputs or ()
    arrays = draft.steps[0]
    fed = tuple(np.resize(a, new) if a.shape == old else a for a in arrays)
    changed = [i for i, a in zip(inputs, arrays, strict=True) if a.shape == old]
    changed += [i for i in _computed(draft) if tuple(draft.tensors[i].shape or ()) == old]
    for i in changed:
        draft = draft.with_tensor(i, shape=new, shape_signature=None)
    return replace(draft, steps=(fed,))


def chained(chance: Random, first: Draft, second: Draft) -> Draft:
    """Return both models as one; inputs of *second* are tensors of *first* if they fit.

    Outputs of both models are graph outputs, even in the middle of the chain. Sometimes outputs
    that the second model reads are not graph outputs.
    """
    if len(second.records.subgraphs or ()) != 1:
        return first
    inputs, wired = second.main.inputs or (), dict[int, int]()
    for i, array in zip(inputs, second.steps[0], strict=True):
        reads = _reads(second, i)
        found = _fitting(chance, first, second.tensors[i], array.shape) if reads else None
        if found is not None and chance.random() < 0.9:
            wired[i] = found
    if chance.random() < 0.6:
        kept = (i for i in first.main.outputs or () if i not in wired.values())
        first = first.with_main(outputs=tuple(kept))
    fed = tuple(a for i, a in zip(inputs, second.steps[0], strict=True) if i not in wired)
    records = appended(first.records, second.records, wired)
    return Draft(records, tuple((*step, *fed) for step in first.steps))


def appended(model: tables.Model, donor: tables.Model, wired: Mapping[int, int]) -> tables.Model:
    """Return *model* with the first subgraph of *donor* appended to its own.

    An input of the donor in *wired* becomes the tensor of the model with that index; the others
    become inputs. Outputs of both are outputs.
    """
    graph, added = main_subgraph(model), main_subgraph(donor)
    tensors, buffers = graph.tensors or (), model.buffers or ()
    codes, first = model.operator_codes or (), len(tensors)
    place = {i: first + i for i in range(len(added.tensors or ()))} | dict(wired)
    fed = (place[i] for i in added.inputs or () if i in place and i not in wired)
    main = graph.replace(
        tensors=(*tensors, *(_shifted(t, first, len(buffers)) for t in added.tensors or ())),
        operators=(
            *(graph.operators or ()),
            *(_moved_operator(node, place, len(codes)) for node in added.operators or ()),
        ),
        inputs=(*(graph.inputs or ()), *fed),
        outputs=(*(graph.outputs or ()), *(place.get(i, i) for i in added.outputs or ())),
    )
    return model.replace(
        subgraphs=(main, *(model.subgraphs or ())[1:]),
        operator_codes=(*codes, *(donor.operator_codes or ())),
        buffers=(*buffers, *(donor.buffers or ())),
    )


def _fitting(
    chance: Random, first: Draft, wanted: tables.Tensor, shape: tuple[int, ...]
) -> int | None:
    """Return the index of a tensor of *first* that can replace the input *wanted*.

    The tensor must have the same type and quantization, and the shape *shape*. The result is None
    if no tensor has them.
    """
    kind = _kind(wanted, shape)
    same = [
        i for i in _computed(first) if _kind(first.tensors[i], first.tensors[i].shape or ()) == kind
    ]
    if same:
        return same[-1] if chance.random() < 0.7 else chance.choice(same)
    return None


def _kind(tensor: tables.Tensor, shape: Sequence[int]) -> tuple[Any, ...]:
    q = tensor.quantization
    if q is None or q.scale is None:
        return tensor.type, tuple(shape)
    points = () if q.zero_point is None else tuple(map(int, q.zero_point))
    return tensor.type, tuple(shape), tuple(map(float, q.scale)), points


def _moved_operator(
    node: tables.Operator, place: dict[int, int], first_code: int
) -> tables.Operator:
    """Return a node's record with new tensors by *place*, and *first_code* added to its code."""

    def moved(indices: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if indices is None else tuple(place.get(i, i) for i in indices)

    return node.replace(
        opcode_index=node.opcode_index + first_code,
        inputs=moved(node.inputs),
        outputs=moved(node.outputs),
        intermediates=moved(node.intermediates),
    )


def _shifted(tensor: tables.Tensor, tensors: int, buffers: int) -> tables.Tensor:
    """Return *tensor* with *tensors* and *buffers* added to its tensor and buffer indices."""
    moved, quantization = tensor.replace(buffer=tensor.buffer + buffers), tensor.quantization
    details = None if quantization is None else quantization.details
    if quantization is None or not isinstance(details, tables.BlockwiseQuantization):
        return moved
    details = details.replace(scales=details.scales + tensors)
    return moved.replace(quantization=quantization.replace(details=details))
