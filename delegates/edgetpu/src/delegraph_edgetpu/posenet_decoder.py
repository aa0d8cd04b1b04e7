"""PosenetDecoderOp: the custom operator that ends PoseNet models for the Edge TPU.

The operator runs on the CPU, after the part that the device computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import size_outputs
from delegraph.errors import OperatorError
from delegraph.operators import (
    Eval,
    Node,
    OpContext,
    Registration,
    Shape,
    Tensor,
    flexbuffer_options,
    input_tensor,
    integer_option,
    output_tensor,
)
from delegraph.schema.enums import TensorType
from delegraph_edgetpu.instance_masks import instance_masks
from delegraph_edgetpu.pose_decoding import KEYPOINTS, MID_CHANNELS, DecodingOptions, decode_poses

NAME = "PosenetDecoderOp"
"""Custom code of the operator."""

_COUNT = len(KEYPOINTS)
_INPUTS = (
    ("heatmaps", _COUNT),
    ("short-range offsets", 2 * _COUNT),
    ("mid-range offsets", MID_CHANNELS),
    ("long-range offsets", 2 * _COUNT),
)
"""Name and number of channels of each input."""

_MASK = 33
"""Number of rows and of columns of a mask, for images of any size."""


def parse_options(content: bytes) -> DecodingOptions:
    """Return the options in *content*, a FlexBuffer map; missing options are 0, as officially.

    Raises:
        OperatorError: the options are no FlexBuffer map, or a value is invalid.
    """
    given = flexbuffer_options(content)
    real = {name: given.get(name, 0) for name in ("score_threshold", "nms_radius")}
    for name, value in real.items():
        if not isinstance(value, (int, float)):
            raise OperatorError(f"option {name} is {value!r}, expected a number")
    return DecodingOptions(
        max_detections=integer_option(given, "max_detections", 0),
        stride=integer_option(given, "stride", 1),
        score_threshold=float(real["score_threshold"]),
        nms_radius=float(real["nms_radius"]),
    )


def prepare_posenet_decoder(context: OpContext, node: Node) -> Eval:
    """Return the evaluation of PosenetDecoderOp.

    Inputs, uint8 with a scale or float32: heatmaps ``[1, H, W, 17]`` (logits), short-range offsets
    ``[1, H, W, 34]``, mid-range offsets ``[1, H, W, 64]`` and, for masks, long-range offsets ``[1,
    33, 33, 34]``; offsets are in pixels. Outputs, float32, with D as the option ``max_detections``:
    keypoints ``[1, D, 17, 2]`` as y and x in pixels, their scores ``[1, D, 17]``, scores of the
    poses ``[1, D]``, number of valid poses ``[1]``, masks ``[1, D, 33, 33]``.

    Rows after the last pose are zero; the official operator does not write them.

    Source:
        coral/posenet/posenet_decoder_op.cc of google-coral/libcoral.
    """
    options = parse_options(node.custom_options)
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    outputs = [output_tensor(context, node, i) for i in range(len(node.outputs))]
    _check(inputs, outputs)
    limit = options.max_detections
    shapes: list[Shape] = [(1, limit, _COUNT, 2), (1, limit, _COUNT), (1, limit), (1,)]
    shapes += [(1, limit, _MASK, _MASK)] * (len(outputs) - len(shapes))

    def decode() -> None:
        heatmaps = _real(inputs[0], 1)
        offsets = [_real(tensor, options.stride) for tensor in inputs[1:]]
        poses = decode_poses(heatmaps, offsets[0], offsets[1], options)
        results = [poses.keypoints, poses.keypoint_scores, poses.scores]
        if len(outputs) > 4:
            masks = instance_masks(offsets[2], poses.keypoints, options.stride)
            _fill(outputs[4], masks)
        for y, values in zip(outputs, results, strict=False):
            _fill(y, values)
        outputs[3].data[0] = len(poses.scores)

    return size_outputs(context, outputs, lambda: (shapes, decode))


posenet_decoder = Registration(NAME, prepare_posenet_decoder)
"""Implementation of the custom operator, which the plugin offers."""


def _check(inputs: list[Tensor], outputs: list[Tensor]) -> None:
    if (len(inputs), len(outputs)) not in ((3, 4), (4, 5)):
        found = f"{len(inputs)} inputs and {len(outputs)} outputs"
        raise OperatorError(f"there are {found}, expected 3 and 4, or with masks 4 and 5")
    heatmaps = list(inputs[0].shape)
    if len(heatmaps) != 4 or 0 in heatmaps:
        raise OperatorError(f"heatmaps have shape {heatmaps}, expected a grid, [1, H, W, {_COUNT}]")
    grids = [heatmaps[1:3]] * 3 + [[_MASK, _MASK]]
    for tensor, grid, (name, channels) in zip(inputs, grids, _INPUTS, strict=False):
        if tensor.type not in (TensorType.FLOAT32, TensorType.UINT8):
            raise OperatorError(f"{name} are {tensor.type.name}, expected FLOAT32 or UINT8")
        expected = [1, *grid, channels]
        if list(tensor.shape) != expected:
            raise OperatorError(f"{name} have shape {list(tensor.shape)}, expected {expected}")
    for tensor in outputs:
        if tensor.type is not TensorType.FLOAT32:
            raise OperatorError(f"{tensor.name!r} is {tensor.type.name}, expected FLOAT32")


def _real(tensor: Tensor, stride: int) -> NDArray[np.float32]:
    """Return dequantized values of *tensor* divided by *stride*, ``[H, W, C], float32``."""
    scale = np.float32(1 / stride)
    data: NDArray[Any] = tensor.data[0]
    if tensor.type is TensorType.FLOAT32:
        return data * scale
    centred = data.astype(np.float32) - np.float32(tensor.zero_point)
    return centred * (np.float32(tensor.scale) * scale)


def _fill(y: Tensor, rows: NDArray[np.float32]) -> None:
    """Write *rows* to the first rows of output *y* along its second axis, and zeros after them."""
    y.data[0, : len(rows)] = rows
    y.data[0, len(rows) :] = 0
