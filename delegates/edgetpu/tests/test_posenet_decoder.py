"""PosenetDecoderOp in a model: options, quantized inputs, outputs, and a real PoseNet."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import delegraph_edgetpu
from delegraph import Interpreter
from delegraph.errors import OperatorError
from delegraph.schema.options import ResizeBilinearOptions
from delegraph.testing import TensorDef, constant, one_op_model, tensor
from delegraph_edgetpu.custom_op import edgetpu_custom_op
from delegraph_edgetpu.custom_options import CUSTOM_OP
from delegraph_edgetpu.instance_masks import instance_masks
from delegraph_edgetpu.pose_decoding import DecodingOptions, decode_poses
from delegraph_edgetpu.posenet_decoder import NAME, parse_options, posenet_decoder
from support.corpus import CORPUS, corpus_file, needs_corpus

GIVEN = {"max_detections": 6, "score_threshold": 0.3, "stride": 16, "nms_radius": 10.0}
OPTIONS = DecodingOptions(6, 0.3, 16, 10.0)
CHANNELS = (17, 34, 64, 34)


def options_of(**changes: Any) -> bytes:
    return bytes(flexbuffers.Dumps({**GIVEN, **changes}))


def interpreter_of(
    inputs: list[TensorDef], outputs: list[TensorDef] | None = None, options: bytes | None = None
) -> Interpreter:
    with_masks = len(inputs) == 4
    shapes = [(1, 6, 17, 2), (1, 6, 17), (1, 6), (1,), (1, 6, 33, 33)][: 4 + with_masks]
    made = outputs if outputs is not None else [tensor(shape) for shape in shapes]
    content = options_of() if options is None else options
    model = one_op_model(NAME, inputs, made, custom_options=content)
    return Interpreter(model_content=model, custom_ops={NAME: posenet_decoder})


def answers(interpreter: Interpreter, *values: np.ndarray) -> list[np.ndarray]:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def maps(seed: int, height: int, width: int) -> list[np.ndarray]:
    """Return float maps as the operator gets them: offsets in pixels."""
    rng = np.random.default_rng(seed)
    spread = ((-0.5, 2), (0, 16), (0, 48), (0, 32))
    return [
        rng.normal(*around, (1, height, width, c)).astype(np.float32)
        for around, c in zip(spread, CHANNELS, strict=True)
    ]


def assert_poses(outputs: list[np.ndarray], grids: list[np.ndarray]) -> int:
    """Compare outputs with the decoded poses, and return how many there are."""
    poses = decode_poses(*grids[:3], OPTIONS)
    count = len(poses.scores)
    assert outputs[3].tolist() == [count]
    for got, expected in zip(
        outputs, (poses.keypoints, poses.keypoint_scores, poses.scores), strict=False
    ):
        np.testing.assert_array_equal(got[0, :count], expected)
        assert not got[0, count:].any()
    return count


def test_float_maps_give_the_decoded_poses() -> None:
    values = maps(5, 6, 7)[:3]
    outputs = answers(interpreter_of([tensor(v.shape) for v in values]), *values)
    sixteenth = np.float32(1 / 16)
    grids = [values[0][0], values[1][0] * sixteenth, values[2][0] * sixteenth]
    assert assert_poses(outputs, grids) > 1


def test_quantized_maps_are_decoded_by_scale_and_zero_point() -> None:
    rng = np.random.default_rng(1)
    kinds = [(0.1, 100), (0.7, 128), (1.3, 120)]
    shapes = [(1, 6, 7, c) for c in CHANNELS[:3]]
    values = [
        np.clip(rng.normal(zero, 30, shape), 0, 255).astype(np.uint8)
        for shape, (_, zero) in zip(shapes, kinds, strict=True)
    ]
    inputs = [
        tensor(shape, "UINT8", scale=scale, zero_point=zero)
        for shape, (scale, zero) in zip(shapes, kinds, strict=True)
    ]
    outputs = answers(interpreter_of(inputs), *values)
    grids = []
    for value, (scale, zero), stride in zip(values, kinds, (1, 16, 16), strict=True):
        step = np.float32(scale) * np.float32(1 / stride)
        grids.append((value[0].astype(np.float32) - np.float32(zero)) * step)
    assert assert_poses(outputs, grids) > 1


def test_fourth_input_gives_masks_of_the_poses() -> None:
    values = maps(2, 6, 7)
    values[3] = np.random.default_rng(3).normal(0, 48, (1, 33, 33, 34)).astype(np.float32)
    outputs = answers(interpreter_of([tensor(v.shape) for v in values]), *values)
    count = int(outputs[3][0])
    assert 0 < count <= 6
    sixteenth = np.float32(1 / 16)
    expected = instance_masks(values[3][0] * sixteenth, outputs[0][0, :count], 16)
    np.testing.assert_array_equal(outputs[4][0, :count], expected)
    np.testing.assert_array_equal(outputs[4][0].sum(axis=0), np.ones((33, 33)))


def test_rows_behind_the_last_pose_are_zero_at_every_invoke() -> None:
    values = maps(5, 6, 7)[:3]
    interpreter = interpreter_of([tensor(v.shape) for v in values])
    assert answers(interpreter, *values)[3][0] > 0
    outputs = answers(interpreter, np.full_like(values[0], -20), *values[1:])
    assert [bool(y.any()) for y in outputs] == [False] * 4


def test_absent_options_are_zero() -> None:
    assert parse_options(bytes(flexbuffers.Dumps({"stride": 8}))) == DecodingOptions(0, 0.0, 8, 0.0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (options_of(stride=0), "option stride is 0, expected a number from 1 up"),
        (options_of(max_detections=-1), "option max_detections is -1"),
        (options_of(nms_radius="wide"), "option nms_radius is 'wide', expected a number"),
        (b"\x01", "custom options are no FlexBuffer"),
        (b"", "option stride is 0"),
    ],
)
def test_options_that_cannot_work_are_named(content: bytes, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        parse_options(content)


def shaped(*shapes: tuple[int, ...], type: str = "FLOAT32") -> list[TensorDef]:
    return [tensor(shape, type) for shape in shapes]


GRIDS = ((1, 6, 7, 17), (1, 6, 7, 34), (1, 6, 7, 64))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (shaped(*GRIDS[:2]), "2 inputs and 4 outputs, expected 3 and 4, or with masks 4 and 5"),
        (shaped(*GRIDS, type="INT8"), "heatmaps are INT8, expected FLOAT32 or UINT8"),
        (
            shaped((2, 6, 7, 17), *GRIDS[1:]),
            r"heatmaps have shape \[2, 6, 7, 17\], expected \[1, 6, 7, 17\]",
        ),
        (shaped((6, 17), *GRIDS[1:]), r"heatmaps have shape \[6, 17\], expected a grid"),
        (
            shaped(GRIDS[0], (1, 7, 6, 34), GRIDS[2]),
            r"short-range offsets have shape \[1, 7, 6, 34\], expected \[1, 6, 7, 34\]",
        ),
        (
            shaped(*GRIDS[:2], (1, 6, 7, 32)),
            r"mid-range offsets have shape \[1, 6, 7, 32\], expected \[1, 6, 7, 64\]",
        ),
        (
            shaped(*GRIDS, (1, 6, 7, 34)),
            r"long-range offsets have shape \[1, 6, 7, 34\], expected \[1, 33, 33, 34\]",
        ),
        (
            shaped((1, 0, 7, 17), (1, 0, 7, 34), (1, 0, 7, 64)),
            r"heatmaps have shape \[1, 0, 7, 17\], expected a grid",
        ),
    ],
)
def test_inputs_that_are_no_posenets_are_refused(inputs: list[TensorDef], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        interpreter_of(inputs).allocate_tensors()


def test_outputs_that_are_no_floats_are_refused() -> None:
    outputs = [tensor((1, 6, 17, 2), name="poses", type="UINT8"), *shaped((1, 6, 17), (1, 6), (1,))]
    with pytest.raises(RuntimeError, match="'poses' is UINT8, expected FLOAT32"):
        interpreter_of(shaped(*GRIDS), outputs).allocate_tensors()


# -- a real model ------------------------------------------------------------------------------

POSENET = "test_data__posenet_mobilenet_v1_075_353_481_16_quant_decoder"
REFERENCE = (
    CORPUS / "golden" / "coral_posenet_mobilenet_v1_075_353_481_16_quant_decoder_reference.csv"
)


def resized(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a picture in another size, interpolated between the centres of its pixels, uint8."""
    model = one_op_model(
        "RESIZE_BILINEAR",
        [tensor(picture.shape), constant(np.int32([height, width]))],
        [tensor((1, height, width, 3))],
        ResizeBilinearOptions(half_pixel_centers=True),
    )
    (result,) = answers(Interpreter(model_content=model), picture.astype(np.float32))
    return result.astype(np.uint8)


@needs_corpus
def test_posenet_finds_the_two_people_of_the_public_reference() -> None:
    """Coral's own test allows 4 pixels and 0.1; a device rounds otherwise than the kernels do."""
    image = pytest.importorskip("PIL.Image")
    with image.open(CORPUS / "images" / "test_image.bmp") as opened:
        picture = np.asarray(opened.convert("RGB"))[None]
    with REFERENCE.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    expected = np.array(
        [[float(r["keypoint_y"]) * 353, float(r["keypoint_x"]) * 481] for r in rows]
    ).reshape(2, 17, 2)
    shares = np.array([float(r["keypoint_score"]) for r in rows]).reshape(2, 17)
    model = corpus_file(POSENET)
    interpreter = Interpreter(model_path=str(model), custom_ops={NAME: posenet_decoder})
    keypoints, keypoint_scores, scores, count = answers(interpreter, resized(picture, 353, 481))
    assert count.tolist() == [2]
    assert np.abs(keypoints[0, :2] - expected).max() < 4
    assert np.median(np.abs(keypoints[0, :2] - expected)) < 0.02
    assert np.abs(keypoint_scores[0, :2] - shares).max() < 0.02
    np.testing.assert_allclose(scores[0, :2], [0.89818, 0.860866], atol=0.002)


@needs_corpus
def test_compiled_posenet_finds_the_same_poses() -> None:
    """The network is in the custom operator; the decoder stays behind it, on the CPU."""
    (compiled,) = delegraph_edgetpu.compile(corpus_file(POSENET))
    assert [operator.name for operator in compiled.unmapped] == [NAME]
    picture = np.random.default_rng(4).integers(0, 256, (1, 353, 481, 3), np.uint8)
    custom_ops = {NAME: posenet_decoder, CUSTOM_OP: edgetpu_custom_op()}
    results = [
        answers(Interpreter(model_content=model, custom_ops=custom_ops), picture)
        for model in (corpus_file(POSENET).read_bytes(), compiled.model)
    ]
    for got, expected in zip(results[1], results[0], strict=True):
        np.testing.assert_array_equal(got, expected)
