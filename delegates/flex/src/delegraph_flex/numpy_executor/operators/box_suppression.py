"""Non-maximum suppression: drops each box that overlaps a box with a higher score.

Source:
    core/kernels/image/non_max_suppression_op.cc.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import overlaps
from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_scalar
from delegraph_flex.numpy_executor.registry import operator, step_of

Floats = NDArray[Any]
Similarity = Callable[[int, NDArray[Any]], Floats]
"""Function that returns the overlap of one box with each of other boxes."""

_TYPES = (DataType.FLOAT32, DataType.FLOAT16)


@operator("NonMaxSuppression")
def non_max_suppression(node: FlexNode) -> Step:
    """Return a function that returns the indices of the selected boxes, best first.

    The overlap threshold is an attribute.
    """
    threshold = np.float32(node.float("iou_threshold", 0.5))
    return lambda boxes, scores, most: kept(boxes, scores, most, threshold, None)


@step_of("NonMaxSuppressionV2", types=_TYPES)
def non_max_suppression_v2(
    boxes: Floats, scores: Floats, most: Any, threshold: Any
) -> NDArray[np.int32]:
    """Return the indices of the selected boxes, best first."""
    return kept(boxes, scores, most, threshold, None)


@step_of("NonMaxSuppressionV3", types=_TYPES)
def kept(boxes: Floats, scores: Floats, most: Any, threshold: Any, least: Any) -> NDArray[np.int32]:
    """Return the indices of the selected boxes, best first.

    *threshold* is that of overlaps. Only boxes with scores above *least* are selected; None selects
    boxes of any score.
    """
    limit = _check(boxes, scores, most, threshold, least)
    threshold = scores.dtype.type(threshold)
    return _suppressed(_iou(boxes), _ranked(scores, least), threshold, limit)


@operator("NonMaxSuppressionV4", types=_TYPES)
def non_max_suppression_v4(node: FlexNode) -> Step:
    """Return a function that returns the indices and the number of the selected boxes.

    The indices may be padded with zeros.
    """
    is_padded = node.bool("pad_to_max_output_size", False)

    def run(
        boxes: Floats, scores: Floats, most: Any, threshold: Any, least: Any
    ) -> list[NDArray[Any]]:
        found = kept(boxes, scores, most, threshold, least)
        padded = _padded(found, int(most)) if is_padded else found
        return [padded, np.array(len(found), np.int32)]

    return run


@operator("NonMaxSuppressionV5", types=_TYPES)
def non_max_suppression_v5(node: FlexNode) -> Step:
    """Return a function that returns the selected boxes' indices, scores and number.

    A sigma above 0 lowers the scores of overlapping boxes (soft suppression).
    """
    is_padded = node.bool("pad_to_max_output_size", False)

    def run(
        boxes: Floats, scores: Floats, most: Any, threshold: Any, least: Any, sigma: Any
    ) -> list[NDArray[Any]]:
        if np.ndim(sigma) or sigma < 0:
            raise ValueError(f"sigma is {sigma}, expected a scalar of at least 0")
        if sigma > 0:
            limit = _check(boxes, scores, most, threshold, least)
            found, left = _softened(_iou(boxes), scores, limit, least, sigma)
        else:
            found = kept(boxes, scores, most, threshold, least)
            left = scores[found]
        count = np.array(len(found), np.int32)
        if is_padded:
            found, left = _padded(found, int(most)), _padded(left, int(most))
        return [found, left, count]

    return run


@step_of("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(
    shares: Floats, scores: Floats, most: Any, threshold: Any, least: Any
) -> NDArray[np.int32]:
    """Return the selected boxes' indices from overlaps, ``[N, N]``."""
    if shares.ndim != 2 or shares.shape[0] != shares.shape[1]:
        raise ValueError(f"overlaps have shape {list(shares.shape)}, expected a square")
    _require_scalars(threshold, least)
    limit = _check_scores(len(shares), scores, most)
    ranked = _ranked(scores, least)
    return _suppressed(lambda one, others: shares[others, one], ranked, threshold, limit)


def _check(boxes: Floats, scores: Floats, most: Any, threshold: Any, least: Any) -> int:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes have shape {list(boxes.shape)}, expected [n, 4]")
    _require_scalars(threshold, 0 if least is None else least)
    if not 0 <= threshold <= 1:
        raise ValueError(f"overlap threshold is {threshold}, expected 0 to 1")
    return _check_scores(len(boxes), scores, most)


def _check_scores(boxes: int, scores: Floats, most: Any) -> int:
    """Check that *scores* has one number per box; return *most*, the number to select, as int."""
    if scores.shape != (boxes,):
        raise ValueError(f"scores have shape {list(scores.shape)}, expected [{boxes}]")
    if np.ndim(most) or most < 0:
        raise ValueError(f"the most boxes that stay are {most}, expected a scalar of at least 0")
    return int(most)


def _ranked(scores: Floats, least: Any) -> NDArray[np.intp]:
    """Return the indices of boxes with scores above *least*, best first, in a stable order."""
    if least is None:
        least = np.finfo(np.float32).min if scores.dtype == np.float32 else -65504
    candidates = np.flatnonzero(scores > scores.dtype.type(least))
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def _iou(boxes: Floats) -> Similarity:
    """Return the function for intersection over union, rounded to the precision of *boxes*."""
    corners = boxes.astype(np.float32, copy=False).reshape(-1, 2, 2)
    ordered = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)

    def share(one: int, others: NDArray[Any]) -> Floats:
        return overlaps(ordered, one, others).astype(boxes.dtype, copy=False)

    return share


def _suppressed(
    similarity: Similarity, ranked: NDArray[np.intp], threshold: Any, limit: int
) -> NDArray[np.int32]:
    kept: list[int] = []
    while len(ranked) and len(kept) < limit:
        best, ranked = int(ranked[0]), ranked[1:]
        kept.append(best)
        ranked = ranked[similarity(best, ranked) <= threshold]
    return np.array(kept, np.int32)


def _softened(
    similarity: Similarity, scores: Floats, limit: int, least: Any, sigma: Any
) -> tuple[NDArray[np.int32], Floats]:
    """Return at most *limit* boxes whose lowered scores stay above *least*, and these scores.

    *similarity* returns the overlaps of a box with others; *sigma* is the strength by which
    overlaps lower scores.

    When a box has the highest score, this score is first lowered for the boxes selected since it
    was last lowered.
    """
    type = scores.dtype.type
    scale, least = type(-0.5) / type(sigma), type(least)
    heap = [(-score, index, 0) for index, score in enumerate(scores) if score > least]
    heapq.heapify(heap)
    kept: list[int] = []
    left: list[Any] = []
    while heap and len(kept) < limit:
        negative, index, seen = heapq.heappop(heap)
        score = -negative
        for share in similarity(index, np.array(kept[seen:], np.intp))[::-1]:
            score = type(score * np.exp(scale * share * share))
            if score <= least:
                break
        if score == -negative:
            kept.append(index)
            left.append(score)
        elif score > least:
            heapq.heappush(heap, (-score, index, len(kept)))
    return np.array(kept, np.int32), np.array(left, scores.dtype)


def _padded(values: NDArray[Any], count: int) -> NDArray[Any]:
    require((count,), values.dtype)
    result = np.zeros(count, values.dtype)
    result[: len(values)] = values
    return result


@operator("CombinedNonMaxSuppression")
def combined_non_max_suppression(node: FlexNode) -> Step:
    """Return a function that selects the best boxes of all classes, for each image.

    The outputs are boxes, scores, classes and numbers of boxes.
    """
    is_clipped = node.bool("clip_boxes", True)
    is_per_class = node.bool("pad_per_class", False)

    def run(
        boxes: Floats, scores: Floats, per_class: Any, total: Any, threshold: Any, least: Any
    ) -> list[NDArray[Any]]:
        _require_scalars(threshold, least)
        _check_combined(boxes, scores, per_class, total, threshold)
        classes, rows = scores.shape[2], int(total)
        if is_per_class:
            rows = min(rows, int(per_class) * classes)
        require((len(boxes), rows, 4), np.float32)
        shown = np.clip(boxes, 0, 1) if is_clipped else boxes
        results = [
            np.zeros((len(boxes), rows, 4), np.float32),
            np.zeros((len(boxes), rows), np.float32),
            np.zeros((len(boxes), rows), np.float32),
            np.zeros(len(boxes), np.int32),
        ]
        for i in range(len(boxes)):
            limit = min(int(per_class), boxes.shape[1])
            found = _best_of_classes(boxes[i], scores[i], limit, threshold, least)[:rows]
            for j, (score, label, index) in enumerate(found):
                results[0][i, j] = shown[i, index, min(label, boxes.shape[2] - 1)]
                results[1][i, j], results[2][i, j] = score, label
            results[3][i] = len(found)
        return results

    return run


def _check_combined(
    boxes: Floats, scores: Floats, per_class: Any, total: Any, threshold: Any
) -> None:
    if boxes.ndim != 4 or boxes.shape[3] != 4 or scores.ndim != 3:
        shapes = f"{list(boxes.shape)} and {list(scores.shape)}"
        raise ValueError(f"boxes and scores have shapes {shapes}, expected 4 and 3 dimensions")
    if boxes.shape[:2] != scores.shape[:2] or boxes.shape[2] not in (1, scores.shape[2]):
        shapes = f"{list(boxes.shape)} and {list(scores.shape)}"
        raise ValueError(f"boxes and scores have shapes {shapes}, expected equal counts")
    if np.ndim(per_class) or np.ndim(total) or per_class <= 0 or total <= 0:
        raise ValueError(f"most boxes are {per_class} and {total}, expected at least 1")
    if not 0 <= threshold <= 1:
        raise ValueError(f"overlap threshold is {threshold}, expected 0 to 1")


def _require_scalars(*values: Any) -> None:
    for value in values:
        check_scalar(value, "a threshold")


def _best_of_classes(
    boxes: Floats, scores: Floats, limit: int, threshold: Any, least: Any
) -> list[tuple[float, int, int]]:
    """Return (score, class, box index) of the boxes selected in each class, best first.

    At most *limit* boxes per class are selected, by the overlap *threshold*.
    """
    found = []
    for label in range(scores.shape[1]):
        column = scores[:, label]
        similarity = _iou(boxes[:, min(label, boxes.shape[1] - 1)])
        kept = _suppressed(similarity, _ranked(column, least), np.float32(threshold), limit)
        found += [(float(column[index]), label, int(index)) for index in kept]
    return sorted(found, key=lambda each: -each[0])
