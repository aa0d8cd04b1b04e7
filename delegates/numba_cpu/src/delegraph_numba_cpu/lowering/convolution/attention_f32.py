"""Fuses attention: BATCH_MATMUL, scale, mask, SOFTMAX and BATCH_MATMUL of float32.

Transpositions of the operands and of the result are fused as well if strides can express them.
Results are bit by bit equal to those of the separate nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from delegraph import Tensor
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.instructions.attention_f32 import ATTENTION, head_bytes
from delegraph_numba_cpu.lowering.checks import activation_of
from delegraph_numba_cpu.lowering.convolution.attention_f32_places import Places, places, right
from delegraph_numba_cpu.lowering.convolution.batch_matmul import few_rows
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import PRODUCTS_A_NANOSECOND
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.lowering.moves.seen_tensors import RESHAPES
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, WorkerScratch, aligned


@dataclass(frozen=True, slots=True)
class Scores:
    """Nodes between the two matrix products of an attention, such as scaling, mask and softmax.

    Attributes:
        members: positions of the nodes from the first product to the second.
        second: the second product, BATCH_MATMUL of the SOFTMAX and the values.
        factor: tensor of one value by which scores are multiplied; None if there is no factor.
        divides: whether scores are divided by *factor* instead.
        mask: tensor that is added to the scores; None if there is no mask.
        shape: shape of the scores when the mask is added.
        beta: factor in the exponents of the SOFTMAX.
    """

    members: tuple[int, ...]
    second: Call
    factor: Tensor | None
    divides: bool
    mask: Tensor | None
    shape: tuple[int, ...]
    beta: float


def fuse_attention(partition: Partition, position: int, builder: ProgramBuilder) -> Fusion | None:
    """Return the fusion of all nodes of an attention into one kernel call.

    The result is None if the nodes are no attention, or if the kernel cannot address its operands.
    It is also None if there are so few queries that separate products are faster.

    Args:
        partition: the nodes.
        position: position of the node that may be the attention's first matrix product.
        builder: builder of the program.
    """
    first = partition.calls[position]
    if not _is_product(first):
        return None
    scores = _scores_after(partition, position)
    if scores is None or not _has_rows(first, scores.second):
        return None
    found = places(partition, first, scores.second, scores.mask, scores.shape)
    if found is None or found.words["queries"] <= few_rows(builder):
        return None
    members = tuple(sorted({*scores.members, *found.members}))
    return Fusion(members, lambda builder: _lower(first, scores, found, builder))


def _is_product(call: Call) -> bool:
    if call.name != "BATCH_MATMUL":
        return False
    tensors = (call.input(0), call.input(1), call.output())
    return all(t.type is TensorType.FLOAT32 and 0 not in t.shape for t in tensors)


def _scores_after(partition: Partition, position: int) -> Scores | None:
    """Return the nodes after the first product, at *position*, up to the second product.

    The result is None if these nodes of *partition* are no attention.
    """
    members, y = [position], partition.calls[position].output()
    count, elements, shape = y.shape[-1], math.prod(y.shape), y.shape
    factor = mask = None
    divides, beta = False, 0.0  # beta stays 0 until a SOFTMAX is found, whose beta is positive
    while (following := partition.next(members[-1])) is not None:
        call = partition.calls[following]
        y = partition.calls[members[-1]].output()
        members.append(following)
        if call.name == "BATCH_MATMUL":
            is_second = beta > 0 and _is_product(call) and call.node.inputs[0] == y.index
            if not is_second or call.options.adj_x:
                return None
            return Scores(tuple(members), call, factor, divides, mask, shape, beta)
        z = call.output()
        if not z.shape or z.shape[-1] != count or math.prod(z.shape) != elements:
            return None
        other = _other_operand(call, y)
        if call.name in RESHAPES:
            continue
        if call.name == "SOFTMAX" and not beta:
            beta = float(call.options.beta)
        elif other is None or beta or mask is not None:
            return None
        elif call.name == "ADD":
            mask, shape = other, z.shape
        elif factor is None and _is_factor(call, other):
            factor, divides = other, call.name == "DIV"
        else:
            return None
    return None


def _other_operand(call: Call, y: Tensor) -> Tensor | None:
    """Return the other operand of an unclamped ADD, MUL or DIV of *y*; None for other nodes."""
    if call.name not in ("ADD", "MUL", "DIV") or activation_of(call) is not Act.NONE:
        return None
    a, b = call.input(0), call.input(1)
    if call.name == "DIV":
        return b if a.index == y.index else None
    return b if a.index == y.index else a


def _is_factor(call: Call, other: Tensor) -> bool:
    """Whether a node multiplies scores by one value, or divides by a constant power of 2."""
    if math.prod(other.shape) != 1:
        return False
    if call.name == "MUL":
        return True
    if not other.is_constant:
        return False
    value = float(other.data.reshape(-1)[0])
    return 2.0**-64 < abs(value) < 2.0**64 and abs(math.frexp(value)[0]) == 0.5


def _has_rows(first: Call, second: Call) -> bool:
    """Whether each row of the second product belongs to one row of the first product."""
    x, y = first.output(), second.output()
    return x.shape[-2] == y.shape[-2] and math.prod(x.shape[:-2]) == math.prod(y.shape[:-2])


def _lower(first: Call, scores: Scores, found: Places, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an attention, whose first product is *first*."""
    words = found.words
    depth, key_count = right(first, found.keys).shape[-2:]
    columns, lanes = found.y.array.shape[-1], builder.level.vector_bytes // 4
    images = words["batches"] * words["heads"]
    work = images * words["queries"] * key_count * (depth + columns)
    tiles = builder.tiles(work / PRODUCTS_A_NANOSECOND, images * words["queries"])
    share = min(words["queries"], -(-images * words["queries"] // tiles))
    together = lanes if share <= lanes else 2 * lanes
    builder.emit(
        ATTENTION,
        min(tiles, images * -(-words["queries"] // together)),
        x=builder.tensor(found.x.stored.index),
        keys=builder.tensor(found.keys.stored.index),
        values=builder.tensor(found.values.stored.index),
        y=builder.tensor(found.y.stored.index),
        factor=_factor(builder, scores),
        mask=0 if scores.mask is None else builder.tensor(scores.mask.index),
        depth=depth,
        key_count=key_count,
        columns=columns,
        beta=scores.beta,
        together=together,
        **words,
        **_scratch(builder, together, max(depth, columns), key_count),
    )


def _factor(builder: ProgramBuilder, scores: Scores) -> Memory | int:
    if scores.factor is None:
        return 0
    if scores.divides:
        return builder.constant(1 / scores.factor.data.reshape(1))
    return builder.tensor(scores.factor.index)


def _scratch(builder: ProgramBuilder, together: int, rows: int, key_count: int) -> dict[str, Any]:
    """Return the words for the scratch memory of an attention, by name.

    *together* queries are computed together. *rows* is the number of values of a query or of a
    result, whichever is larger.
    """
    lanes, head = builder.level.vector_bytes // 4, head_bytes(builder.level.vector_bytes)
    scores_at = aligned(head) + 4 * together * -(-rows // lanes) * lanes
    return {
        "scratch": WorkerScratch(scores_at + 4 * together * key_count),
        "turned_at": aligned(head),
        "scores_at": scores_at,
    }
