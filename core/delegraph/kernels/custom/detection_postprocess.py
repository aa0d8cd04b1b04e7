"""TFLite_Detection_PostProcess: box decoding and non-maximum suppression of SSD models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.box_suppression import descending, suppressed
from delegraph.arithmetic.cpp_heap import largest
from delegraph.arithmetic.output_shape import check_rank, size_outputs
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import adopt_type, tensors_of
from delegraph.operators.flexbuffer_options import flexbuffer_options
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor
from delegraph.schema.enums import TensorType

Floats = NDArray[np.float32]
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Options:
    """The operator's options, a FlexBuffer map with these keys.

    Attributes:
        max_detections: largest number of kept boxes.
        max_classes_per_detection: number of classes returned for each box (fast suppression).
        detections_per_class: number of kept boxes of each class (regular suppression).
        use_regular_nms: whether to suppress boxes of each class separately (regular suppression);
            otherwise all boxes together, by their highest scores (fast suppression).
        nms_score_threshold: boxes with lower scores are omitted.
        nms_iou_threshold: overlap, in (0, 1], above which the lower-scoring box is dropped.
        num_classes: number of classes without the background.
        y_scale: divisor of the encoded y coordinate of centres; ``x_scale``, ``h_scale`` and
            ``w_scale`` are divisors of the other encoded numbers.
    """

    max_detections: int
    max_classes_per_detection: int
    detections_per_class: int
    use_regular_nms: bool
    nms_score_threshold: float
    nms_iou_threshold: float
    num_classes: int
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float

    @classmethod
    def parse(cls, data: bytes) -> Options:
        """Return the options in *data*; an absent option has the official kernel's default.

        Raises:
            OperatorError: *data* is no FlexBuffer map, or a value is invalid.
        """
        loaded = flexbuffer_options(data)
        defaults = {"detections_per_class": 100}
        values = {name: loaded.get(name, defaults.get(name, 0)) for name in cls.__slots__}
        for name, value in values.items():
            if not isinstance(value, (bool, int, float)):
                raise OperatorError(f"option {name} is {value!r}, expected a number")
        options = cls(**values)
        options.check()
        return options

    def check(self) -> None:
        """Check that every option of the node is within its range.

        Raises:
            OperatorError: a value is outside its range.
        """
        counts = (self.max_detections, self.max_classes_per_detection, self.detections_per_class)
        if min(counts) < 0 or self.num_classes < 1:
            raise OperatorError(f"{self} has a negative count or no class")
        if max(2 * counts[0], counts[0] * counts[1]) > INT32_MAX:
            raise OperatorError(f"{counts[0]} detections of {counts[1]} classes are too many")
        if not 0 < self.nms_iou_threshold <= 1:
            raise OperatorError(f"nms_iou_threshold is {self.nms_iou_threshold}, expected (0, 1]")
        smallest = self.detections_per_class if self.use_regular_nms else counts[1]
        if smallest < 1 or (self.use_regular_nms and self.max_detections < 1):
            raise OperatorError(f"{self} allows no detection")


@kernel("TFLite_Detection_PostProcess")
def prepare_detection_postprocess(context: OpContext, node: Node) -> Eval:
    """Prepare TFLite_Detection_PostProcess: the best boxes, with their classes and scores.

    Inputs: encodings ``[1, boxes, >= 4]``, scores ``[1, boxes, classes (+ 1 background)]``, anchors
    ``[boxes, 4]``; float32, or uint8 with scales. Outputs, float32: boxes ``[1, D, 4]`` as ymin,
    xmin, ymax, xmax; classes and scores ``[1, D]``; number of valid detections, ``[1]``.

    Source:
        tflite/kernels/detection_postprocess.cc, with one thread.
    """
    tensors = tensors_of(context, node, 3, 4)
    inputs, outputs = tensors[:3], tensors[3:]
    options = Options.parse(node.custom_options)
    _check(inputs, outputs, options)
    count = options.max_detections * options.max_classes_per_detection
    find = _regular if options.use_regular_nms else _fast
    limit = min(count, options.max_detections) if options.use_regular_nms else count

    def plans() -> tuple[list[Shape], Eval]:
        def detect() -> None:
            encodings, scores, anchors = (_real(tensor) for tensor in inputs)
            boxes = decoded(encodings[0, :, :4], anchors, options)
            rows, classes, values, number = find(boxes, scores[0], options)
            rows, classes, values = rows[:limit], classes[:limit], values[:limit]
            for y in outputs[:3]:
                y.data.fill(0)
            outputs[0].data[0, : len(rows)] = boxes[rows]
            outputs[1].data[0, : len(rows)] = classes
            outputs[2].data[0, : len(rows)] = values
            outputs[3].data.fill(number)

        return [(1, count, 4), (1, count), (1, count), (1,)], detect

    return size_outputs(context, outputs, plans)


def _check(inputs: list[Tensor], outputs: list[Tensor], options: Options) -> None:
    encodings, scores, anchors = inputs
    check_rank(encodings, (3,), "box encodings")
    check_rank(scores, (3,), "class predictions")
    check_rank(anchors, (2,), "anchors")
    n, boxes, width = encodings.shape
    if n != 1 or width < 4 or scores.shape[:2] != (1, boxes) or anchors.shape != (boxes, 4):
        shapes = ", ".join(str(list(tensor.shape)) for tensor in inputs)
        raise OperatorError(f"inputs are {shapes}, expected [1, N, >= 4], [1, N, C] and [N, 4]")
    if scores.shape[2] - options.num_classes not in (0, 1):
        raise OperatorError(f"{scores.shape[2]} scores a box for {options.num_classes} classes")
    if anchors.type is not encodings.type:
        raise OperatorError(f"anchors are {anchors.type.name}, expected {encodings.type.name}")
    for tensor in inputs:
        if tensor.type not in (TensorType.FLOAT32, TensorType.UINT8):
            raise OperatorError(f"{tensor.name!r} is {tensor.type.name}, expected FLOAT32 or UINT8")
    for tensor in outputs:
        adopt_type(tensor, TensorType.FLOAT32)


def _real(tensor: Tensor) -> Floats:
    """Return the real numbers that the elements of *tensor* represent, float32."""
    data: NDArray[Any] = tensor.data
    if tensor.type is TensorType.FLOAT32:
        return data
    return (data.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)


def decoded(encodings: Floats, anchors: Floats, options: Options) -> Floats:
    """Return the corners ymin, xmin, ymax, xmax of boxes, ``[N, 4], float32``.

    Args:
        encodings: ``[N, 4]``: centre y, x relative to the anchor, logarithm of height and width.
        anchors: ``[N, 4]``: centre y, x, height and width.
        options: options with the divisors of the encodings.

    Raises:
        OperatorError: a box has a minimum above its maximum.
    """
    scales = (options.y_scale, options.x_scale, options.h_scale, options.w_scale)
    wide = encodings.astype(np.float64) / np.array(scales, np.float32).astype(np.float64)
    anchor = anchors.astype(np.float64)
    with np.errstate(over="ignore"):
        center = (wide[:, :2] * anchor[:, 2:] + anchor[:, :2]).astype(np.float32)
        half = (0.5 * np.exp(wide[:, 2:]) * anchor[:, 2:]).astype(np.float32)
    low, high = center - half, center + half
    if (low > high).any():
        raise OperatorError("a decoded box has its corners the wrong way round")
    return np.concatenate([low, high], axis=1)


Found = tuple[NDArray[Any], NDArray[Any], Floats, int]
"""Rows of detections' boxes, their classes and scores, and the number of valid detections."""


def _one_class(boxes: Floats, scores: Floats, limit: int, options: Options) -> NDArray[np.intp]:
    """Return the boxes of one class, best first, without those that overlap a better box too much.

    Args:
        boxes: corners of the boxes, ``[N, 4]``.
        scores: score of each box, ``[N]``.
        limit: largest number of boxes.
        options: options with the thresholds of score and overlap.

    Returns:
        Indices of the boxes.
    """
    candidates = np.flatnonzero(scores >= np.float32(options.nms_score_threshold))
    ranked = candidates[descending(scores[candidates])]
    return np.array(suppressed(boxes, ranked, options.nms_iou_threshold, limit), np.intp)


def _fast(boxes: Floats, scores: Floats, options: Options) -> Found:
    """Drop boxes that overlap boxes with a higher best score; return the detections.

    Args:
        boxes: corners of the boxes, ``[N, 4]``.
        scores: ``[N, classes (+ 1 background)]``.
        options: options of the operator.
    """
    scores = scores[:, scores.shape[1] - options.num_classes :]
    per_box = options.max_classes_per_detection
    shown = min(per_box, options.num_classes)
    highest = scores.max(axis=1)
    for row in np.flatnonzero(np.isnan(highest)):
        highest[row] = scores[row, _best_classes(scores[row], shown)[0]]
    rows = _one_class(boxes, highest, options.max_detections, options)
    best = np.zeros((len(rows), per_box), np.intp)
    values = np.zeros((len(rows), per_box), np.float32)
    for i, row in enumerate(rows):
        best[i, :shown] = _best_classes(scores[row], shown)
        values[i, :shown] = scores[row, best[i, :shown]]
    places = np.repeat(rows, per_box)
    return places, best.reshape(-1), values.reshape(-1), len(rows)


def _best_classes(scores: Floats, count: int) -> list[int]:
    """Return the classes of the *count* highest scores, best first."""
    if count == 1:
        return [int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))]  # as in ARG_MAX
    return largest(scores.tolist(), count)


def _regular(boxes: Floats, scores: Floats, options: Options) -> Found:
    """Drop boxes that overlap better boxes, class by class; return the best detections.

    Args:
        boxes: corners of the boxes, ``[N, 4]``.
        scores: ``[N, classes (+ 1 background)]``.
        options: options of the operator.
    """
    background = scores.shape[1] - options.num_classes
    limit = min(options.detections_per_class, options.max_detections)
    rows = np.empty(0, np.intp)
    classes, values = np.empty(0, np.intp), np.empty(0, np.float32)
    for class_ in range(options.num_classes):
        column = scores[:, background + class_]
        kept = _one_class(boxes, column, limit, options)
        rows = np.concatenate([rows, kept])
        classes = np.concatenate([classes, np.full(len(kept), class_)])
        values = np.concatenate([values, column[kept]])
        order = descending(values)[: options.max_detections]
        rows, classes, values = rows[order], classes[order], values[order]
    return rows, classes, values, len(rows)
