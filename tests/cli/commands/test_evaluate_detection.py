from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.cli.answers.printing import console
from delegraph.cli.commands.evaluate_detection import print_detection
from delegraph.tools import Setup, evaluate_detection, read_ground_truth
from support.command import Command, Refused
from support.corpus import CORPUS, corpus_file, needs_corpus
from support.faulty_delegate import Faulty, first_output

pytestmark = needs_corpus

MODEL = corpus_file("support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29")
NAMES = ["cat.bmp", "pets.jpg"]
OBJECTS = {"cat.bmp": (17, [10, 10, 400, 400]), "pets.jpg": (18, [0, 0, 300, 400])}


@pytest.fixture
def data(tmp_path: Path) -> list[object]:
    """Return the words that name two pictures and what is in them."""
    folder = tmp_path / "images"
    folder.mkdir()
    content: dict[str, list[object]] = {
        "images": [],
        "annotations": [],
        "categories": [{"id": 17, "name": "cat"}, {"id": 18, "name": "dog"}],
    }
    for number, name in enumerate(NAMES, 1):
        shutil.copy(CORPUS / "images" / name, folder / name)
        kind, box = OBJECTS[name]
        size = {"width": 600, "height": 600}
        content["images"].append({"id": number, "file_name": name, **size})
        content["annotations"].append({"image_id": number, "category_id": kind, "bbox": box})
    (tmp_path / "instances.json").write_text(json.dumps(content))
    return [
        "evaluate",
        "detection",
        MODEL,
        "-d",
        "none",
        "--images",
        folder,
        "--truth",
        tmp_path / "instances.json",
    ]


def test_it_prints_both_definitions_and_the_drop(delegraph: Command, data: list[object]) -> None:
    pytest.importorskip("faster_coco_eval")
    done = delegraph(*data, "--against", "--threads 2")
    assert done.code == 0, done.err
    for text in (
        "2 samples",
        "Mean average precision (mAP)",
        "TFLite's: crowds are objects",
        "COCO's figures",
        "Change from set-up 1",
        "0 to 0",
        "Average precision by overlap",
        "that no object has; each counts as 0",
        "class name objects TFLite's 1 TFLite's 2 COCO's 1 COCO's 2",
        "cat",
        "dog",
    ):
        assert text in " ".join(done.lines)


def test_a_wrong_class_offset_is_told(
    delegraph: Command, data: list[object], tmp_path: Path
) -> None:
    words = [*data, "--resamples", 2, "--csv", tmp_path / "found.csv"]
    assert "note: " not in (done := delegraph(*words)).out, done.err
    assert (tmp_path / "found.csv").read_text().startswith("picture,set-up,class,name,score,top,")
    done = delegraph(*words, "--class-offset", 0)
    assert "note: " in done.out
    better = delegraph(*words, "--class-offset", 0, "--json").json["better_offset"]
    assert (better["class_offset"], better["right"]) == (1, 0)


def test_one_picture_has_no_interval(delegraph: Command, data: list[object]) -> None:
    done = delegraph(*data, "--num-images", 1, "--against", "--threads 2")
    assert done.code == 0, done.err
    assert "1 picture: no interval" in done.out
    assert "0 to 0" not in done.out


def test_json_has_all_of_it(delegraph: Command, data: list[object]) -> None:
    done = delegraph(*data, "--json", "--resamples", "7")
    assert done.code == 0, done.err
    answer = done.json
    assert answer["task"] == "detection"
    assert answer["samples"] == 2
    assert (answer["class_names"]["17"], answer["class_names"]["18"]) == ("cat", "dog")
    assert answer["prepared_as_by_script"] is True
    assert answer["resamples"] == 7
    assert "drop" not in answer["setups"][0]


def test_pictures_become_inputs_as_asked_for(delegraph: Command, data: list[object]) -> None:
    done = delegraph(*data, "--resize", "nearest", "--json")
    preprocessing = done.json["preprocessing"]
    assert (preprocessing["resize"], preprocessing["crop"]) == ("nearest", "none")
    cut = delegraph(*data, "--crop", "square")
    assert (cut.code, "No such option" in cut.err) == (2, True)


def test_what_the_script_drops_is_kept_on_demand(delegraph: Command, data: list[object]) -> None:
    done = delegraph(*data, "--keep-all", "--json")
    assert done.json["prepared_as_by_script"] is False


def test_detections_that_are_no_numbers_are_told_of(
    data: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(tensor: Any) -> None:
        tensor.data[0, :2] = np.nan

    delegate = Faulty("TFLite_Detection_PostProcess", fault=first_output(spoil))
    setup = Setup(str(MODEL), delegates=(delegate,), use_default_delegates=False)
    result = evaluate_detection(setup, str(data[6]), read_ground_truth(str(data[8])), resamples=2)
    print_detection(console(), result)
    assert "note: 4 detections of set-up 1 had infinities or NaN in them" in capsys.readouterr().out


def test_pictures_are_chosen_by_ids_and_number(
    delegraph: Command, refused: Refused, data: list[object], tmp_path: Path
) -> None:
    (tmp_path / "ids.txt").write_text("2\n")
    one = delegraph(*data, "--ids", tmp_path / "ids.txt", "--json")
    assert "18" in one.json["class_names"]
    assert one.json["samples"] == 1
    first = delegraph(*data, "--num-images", 1, "--json")
    assert first.json["samples"] == 1
    assert "17" in first.json["class_names"]
    (tmp_path / "ids.txt").write_text("7\n")
    err = refused(*data, "--ids", tmp_path / "ids.txt")
    assert "picture 7 is not in" in err


def test_a_class_without_a_label_is_an_error_that_says_so(
    refused: Refused, data: list[object], tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").write_text("\n".join([*map(str, range(17)), "cat", "dog"]))
    words = [*data, "--labels", tmp_path / "labels.txt"]
    shutil.rmtree(tmp_path / "images")
    (tmp_path / "images").mkdir()
    err = refused(*words)
    assert f"'{MODEL}' may find class 90 (its own, 89, and the class offset 1)" in err
    assert "the 19 labels are of classes 0 to 18; if the first label is that of class" in err


def test_labels_that_begin_with_class_1_are_refused(
    delegraph: Command, refused: Refused, data: list[object], tmp_path: Path
) -> None:
    words = [*map(str, range(1, 17)), "cat", "dog", *map(str, range(19, 91))]
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(words))
    err = refused(*data, "--labels", path)
    assert "the labels give class 17 the label 'dog', which " in err
    assert "calls 'cat': if the first label is that of class 1, put a line '???' before" in err
    path.write_text("\n".join(["???", *words]).replace("dog", "wolf"))
    told = "1 label differs from the ground truth's names, which are shown: class 18 is 'dog', and "
    assert told in delegraph(*data, "--labels", path).err
    path.write_text("\n".join(f"word {number}" for number in range(91)))
    err = refused(*data, "--labels", path)
    assert "class 17 is 'cat', and its label 'word 17'. Is it the right file of la" in err


def test_negative_classes_are_an_error_that_says_so(refused: Refused, data: list[object]) -> None:
    err = refused(*data, "--class-offset", "-80")
    assert "the class offset -80), and classes begin at 0" in err


def test_a_model_that_is_no_detector_is_refused(refused: Refused, data: list[object]) -> None:
    other = corpus_file("test_data__mobilenet_v1_0.25_128_quant")
    assert "expected 4 outputs of a detector" in refused(*data[:2], other, *data[3:])


def test_outputs_are_named_by_the_user(
    delegraph: Command, refused: Refused, data: list[object]
) -> None:
    err = refused(*data, "--outputs", "boxes,classes,scores")
    assert "expected each of boxes, classes, scores, count once" in err
    done = delegraph(*data, "--outputs", "boxes, classes, scores, count")
    assert done.code == 0, done.err


def test_the_result_is_written_and_the_journal_gone(
    delegraph: Command, data: list[object], tmp_path: Path
) -> None:
    output = tmp_path / "result.json"
    done = delegraph(*data, "-o", output)
    assert done.code == 0, done.err
    answer = json.loads(output.read_text(), parse_constant=pytest.fail)  # NaN is no JSON
    assert answer["task"] == "detection"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["images", "instances.json", "result.json"]


def test_ground_truth_of_the_official_tool_is_without_coco(
    delegraph: Command, data: list[object], tmp_path: Path
) -> None:
    proto = tmp_path / "ground_truth.pb"
    box = b"\x0d\x00\x00\x00\x00\x15\x00\x00\x80\x3f\x1d\x00\x00\x00\x00\x25\x00\x00\x80\x3f"
    instance = b"\x08\x11\x12" + bytes([len(box)]) + box
    result = b"\x0a" + bytes([len(instance)]) + instance + b"\x12\x07cat.bmp\x18\x01"
    proto.write_bytes(b"\x0a" + bytes([len(result)]) + result)
    done = delegraph(*data[:-1], proto)
    assert done.code == 0, done.err
    assert "1 sample" in done.out
    assert "note: no figures of COCO: COCO's definition needs sizes in pixels" in done.out
