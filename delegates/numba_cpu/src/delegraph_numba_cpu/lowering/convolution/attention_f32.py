"""Fuses attention: BATCH_MATMUL, scale, mask, SOFTMAX and BATCH_MATMUL of float32.

Transpositions of the operands and of the result are fused as well where strides can express them.
Results are bit by bit equal to those of the separate nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from delegraph import Tensor
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.instructions.attention_f32 import ATTENTION
from delegraph_numba_cpu.instructions.conv_f32 import HEIGHTS
from delegraph_numba_cpu.lowering.checks import activation_of
from delegraph_numba_cpu.lowering.convolution.attention_f32_places import Places, places, right
from delegraph_numba_cpu.lowering.convolution.batch_matmul import is_packed_once, packed_once
from delegraph_numba_cpu.lowering.convolution.conv_f32 import UNLIMITED
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import (
    emit_packed_view,
    packed_bytes,
)
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import (
    PRODUCTS_A_NANOSECOND,
    aligned,
)
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.lowering.moves.seen_tensors import RESHAPES, SeenTensor, merged_levels
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, WorkerScratch

SCORES_BYTES = 64 << 10
"""Approximate number of bytes of the rows of scores that are computed together.

They stay in the second cache, beside the keys and values of a head.
"""


@dataclass(frozen=True, slots=True)
class Scores:
    """Nodes between the two matrix products of an attention, such as scaling, mask and softmax.

    Attributes:
        members: positions of the nodes from the first product to the second.
        second: the second product, BATCH_MATMUL of the SOFTMAX and the values.
        factor: tensor of one value by which scores are multiplied; None for no factor.
        divides: whether scores are divided by *factor* instead.
        mask: tensor that is added to the scores; None without a mask.
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
    """Return the fusion of all nodes of an attention into one kernel call; None if there is none.

    Args:
        partition: the nodes.
        position: position of the node that may be the attention's first matrix product.
        builder: builder of the program.
    """
    first = partition.calls[position]
    if not _is_product(first):
        return None
    scores = _scores_after(partition, position)
    if scores is None or not _pays(first, scores):
        return None
    found = places(partition, first, scores.second, scores.mask, scores.shape)
    if found is None:
        return None
    members = tuple(sorted({*scores.members, *found.members}))
    return Fusion(members, lambda builder: _lower(first, scores, found, builder))


def _is_product(call: Call) -> bool:
    if call.name != "BATCH_MATMUL":
        return False
    tensors = (call.input(0), call.input(1), call.output())
    return all(t.type is TensorType.FLOAT32 and 0 not in t.shape for t in tensors)


def _scores_after(partition: Partition, position: int) -> Scores | None:
    """Return the nodes between the two matrix products of an attention, and the second product.

    The result is None if the nodes after the first product are no attention.

    Args:
        partition: the nodes.
        position: position of the first product.
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
    """Return the other operand of an ADD, MUL or DIV of *y* without a clamp, else None."""
    if call.name not in ("ADD", "MUL", "DIV") or activation_of(call) is not Act.NONE:
        return None
    a, b = call.input(0), call.input(1)
    if call.name == "DIV":
        return b if a.index == y.index else None
    return b if a.index == y.index else a


def _is_factor(call: Call, other: Tensor) -> bool:
    """Whether a node multiplies scores by one value, or divides them by a constant power of 2.

    Args:
        call: the node.
        other: its operand beside the scores.
    """
    if math.prod(other.shape) != 1:
        return False
    if call.name == "MUL":
        return True
    if not other.is_constant:
        return False
    value = float(other.data.reshape(-1)[0])
    return 2.0**-64 < abs(value) < 2.0**64 and abs(math.frexp(value)[0]) == 0.5


def _pays(first: Call, scores: Scores) -> bool:
    """Whether one fused kernel call is faster: each packed matrix serves several rows.

    Args:
        first: the first matrix product.
        scores: the nodes between the products, and the second product.
    """
    queries, images = first.output().shape[-2], math.prod(first.output().shape[:-2])
    for call in (first, scores.second):
        weight = call.input(1)
        rows = queries * (images if math.prod(weight.shape[:-2]) == 1 else 1)
        if rows == 1 and not is_packed_once(weight):
            return False
    y = scores.second.output()
    return y.shape[-2] == queries and math.prod(y.shape[:-2]) == images


def _lower(first: Call, scores: Scores, found: Places, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of an attention, after those that pack keys and values.

    Args:
        first: node of the first matrix product, of queries and keys.
        scores: nodes between the two products, with their parameters.
        found: tensors that are read and written, and the words that say where their matrices are.
        builder: builder of the program, to which the kernel calls are added.
    """
    words = dict(found.words)
    depth, key_count = right(first, found.keys).shape[-2:]
    columns = found.y.array.shape[-1]
    work = words["batches"] * words["heads"] * words["queries"] * key_count * (depth + columns)
    lanes = builder.level.vector_bytes // 4
    for name, rows, width in (("keys", depth, key_count), ("values", key_count, columns)):
        size = packed_bytes(rows, width, lanes)
        words[f"{name}_batch"], words[f"{name}_head"] = (
            size * words[f"{name}_{level}"] for level in ("batch", "head")
        )
    row_words, tiles = _tiles(builder, words, key_count, work)
    builder.emit(
        ATTENTION,
        tiles,
        x=builder.tensor(found.x.stored.index),
        keys=_packed(builder, first, found.keys),
        values=_packed(builder, scores.second, found.values),
        y=builder.tensor(found.y.stored.index),
        factor=_factor(builder, scores),
        mask=0 if scores.mask is None else builder.tensor(scores.mask.index),
        depth=depth,
        key_count=key_count,
        columns=columns,
        beta=scores.beta,
        low=UNLIMITED[0],
        high=UNLIMITED[1],
        sum_low=UNLIMITED[0],
        sum_high=UNLIMITED[1],
        residual_pitch=0,
        residual_columns=0,
        slopes=0,
        **words,
        **row_words,
    )


def _factor(builder: ProgramBuilder, scores: Scores) -> Memory | int:
    if scores.factor is None:
        return 0
    if scores.divides:
        return builder.constant(1 / scores.factor.data.reshape(1))
    return builder.tensor(scores.factor.index)


def _packed(builder: ProgramBuilder, call: Call, seen: SeenTensor) -> Memory:
    """Return the memory of a product's right matrices, in the order in which kernels read them.

    Constant matrices are packed now; for others, the kernel call that packs them is added to the
    program.

    Args:
        builder: builder of the program.
        call: node of the matrix product.
        seen: tensor that holds the matrices in memory, maybe in another order of axes.
    """
    if is_packed_once(call.input(1)):
        return packed_once(call, builder)
    array = right(call, seen)
    levels = merged_levels(array.shape[:-2], array.strides[:-2])
    images, apart = levels[0] if levels else (1, 0)
    rows, columns = array.shape[-2:]
    sizes, strides = (images, rows, columns), (apart, array.strides[-2], array.strides[-1])
    return emit_packed_view(builder, builder.tensor(seen.stored.index), sizes, strides)


def _tiles(
    builder: ProgramBuilder, words: dict[str, int], key_count: int, work: int
) -> tuple[dict[str, Any], int]:
    """Return the scratch memory and the division of an attention's work into parts for threads.

    Args:
        builder: builder of the program, with the number of workers.
        words: numbers of batches, heads and queries, by name.
        key_count: number of keys.
        work: number of multiply-adds of the whole attention.

    Returns:
        The words for scratch memory and for blocks of rows, by name, and the number of tiles.
    """
    vector_bytes = builder.level.vector_bytes
    height, queries = HEIGHTS[vector_bytes], words["queries"]
    granule = 4 * (vector_bytes if vector_bytes == 64 else vector_bytes // 2)
    # Rows then begin in different sets of the cache.
    score_row = -(-4 * key_count // granule) * granule + 64
    together = max(1, SCORES_BYTES // score_row // height) * height
    images = words["batches"] * words["heads"]
    wanted = builder.tiles(work / PRODUCTS_A_NANOSECOND, images * queries)
    share = -(-images * queries // wanted)
    together = min(together, -(-min(queries, share) // height) * height)
    units = images * -(-queries // together)
    scores_at = 64 + aligned(8 * (together + height))
    return {
        "scratch": WorkerScratch(scores_at + together * score_row),
        "pixels_at": 64,
        "scores_at": scores_at,
        "score_row": score_row,
        "together": together,
    }, min(units, wanted)
