from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.array_files import read_npy, read_npz, write_npz
from delegraph.tools.given_inputs import GivenInput, given_inputs
from delegraph.tools.model_inputs import input_values
from support.tensor_details import details

TWO = [details(np.float32, 2, name="a"), details(np.int32, 2, name="b")]


def given(
    *words: str, entries: list[dict[str, Any]] = TWO, names: dict[str, int] | None = None
) -> list[GivenInput]:
    rng = np.random.default_rng(0)
    return given_inputs(
        words, entries, names or {}, lambda text, e, note: input_values(text, e, rng, note=note)
    )


def archive(folder: Path, **arrays: Any) -> str:
    path = folder / "all.npz"
    np.savez(path, **arrays)
    return str(path)


def values(found: list[GivenInput]) -> list[Any]:
    return [entry.values.tolist() for entry in found]


def test_an_archive_gives_all_inputs_by_their_names(tmp_path: Path) -> None:
    path = archive(tmp_path, b=np.int32([3, 4]), a=np.float32([1, 2]))
    found = given(path)
    assert values(found) == [[1, 2], [3, 4]]
    assert [entry.source for entry in found] == [path, path]


@pytest.mark.parametrize("names", [("0", "1"), ("left", "right"), ("a", "1")])
def test_arrays_are_named_as_inputs_are(tmp_path: Path, names: tuple[str, str]) -> None:
    path = archive(tmp_path, **{names[0]: np.float32([1, 2]), names[1]: np.int32([3, 4])})
    assert values(given(path, names={"left": 0, "right": 1})) == [[1, 2], [3, 4]]


def test_an_input_may_be_given_beside_an_archive(tmp_path: Path) -> None:
    path = archive(tmp_path, a=np.float32([1, 2]))
    assert values(given(path, "b=7")) == [[1, 2], [7, 7]]


def test_an_archive_of_one_array_goes_to_one_input(tmp_path: Path) -> None:
    path = archive(tmp_path, anything=np.float32([1, 2]))
    assert values(given(f"a={path}", "b=7")) == [[1, 2], [7, 7]]


@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({"a": [1.0, 2.0]}, (), r"holds no array for input 'b' \(int32 \[2\]\); add one, or give"),
        ({"a": [1.0, 2.0]}, ("a=1", "b=1"), "input 'a' is given twice: '.*all.npz' holds it too"),
        (
            {"aa": [1.0, 2.0]},
            (),
            r"holds 'aa' \(did you mean 'a'\?\), which is none of the inputs: 'a', 'b'",
        ),
        ({"a": [1, 2], "b": [1, 2]}, (), r"all.npz: a' holds int64, expected float32"),
        ({"a": [1.0, 2.0], "b": [0.5, 2]}, (), r"all.npz: b' holds float64, expected int32"),
        ({"a": [1.0], "b": [1, 2]}, (), r"all.npz: a' has shape \[1\], expected \[2\]"),
    ],
)
def test_arrays_that_do_not_fit_are_named(
    tmp_path: Path, arrays: dict[str, Any], words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        given(archive(tmp_path, **arrays), *words)


def test_several_arrays_for_one_input_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, a=np.float32([1, 2]), b=np.int32([3, 4]))
    with pytest.raises(ArgumentError, match=r"input 'a' .*holds 2 arrays; give it without the"):
        given(f"a={path}")


def test_two_archives_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'x.npz' and 'y.npz' both hold all inputs"):
        given("x.npz", "y.npz")


def test_a_name_that_is_almost_right_is_suggested() -> None:
    entries = [details(np.float32, 1, name="image"), details(np.float32, 1, name="mask")]
    with pytest.raises(ArgumentError, match=r"'imgae=1' \(did you mean 'image'\?\) names none of"):
        given("imgae=1", entries=entries)


STRING = details(np.bytes_, 1, name="text")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("hello world", b"hello world"),
        ("text=hello", b"hello"),
        ("1,2,3", b"1,2,3"),
        ("a=b", b"a=b"),
        ("grüße", "grüße".encode()),
        ("text:random", b"random"),
        ("text:x.npy", b"x.npy"),
    ],
)
def test_a_text_is_one_string(word: str, expected: bytes) -> None:
    assert values(given(word, entries=[STRING])) == [[expected]]


@pytest.mark.parametrize("shape", [(), (-1,), (1, 1)])
def test_one_string_has_the_inputs_rank(shape: tuple[int, ...]) -> None:
    (found,) = given("hello", entries=[details(np.bytes_, *shape, name="text")])
    assert found.values.shape == (1,) * len(shape)
    assert found.values.reshape(-1).tolist() == [b"hello"]


def test_lines_of_a_file_are_strings(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_bytes("one\ntwö\n".encode())
    entry = details(np.bytes_, -1, name="text")
    assert values(given(str(path), entries=[entry])) == [[b"one", "twö".encode()]]
    with pytest.raises(ArgumentError, match=r"texts.txt' has shape \[2\], expected \[1\]"):
        given(str(path), entries=[STRING])


def test_strings_come_from_an_array_of_bytes(tmp_path: Path) -> None:
    path = archive(tmp_path, text=np.array(["one"], "S"))
    assert values(given(path, entries=[STRING])) == [[b"one"]]


@pytest.mark.parametrize(
    ("word", "shape", "message"),
    [
        ("one", (3,), "takes 3 texts, and one is given: give a .txt file"),
        ("gone.txt", (1,), r"input 'text' .*'gone.txt' cannot be read: No such file"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(
    word: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        given(word, entries=[details(np.bytes_, *shape, name="text")])


def test_numbers_are_no_texts(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float32([1]))
    with pytest.raises(ArgumentError, match="holds float32, expected texts"):
        given(str(tmp_path / "x.npy"), entries=[STRING])


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = str(tmp_path / "out.npz")
    write_npz(path, ["x", "s"], [np.float32([1]), np.array([b"a", b"bc"], object)])
    found = read_npz(path)
    assert found["x"].tolist() == [1]
    assert found["s"].tolist() == [b"a", b"bc"]


def test_names_that_are_not_unique_are_numbered(tmp_path: Path) -> None:
    path = str(tmp_path / "out.npz")
    write_npz(path, ["x", "x"], [np.float32([1]), np.float32([2])])
    assert {name: a.tolist() for name, a in read_npz(path).items()} == {
        "output_0": [1],
        "output_1": [2],
    }


def test_a_bfloat16_array_survives_a_file(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path = str(tmp_path / "x.npz")
    write_npz(path, ["x"], [np.array([1.5], ml_dtypes.bfloat16)])
    (found,) = given(path, entries=[details(ml_dtypes.bfloat16, 1, name="x")])
    assert found.values.dtype == ml_dtypes.bfloat16
    assert found.values.tolist() == [1.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read: No data left in file"),
        (b"PK\x03\x04 no more", "cannot be read: File is not a zip file"),
        (b"hello", "cannot be read: it is no file of NumPy, or holds Python objects"),
    ],
)
def test_files_of_another_kind_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    for read, ending in ((read_npz, ".npz"), (read_npy, ".npy")):
        path = tmp_path / f"x{ending}"
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=message):
            read(str(path))


def test_arrays_under_the_wrong_ending_are_told_the_right_one(tmp_path: Path) -> None:
    with open(tmp_path / "x.npz", "wb") as file:
        np.save(file, np.float32([1]))
    with open(tmp_path / "x.npy", "wb") as file:
        np.savez(file, x=np.float32([1]))
    with pytest.raises(ArgumentError, match=r"is one array; name it \.npy"):
        read_npz(str(tmp_path / "x.npz"))
    with pytest.raises(ArgumentError, match=r"holds several arrays; name it \.npz"):
        read_npy(str(tmp_path / "x.npy"))
