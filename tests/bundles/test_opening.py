"""What ``FILE#SECTION`` stands for."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from delegraph import Interpreter, Limits
from delegraph.bundles.opening import MAX_DEPTH, split_address
from delegraph.errors import ArgumentError, MalformedModelError, ModelError, SectionError
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.model_files import mapped_file
from delegraph.micro import runtime as micro
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from support.bundles import FLOAT, GENERIC, INT8, MODEL, file_of, litertlm, zipped

INNER = zipped({"det.tflite": INT8, "more/b.tflite": FLOAT})
TASK = zipped({"inner.task": INNER, "METADATA": b"said", "last": INT8})
LM = litertlm(
    [
        (MODEL, INT8, "tf_lite_prefill_decode"),
        (GENERIC, FLOAT, ""),
        (MODEL, FLOAT, "TF_LITE_EMBEDDER"),
    ]
)


@pytest.mark.parametrize(
    ("content", "section", "expected"),
    [
        (TASK, "#last", INT8),
        (TASK, "#2", INT8),
        (TASK, "#inner.task#det.tflite", INT8),
        (TASK, "#inner.task#more/b.tflite", FLOAT),
        (TASK, "#0#1", FLOAT),
        (zipped({"a#b": INNER}), "#a#b#det.tflite", INT8),
        (zipped({"1": INT8, "x": FLOAT}), "#1", INT8),
        (zipped({"x.zip": zipped({"m": INT8})}), "", INT8),
        (zipped({"only": INT8, "labels.txt": b"a"}), "", INT8),
        (zipped({"only": INT8}, zipfile.ZIP_DEFLATED), "", INT8),
        (LM, "#0", INT8),
        (LM, "#1", FLOAT),
        (LM, "#tf_lite_prefill_decode", INT8),
        (LM, "#embedder", FLOAT),
        (litertlm([(MODEL, INT8, "")]), "", INT8),
        (litertlm([(GENERIC, INNER, "")]), "#0#det.tflite", INT8),
    ],
)
def test_an_address_is_the_model_of_a_section(
    tmp_path: Path, content: bytes, section: str, expected: bytes
) -> None:
    path = f"{file_of(tmp_path, content)}{section}"
    assert load_model(path).content.tobytes() == expected


def test_stored_sections_are_mapped_and_compute_the_same_wherever_they_begin(
    tmp_path: Path,
) -> None:
    pixels = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)
    answers = []
    for before in range(4):
        path = file_of(tmp_path, zipped({"x" * before + "y": b"", "m": FLOAT}))
        for delegates in ([], None):
            with Interpreter(f"{path}#m", delegates=delegates) as interpreter:
                assert mapped_file(interpreter.session.model.content) is not None
                interpreter.allocate_tensors()
                (entry,) = interpreter.get_input_details()
                interpreter.set_tensor(entry["index"], pixels)
                interpreter.invoke()
                output = interpreter.get_output_details()[0]["index"]
                answers.append(interpreter.get_tensor(output))
    for answer in answers:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-3)


def test_a_section_is_not_copied(tmp_path: Path) -> None:
    huge = INT8 + bytes(64 << 20)
    path = file_of(tmp_path, zipped({"a": huge, "b": FLOAT}))
    tracemalloc.start()
    try:
        load_model(f"{path}#a")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_constants_after_the_flatbuffer_are_found_from_the_start_of_the_section(
    tmp_path: Path,
) -> None:
    outside = write_model(read_model(np.frombuffer(FLOAT, np.uint8)), inline_limit=0)
    path = file_of(tmp_path, zipped({"first": b"1" * 999, "m": outside}))
    tensors = load_model(f"{path}#m").subgraphs[0].tensors
    for mine, right in zip(tensors, parse_model(FLOAT).subgraphs[0].tensors, strict=True):
        assert (mine.data is None) == (right.data is None)
        assert mine.data is None or mine.data.tobytes() == right.data.tobytes()


def test_a_file_with_a_hash_in_its_name_still_opens(tmp_path: Path) -> None:
    path = file_of(tmp_path, INT8, "m#0.tflite")
    assert load_model(path).content.tobytes() == INT8
    assert split_address(str(path)) == (str(path), None)
    bundle = file_of(tmp_path, TASK, "a#b.task")
    assert load_model(f"{bundle}#last").content.tobytes() == INT8
    assert split_address(f"{bundle}#x#y") == (str(bundle), "x#y")
    assert split_address("nothing#x") == ("nothing#x", None)


def test_a_model_with_files_after_it_is_a_model_and_a_bundle(tmp_path: Path) -> None:
    content = INT8 + zipped({"labels.txt": b"zero\none", "inner.tflite": FLOAT})
    path = file_of(tmp_path, content, "model.tflite")
    assert load_model(path).content.tobytes() == content
    assert load_model(f"{path}#0").content.tobytes() == content
    assert load_model(f"{path}#inner.tflite").content.tobytes() == FLOAT
    with pytest.raises(SectionError, match=r"section 1 \(labels.txt, file\) is no model"):
        load_model(f"{path}#labels.txt")


@pytest.mark.parametrize(
    ("content", "section", "message"),
    [
        (TASK, "", "has 3 models, and FILE#SECTION .*: inner.task#det.tflite, inner.*, last$"),
        (TASK, "#inner.task", "has 2 models, .*: det.tflite, more/b.tflite$"),
        (TASK, "#nothing", r"no section 'nothing'; the bundle has 0 \(inner.task, zip\), 1 \(MET"),
        (TASK, "#3", "no section '3'"),
        (TASK, "#-1", "no section '-1'"),
        (TASK, "#", "no section ''"),
        (TASK, "#METADATA", "is no model"),
        (TASK, "#last#x", "it is a model without files after it"),
        (TASK, "#METADATA#x", "it is no bundle"),
        (LM, "#7", "there is no section '7'"),
        (litertlm([(GENERIC, b"x", "")]), "", "has no model; it has 0"),
        (litertlm([(MODEL, INT8, "same"), (MODEL, FLOAT, "same")]), "#same", "sections 0, 1; give"),
        (INT8, "#0", "it is a model without files after it"),
    ],
)
def test_what_is_not_there_is_an_error_that_lists_what_is(
    tmp_path: Path, content: bytes, section: str, message: str
) -> None:
    path = f"{file_of(tmp_path, content)}{section}"
    with pytest.raises(SectionError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert isinstance(caught.value, ModelError | ValueError)


def test_two_sections_of_one_model_type_are_addressed_by_number(tmp_path: Path) -> None:
    path = file_of(tmp_path, litertlm([(MODEL, INT8, "same"), (MODEL, FLOAT, "same")]))
    assert load_model(f"{path}#1").content.tobytes() == FLOAT


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"Could not open '.*nothing\.task#x': No such file"):
        load_model(tmp_path / "nothing.task#x")


def nested(levels: int, method: int = zipfile.ZIP_STORED) -> bytes:
    content = INT8
    for _ in range(levels):
        content = zipped({"x": content}, method)
    return content


def test_bundles_in_bundles_have_an_end(tmp_path: Path) -> None:
    deepest = file_of(tmp_path, nested(MAX_DEPTH))
    assert load_model(deepest).content.tobytes() == INT8
    deeper = file_of(tmp_path, nested(MAX_DEPTH + 1))
    for section in ("", "#x", "#x" * (MAX_DEPTH + 1)):
        with pytest.raises(MalformedModelError, match=f"more than {MAX_DEPTH} bundles within"):
            load_model(f"{deeper}{section}")


def test_what_is_inflated_counts_toward_the_memory_limit(tmp_path: Path) -> None:
    zeros = INT8 + bytes(2 << 20)
    path = file_of(tmp_path, zipped({"m": zeros}, zipfile.ZIP_DEFLATED))
    assert load_model(f"{path}#m").content.tobytes() == zeros
    with pytest.raises(MalformedModelError, match=r"section 0 .* more than the limit of 2000000 b"):
        Interpreter(f"{path}#m", limits=Limits(memory=2_000_000))


def test_bombs_are_refused_by_what_they_say_before_they_are_inflated(tmp_path: Path) -> None:
    bomb = zipped({"m": INT8 + bytes(200 << 20)}, zipfile.ZIP_DEFLATED)
    twice = zipped({"a.zip": zipped({"b.zip": bomb}, 8)}, 8)
    tracemalloc.start()
    try:
        for content in (bomb, twice):
            with pytest.raises(MalformedModelError, match="64 times the file"):
                load_model(file_of(tmp_path, content))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_many_sections_of_nested_bundles_count_together(tmp_path: Path) -> None:
    part = zipped({str(number): b"" for number in range(2000)})
    content = zipped({f"{number}.zip": part for number in range(3)})
    with pytest.raises(MalformedModelError, match="the bundles have more than 4096 sections"):
        load_model(file_of(tmp_path, content))


def test_the_micro_runtime_opens_sections(tmp_path: Path) -> None:
    path = file_of(tmp_path, TASK)
    assert micro.Interpreter.from_file(f"{path}#last").get_input_details(0)["dtype"] == np.int8
    with pytest.raises(ArgumentError, match="Invalid model file path"):
        micro.Interpreter.from_file(f"{path}x#last")
