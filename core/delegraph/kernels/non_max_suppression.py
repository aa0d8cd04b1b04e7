"""Kernels of NON_MAX_SUPPRESSION_V4 and NON_MAX_SUPPRESSION_V5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from delegraph.arithmetic.box_suppression import Floats, overlaps
from delegraph.arithmetic.cpp_heap import pop, push
from delegraph.arithmetic.output_shape import check_rank, integers, size_outputs
from delegraph.errors import OperatorError
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape, Tensor
from delegraph.schema.enums import TensorType


@kernel("NON_MAX_SUPPRESSION_V5")
@kernel("NON_MAX_SUPPRESSION_V4")
def prepare_non_max_suppression(context: OpContext, node: Node) -> Eval:
    """Prepare NON_MAX_SUPPRESSION_V4 or _V5: the indices and the number of selected boxes.

    Inputs: boxes ``[N, 4]``, scores ``[N]``, then scalars: the number of boxes to keep, the overlap
    from which on a box is dropped, and the score that kept boxes must exceed. With a sixth input,
    sigma, scores of overlapping boxes are lowered instead; then the kept scores are an output, too.
    Outputs have the length of the number of boxes to keep, and are padded with zeros.

    Source:
        tflite/kernels/non_max_suppression.cc.
    """
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    outputs = [output_tensor(context, node, i) for i in range(len(node.outputs))]
    if (len(inputs), len(outputs)) not in ((5, 2), (6, 3)):
        raise OperatorError(
            f"{len(inputs)} inputs and {len(outputs)} outputs, expected 5, 2 or 6, 3"
        )
    _check(inputs)
    for output, kind in zip(outputs, _OUTPUTS[len(outputs)], strict=True):
        output.adopt_type(kind)
    lists, number = outputs[:-1], outputs[-1]

    def plans() -> tuple[Sequence[Shape], Eval]:
        limit = _limit(inputs[2])

        def run() -> None:
            kept, scores = _select(inputs, limit)
            number.data.fill(len(kept))
            for tensor, values in zip(lists, (kept, scores), strict=False):
                tensor.data[: len(kept)] = values
                tensor.data[len(kept) :] = 0

        return [(limit,)] * len(lists) + [()], run

    return size_outputs(context, outputs, plans, shape_inputs=(inputs[2],))


_OUTPUTS = {
    2: (TensorType.INT32, TensorType.INT32),
    3: (TensorType.INT32, TensorType.FLOAT32, TensorType.INT32),
}
"""Types of the outputs (rows, perhaps scores, number), by the number of outputs."""


def _check(inputs: list[Tensor]) -> None:
    boxes, scores, limit = inputs[:3]
    check_rank(boxes, (2,), "boxes")
    if boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise OperatorError(
            f"boxes {list(boxes.shape)} and scores {list(scores.shape)}, expected [N, 4] and [N]"
        )
    for tensor in inputs:
        expected = TensorType.INT32 if tensor is limit else TensorType.FLOAT32
        if tensor.type is not expected:
            raise OperatorError(f"{tensor.name!r} is {tensor.type.name}, expected {expected.name}")
    for tensor in inputs[2:]:
        check_rank(tensor, (0,), repr(tensor.name))


def _limit(tensor: Tensor) -> int:
    limit = integers(tensor)[0]
    if limit < 0:
        raise OperatorError(f"the most boxes to keep is {limit}, expected at least 0")
    return limit


class Candidate(NamedTuple):
    """A box that may be selected.

    Attributes:
        score: its score, lowered already for the boxes with which it was compared.
        row: number of the box.
        compared: number of selected boxes, from the first on, with which it was compared.
    """

    score: np.float32
    row: int
    compared: int


def _is_lower(a: Candidate, b: Candidate) -> bool:
    return bool(a.score < b.score)


def _select(inputs: list[Tensor], limit: int) -> tuple[list[int], list[np.float32]]:
    overlap, threshold, *rest = (np.float32(tensor.data) for tensor in inputs[3:])
    sigma = rest[0] if rest else np.float32(0)
    if sigma < 0:
        raise OperatorError(f"sigma is {sigma}, expected at least 0")
    a, b = inputs[0].data[:, :2], inputs[0].data[:, 2:]
    low, high = np.where(b < a, b, a), np.where(a < b, b, a)  # the first operand if one is NaN
    boxes = np.concatenate([low, high], axis=1)
    return kept_boxes(boxes, inputs[1].data, limit, overlap, threshold, sigma)


def kept_boxes(
    boxes: Floats,
    scores: Floats,
    limit: int,
    overlap: np.float32,
    threshold: np.float32,
    sigma: np.float32,
) -> tuple[list[int], list[np.float32]]:
    """Return the rows of the selected boxes, at most *limit*, best first, and their scores.

    Args:
        boxes: ``[N, 4]``.
        scores: ``[N]``.
        limit: largest number of boxes.
        overlap: overlap with a kept box from which on a box is dropped.
        threshold: only boxes with scores above it are kept.
        sigma: strength by which overlaps lower scores; 0 leaves scores unchanged.

    Source:
        tflite/kernels/internal/reference/non_max_suppression.h.
    """
    heap: list[Candidate] = []
    for row in np.flatnonzero(scores > threshold).tolist():
        push(heap, Candidate(scores[row], row, 0), _is_lower)
    limit = min(limit, len(heap))
    kept: list[int] = []
    kept_scores: list[np.float32] = []
    while heap and len(kept) < limit:
        best = pop(heap, _is_lower)
        rivals = np.array(kept[best.compared :][::-1], np.intp)
        score = _lowered(best.score, overlaps(boxes, best.row, rivals), overlap, threshold, sigma)
        if score is None:
            continue
        compared = len(kept)
        if score == best.score:
            kept.append(best.row)
            kept_scores.append(score)
        if score > threshold:  # the official kernel also keeps a kept box in the queue
            push(heap, Candidate(score, best.row, compared), _is_lower)
    return kept, kept_scores


def _lowered(
    score: np.float32, shares: Floats, overlap: np.float32, threshold: np.float32, sigma: np.float32
) -> np.float32 | None:
    """Return *score*, lowered for the overlaps *shares*; None if a share reaches *overlap*.

    With a *sigma* of 0, the score is unchanged. A score at or below *threshold* is not lowered
    further.
    """
    for share in shares:
        if share >= overlap:
            return None
        if sigma > 0:
            score = score * np.exp(np.float32(-0.5) / sigma * share * share)
        if score <= threshold:
            break
    return score
