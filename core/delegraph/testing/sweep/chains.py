"""Chains of several operators: nodes of one case read outputs of another case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from delegraph.delegation.partition_tolerance import STEPS
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
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

    Args:
        chance: source of random choices.
        first: the first model.
        second: the model to append.
    """
    if len(second.records.subgraphs or ()) != 1:
        return first
    graph, added = first.main, second.main
    first_tensor, first_buffer = len(first.tensors), len(first.records.buffers or ())
    place = {i: first_tensor + i for i in range(len(second.tensors))}
    wired = set()
    for number, i in enumerate(added.inputs or ()):
        shape = second.steps[0][number].shape
        reads = _reads(second, i)
        found = _fitting(chance, first, second.tensors[i], shape) if reads else None
        if found is not None and chance.random() < 0.9:
            place[i] = found
            wired.add(number)
    tensors = tuple(_shifted(t, first_tensor, first_buffer) for t in second.tensors)
    codes = first.records.operator_codes or ()
    nodes = tuple(moved_operator(node, place, len(codes)) for node in added.operators or ())
    kept = [n for n in range(len(added.inputs or ())) if n not in wired]
    outputs = tuple(graph.outputs or ())
    if chance.random() < 0.6:
        outputs = tuple(i for i in outputs if i not in set(place.values()))
    changed = first.with_main(
        tensors=(*first.tensors, *tensors),
        operators=(*(graph.operators or ()), *nodes),
        inputs=(*(graph.inputs or ()), *(place[(added.inputs or ())[n]] for n in kept)),
        outputs=(*outputs, *(place[i] for i in added.outputs or ())),
    )
    records = changed.records.replace(
        operator_codes=(*codes, *(second.records.operator_codes or ())),
        buffers=(*(first.records.buffers or ()), *(second.records.buffers or ())),
    )
    fed = tuple(second.steps[0][n] for n in kept)
    return replace(Draft(records, first.steps), steps=tuple((*s, *fed) for s in first.steps))


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


def moved_operator(
    node: tables.Operator, place: dict[int, int], first_code: int
) -> tables.Operator:
    """Return a node's record with the tensor and operator-code indices of a larger model.

    Args:
        node: the record.
        place: mapping from each tensor that moves to its new index.
        first_code: number that is added to the index of the operator code.
    """

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
