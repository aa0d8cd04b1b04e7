"""Constants in other files: mapped, from allowed places only, and kept when models are written."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter, Limits
from delegraph.errors import ExternalBufferError, MalformedModelError
from delegraph.graph.associated_files import AssociatedFiles
from delegraph.graph.external_buffers import self_contained
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.model_files import mapped_file
from delegraph.micro import runtime as micro
from delegraph.native import LiteRtInterpreter
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.tools.offline_plan import with_offline_plan
from support.bundles import FLOAT, MODEL, WEIGHTS, file_of, litertlm, zipped
from support.external_buffers import FIRST_ID, with_external_buffers

CONTENT, DATA = with_external_buffers(FLOAT)
PIXELS = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)


def answer(interpreter: Any) -> NDArray[Any]:
    with interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], PIXELS)
        interpreter.invoke()
        found: NDArray[Any] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        return found


RIGHT = answer(Interpreter(model_content=FLOAT, delegates=[]))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    file_of(folder, DATA, "weights.bin")
    return file_of(folder, CONTENT, "model.tflite")


def test_constants_of_the_file_beside_the_model_are_mapped(model: Path) -> None:
    assert len(CONTENT) < 40_000
    loaded = load_model(model)
    constants = [t for t in loaded.subgraphs[0].tensors if t.external_buffer]
    assert len(constants) > 1
    for tensor in constants:
        assert tensor.data is not None
        file = mapped_file(tensor.data)
        assert file is not None
        assert os.path.basename(str(file.path)) == "weights.bin"
    np.testing.assert_array_equal(answer(Interpreter(model, delegates=[])), RIGHT)
    np.testing.assert_allclose(answer(Interpreter(model)), RIGHT, rtol=1e-3)


def test_a_zip_has_them_in_a_member_beside_the_model(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = file_of(tmp_path, zipped({"a/m": CONTENT, "a/weights.bin": DATA}, method))
        np.testing.assert_array_equal(answer(Interpreter(path, delegates=[])), RIGHT)
    path = file_of(tmp_path, zipped({"a/m": CONTENT, "weights.bin": DATA}))
    with pytest.raises(ExternalBufferError, match="the bundle has no member 'a/weights"):
        load_model(path)


def test_a_litertlm_file_has_them_in_the_section_of_the_same_model_type(tmp_path: Path) -> None:
    others = (WEIGHTS, b"x", "b"), (MODEL, FLOAT, "b")
    path = file_of(tmp_path, litertlm([(MODEL, CONTENT, "a"), *others, (WEIGHTS, DATA, "a")]))
    np.testing.assert_array_equal(answer(Interpreter(f"{path}#a", delegates=[])), RIGHT)
    assert all(mapped_file(part) for part in load_model(f"{path}#a").external_buffers.files)
    path = file_of(tmp_path, litertlm([(MODEL, CONTENT, "a"), *others]))
    with pytest.raises(ExternalBufferError, match="no section TFLiteWeights of model type 'a'"):
        load_model(f"{path}#a")
    twice = [(WEIGHTS, DATA, "a")] * 2
    path = file_of(tmp_path, litertlm([(MODEL, CONTENT, "a"), *twice]))
    with pytest.raises(ExternalBufferError, match="2 times the section TFLiteWeights"):
        load_model(f"{path}#a")


def test_the_builder_packs_a_model_with_its_weights(tmp_path: Path) -> None:
    builder: Any = pytest.importorskip("litert_lm_builder.litertlm_builder")
    made, kind = builder.LitertLmFileBuilder(), builder.TfLiteModelType.PREFILL_DECODE
    made.add_tflite_model(str(file_of(tmp_path, CONTENT, "m.tflite")), kind)
    made.add_tflite_weights(str(file_of(tmp_path, DATA, "w.bin")), kind)
    path = tmp_path / "built.litertlm"
    with open(path, "wb") as stream:
        made.build(stream)
    np.testing.assert_array_equal(answer(Interpreter(path, delegates=[])), RIGHT)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"packing": "4bit"}, ExternalBufferError, "has the packing '4bit', expected 'unpacked'"),
        ({"offset": len(DATA)}, ExternalBufferError, f"weights.bin', which has {len(DATA)} bytes"),
        ({"offset": 2**64 - 1}, ExternalBufferError, "which has"),
        ({"length": 4}, MalformedModelError, "its constant has 4 bytes, shape .* takes"),
        ({"group": 1}, MalformedModelError, "is in group 1; there are 1"),
        ({"id": FIRST_ID + 1}, MalformedModelError, f"two .* have the id {FIRST_ID + 1}"),
        ({"id": 7}, MalformedModelError, f"the model has no external buffer {FIRST_ID}"),
    ],
)
def test_wrong_buffers_are_refused(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    content, data = with_external_buffers(FLOAT, **changes)
    file_of(tmp_path, data, "weights.bin")
    path = file_of(tmp_path, content, "model.tflite")
    with pytest.raises(error, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_packing_may_be_left_out(tmp_path: Path) -> None:
    content, data = with_external_buffers(FLOAT, packing=None)
    file_of(tmp_path, data, "weights.bin")
    path = file_of(tmp_path, content, "model.tflite")
    np.testing.assert_array_equal(answer(Interpreter(path, delegates=[])), RIGHT)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = file_of(tmp_path, CONTENT, "model.tflite")
    with pytest.raises(ExternalBufferError, match=r"group 'weights\.bin': no such file"):
        load_model(path)
    file_of(tmp_path, b"", "weights.bin")
    with pytest.raises(ExternalBufferError, match=r"cannot be read: .* is empty"):
        load_model(path)
    (tmp_path / "weights.bin").unlink()
    os.mkfifo(tmp_path / "weights.bin")
    with pytest.raises(ExternalBufferError, match="is no file"):
        load_model(path)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../w", "a/../../w", "..\\w", "C:\\w", "https://x/w", "w\0"]
)
def test_only_names_of_files_beside_the_model_are_names(tmp_path: Path, name: str) -> None:
    content, _ = with_external_buffers(FLOAT, name)
    with pytest.raises(ExternalBufferError, match="is no name of a file beside the model"):
        load_model(file_of(tmp_path, content, "model.tflite"))


def test_no_link_leads_out_of_the_folder_without_the_users_word(
    model: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (model.parent / "weights.bin").rename(elsewhere / "weights.bin")
    (model.parent / "weights.bin").symlink_to(elsewhere / "weights.bin")
    with pytest.raises(ExternalBufferError, match=r"outside of the model's folder; .*weights_dir="):
        load_model(model)
    granted = Limits(weights_dir=elsewhere)
    np.testing.assert_array_equal(answer(Interpreter(model, delegates=[], limits=granted)), RIGHT)
    (model.parent / "weights.bin").unlink()
    np.testing.assert_array_equal(answer(Interpreter(model, delegates=[], limits=granted)), RIGHT)
    beside = tmp_path / "models2"
    beside.mkdir()
    (model.parent / "weights.bin").symlink_to(file_of(beside, DATA, "weights.bin"))
    with pytest.raises(ExternalBufferError, match="outside"):
        load_model(model)


def test_links_inside_of_the_folder_are_followed(model: Path) -> None:
    (model.parent / "weights.bin").rename(model.parent / "w2")
    (model.parent / "weights.bin").symlink_to("w2")
    assert load_model(model).external_buffers.files


def test_buffers_do_not_describe_more_than_their_files_hold(tmp_path: Path) -> None:
    record = read_model(np.frombuffer(FLOAT, np.uint8))
    (graph,) = record.subgraphs or ()
    tensors = tuple(
        tables.Tensor(shape=(1000,), type=TensorType.UINT8, external_buffer=index + 1)
        for index in range(20)
    )
    buffers = tuple(tables.ExternalBuffer(id=index + 1, length=1000) for index in range(20))
    changed = record.replace(
        subgraphs=(graph, graph.replace(tensors=tensors, operators=(), inputs=(), outputs=())),
        external_buffers=buffers,
        external_buffer_groups=(tables.ExternalBufferGroup(name="w"),),
    )
    file_of(tmp_path, bytes(1000), "w")
    with pytest.raises(MalformedModelError, match="20000 bytes together, and their files 1000"):
        load_model(file_of(tmp_path, write_model(changed), "model.tflite"))


def test_bytes_alone_have_no_place() -> None:
    with pytest.raises(ExternalBufferError, match=r"in the file 'weights\.bin', .* give the path"):
        parse_model(CONTENT)


def test_written_models_have_the_constants_inside(model: Path) -> None:
    loaded = load_model(model)
    content = self_contained(loaded).tobytes()
    np.testing.assert_array_equal(answer(Interpreter(model_content=content, delegates=[])), RIGHT)
    planned = with_offline_plan(loaded, {})
    np.testing.assert_array_equal(answer(Interpreter(model_content=planned, delegates=[])), RIGHT)
    assert micro.Interpreter.from_file(model).get_input_details(0)["dtype"] == np.float32


def test_written_models_keep_their_associated_files(model: Path) -> None:
    with zipfile.ZipFile(model, "a") as archive:
        archive.writestr("labels.txt", "a")
    content = self_contained(load_model(model))
    assert AssociatedFiles(content).read("labels.txt") == b"a"


OFFICIAL = """
import sys
import numpy as np
from ai_edge_litert.compiled_model import CompiledModel
model = CompiledModel.from_file(sys.argv[1])
inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
inputs[0].write(np.linspace(0, 1, 64, dtype=np.float32))
model.run_by_index(0, inputs, outputs)
print("answer", *outputs[0].read(10, np.float32).tolist())
"""


def test_the_official_runtime_loads_the_same(model: Path) -> None:
    pytest.importorskip("ai_edge_litert.compiled_model")
    done = subprocess.run(
        [sys.executable, "-c", OFFICIAL, str(model)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    found = np.float32(line.split()[1:])
    np.testing.assert_allclose(found, RIGHT[0], rtol=1e-3)


def test_the_official_runtime_gets_them_inside(model: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    with LiteRtInterpreter(model, delegates=[]) as interpreter:
        np.testing.assert_allclose(answer(interpreter), RIGHT, rtol=1e-3)


def test_a_digest_changes_with_the_other_file(model: Path) -> None:
    with Interpreter(model, delegates=[]) as interpreter:
        first = interpreter.session.model_digest
    changed = bytearray(DATA)
    changed[100] ^= 1
    file_of(model.parent, bytes(changed), "weights.bin")
    with Interpreter(model, delegates=[]) as interpreter:
        assert interpreter.session.model_digest != first
