"""TFLite_Detection_PostProcess against the official interpreter."""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.errors import OperatorError
from delegraph.kernels.custom.detection_postprocess import Options
from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import model_and_arrays
from support.official import official_outputs

OP = "TFLite_Detection_PostProcess"
GIVEN = {
    "max_detections": 8,
    "max_classes_per_detection": 1,
    "detections_per_class": 5,
    "use_regular_nms": False,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "num_classes": 4,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def flexbuffer(options):
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            {bool: builder.Bool, int: builder.Int, float: builder.Float}[type(value)](value)
    return bytes(builder.Finish())


def scene(seed, quantized, background):
    """Return encodings, scores with many ties, and anchors of up to 60 boxes."""
    rng = np.random.default_rng(seed)
    boxes = int(rng.integers(1, 60))
    encodings = rng.standard_normal((1, boxes, 4)).astype(np.float32) * 5
    scores = (rng.integers(0, 6, (1, boxes, 4 + background)) / 5).astype(np.float32)
    anchors = (np.abs(rng.standard_normal((boxes, 4))) * 0.3 + 0.2).astype(np.float32)
    if not quantized:
        return [fed(encodings), fed(scores), constant(anchors)]

    def stored(values, scale, zero):
        return np.clip(np.round(values / scale) + zero, 0, 255).astype(np.uint8)

    return [
        fed(stored(encodings, 0.1, 128), scale=0.1, zero_point=128),
        fed(stored(scores, 1 / 256, 0), scale=1 / 256, zero_point=0),
        constant(stored(anchors, 0.01, 0), scale=0.01),
    ]


def found(outputs, options):
    """Return the part of the outputs that the official kernel writes."""
    boxes, classes, scores, (number,) = outputs
    per_box = options["max_classes_per_detection"]
    if options["use_regular_nms"]:
        count = options["max_detections"]
        return boxes[0, :count], classes[0, :count], scores[0, :count], number
    shown, rows = min(per_box, options["num_classes"]), int(number)
    return (
        boxes[0].reshape(-1, per_box, 4)[:rows, :shown],
        classes[0].reshape(-1, per_box)[:rows, :shown],
        scores[0].reshape(-1, per_box)[:rows, :shown],
        number,
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_classes_per_detection": 3},
        {"max_classes_per_detection": 6, "max_detections": 3},
        {"use_regular_nms": True},
        {"use_regular_nms": True, "detections_per_class": 1, "nms_iou_threshold": 0.1},
        {"nms_score_threshold": 0.9},
    ],
)
def test_boxes_classes_and_scores_agree_ties_included(changes, quantized, seed):
    options = {**GIVEN, **changes}
    inputs = scene(seed, quantized, background=seed % 2)
    model, arrays = model_and_arrays(
        OP, inputs, ["FLOAT32"] * 4, custom_options=flexbuffer(options)
    )
    ours = found(delegraph_outputs(model, arrays), options)
    official = found(official_outputs(model, arrays), options)
    for mine, theirs in zip(ours, official, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("changes", [{"max_classes_per_detection": 3}, {"use_regular_nms": True}])
def test_scores_that_are_no_numbers_rank_as_in_litert(changes, seed):
    options = {**GIVEN, **changes}
    inputs = scene(seed, False, background=seed % 2)
    inputs[1].array[np.random.default_rng(seed).random(inputs[1].array.shape) < 0.3] = np.nan
    model, arrays = model_and_arrays(
        OP, inputs, ["FLOAT32"] * 4, custom_options=flexbuffer(options)
    )
    ours = found(delegraph_outputs(model, arrays), options)
    official = found(official_outputs(model, arrays), options)
    for mine, theirs in zip(ours, official, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def test_places_without_a_detection_are_zero():
    options = {**GIVEN, "nms_score_threshold": 2.0}
    inputs = scene(0, False, 0)
    model, arrays = model_and_arrays(
        OP, inputs, ["FLOAT32"] * 4, custom_options=flexbuffer(options)
    )
    assert not any(output.any() for output in delegraph_outputs(model, arrays))


def test_detections_per_class_is_100_when_absent():
    given = {name: value for name, value in GIVEN.items() if name != "detections_per_class"}
    assert Options.parse(flexbuffer(given)).detections_per_class == 100


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"max_detections": -1}, "negative count"),
        ({"num_classes": 0}, "no class"),
        ({"max_detections": 2**30, "max_classes_per_detection": 1}, "too many"),
        ({"nms_iou_threshold": 0.0}, "nms_iou_threshold"),
        ({"max_classes_per_detection": 0}, "allows no detection"),
        ({"use_regular_nms": True, "detections_per_class": 0}, "allows no detection"),
    ],
)
def test_options_outside_their_range_are_refused(changes, match):
    with pytest.raises(OperatorError, match=match):
        Options.parse(flexbuffer({**GIVEN, **changes}))


@pytest.mark.parametrize(
    ("data", "match"),
    [(b"", "no class"), (b"\x01\x02\x03", "NoneType"), (flexbuffers.Dumps([1, 2]), "a list")],
)
def test_options_that_are_no_map_are_refused(data, match):
    with pytest.raises(OperatorError, match=match):
        Options.parse(data)


def test_an_option_that_is_no_number_is_refused():
    data = flexbuffers.Dumps({**GIVEN, "num_classes": "four"})
    with pytest.raises(OperatorError, match="option num_classes is 'four', expected a number"):
        Options.parse(data)
