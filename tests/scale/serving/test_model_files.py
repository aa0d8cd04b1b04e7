"""Models are found where KServe and Triton have them, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.scale.serving.model_files import ModelFile, given_models, models_in, name_of


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return str(path)


def test_both_layouts_are_found_with_the_newest_version_last(tmp_path: Path) -> None:
    flat = put(tmp_path / "flat.tflite")
    numbered = [put(tmp_path / "net" / number / "model.tflite") for number in ("2", "10", "1")]
    two, ten, one = numbered
    assert models_in(str(tmp_path)) == {
        "flat": (ModelFile("flat", "", flat),),
        "net": tuple(
            ModelFile("net", number, path) for number, path in [("1", one), ("2", two), ("10", ten)]
        ),
    }


@pytest.mark.parametrize(
    "path",
    [
        ".hidden.tflite",
        ".hidden/1/model.tflite",
        "README.md",
        "docs/guide/model.tflite",
        "net/01/model.tflite",
        "net/-1/model.tflite",
        "net/latest/model.tflite",
    ],
)
def test_other_files_are_no_models(tmp_path: Path, path: str) -> None:
    put(tmp_path / path)
    assert models_in(str(tmp_path)) == {}


@pytest.mark.parametrize(
    "name", ["-x", "a b", "a%2e", "a?b", "a#b", "a:b", "a\\b", 'a"b', "a\nb", "x" * 129]
)
def test_a_name_that_could_be_read_otherwise_is_an_error(tmp_path: Path, name: str) -> None:
    put(tmp_path / f"{name}.tflite")
    ((file,),) = models_in(str(tmp_path)).values()
    assert "cannot be served: expected up to 128 letters, digits" in file.error
    assert file.name.isprintable()


def test_a_name_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.tflite")))
    ((file,),) = models_in(str(tmp_path)).values()
    assert file.error
    assert file.name.encode() == rb"a\udcff"


def test_letters_of_any_language_are_served(tmp_path: Path) -> None:
    put(tmp_path / "größe.tflite")
    assert [file.error for (file,) in models_in(str(tmp_path)).values()] == [""]


def test_what_is_not_a_file_is_an_error_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tflite")
    (tmp_path / "net" / "1").mkdir(parents=True)
    found = models_in(str(tmp_path))
    assert all("is not a file" in found[name][0].error for name in ("pipe", "net"))


def test_two_models_of_one_name_are_an_error(tmp_path: Path) -> None:
    put(tmp_path / "net.tflite")
    put(tmp_path / "net" / "1" / "model.tflite")
    ((file,),) = models_in(str(tmp_path)).values()
    assert file.error == "net.tflite and the folder net have the same name: rename one"


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"folder .*absent' cannot be read: No such file"):
        models_in(str(tmp_path / "absent"))


def test_files_have_the_names_of_their_paths() -> None:
    assert list(given_models(["a/x.tflite", "b/y.zip#one"])) == ["x", "y.zip_one"]
    with pytest.raises(ArgumentError, match="would both be served as 'x': rename one"):
        given_models(["a/x.tflite", "b/x.tflite"])


@pytest.mark.parametrize(
    ("path", "name"), [("../..", "model"), ("a/..tflite", "model"), ("my net.tflite", "my_net")]
)
def test_a_name_of_a_file_never_steers_a_path(path: str, name: str) -> None:
    assert name_of(path) == name


def test_the_stamp_tells_a_file_that_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.tflite"
    file = ModelFile("x", "", put(path))
    before = file.stamp()
    (tmp_path / "new").write_bytes(b"")
    (tmp_path / "new").rename(path)
    assert before
    assert file.stamp() != before
    path.unlink()
    assert file.stamp() == ()
