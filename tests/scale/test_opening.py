"""The same rows from every kind of data, into every kind of output."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Predictor
from delegraph.errors import ArgumentError
from delegraph.scale.opening import open_source
from delegraph.scale.outputs import FORMATS, output_format
from delegraph.scale.sources import Rows, Source
from delegraph.tools.evaluation.picture_files import PictureFile
from delegraph.tools.evaluation.preprocessing import Preprocessing
from delegraph.tools.pictures import PictureOptions

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"
INPUTS = Predictor(DIGITS).input_columns()
IMAGES = np.random.default_rng(0).integers(-128, 128, (5, 8, 8, 1)).astype(np.int8)
NAMES = np.array(["a", "bb", "c", "d", "e"])


def written(path: Path) -> str:
    """Write the images in the format of a path's ending; a folder without one."""
    if path.suffix == ".npz":
        np.savez(path, image=IMAGES, name=NAMES)
    elif path.suffix == ".jsonl":
        rows = [
            {"image": image.tolist(), "name": str(name)}
            for image, name in zip(IMAGES, NAMES, strict=True)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        lines = [
            f'"{image.tolist()}",{name}\r\n' for image, name in zip(IMAGES, NAMES, strict=True)
        ]
        path.write_text("\ufeffimage,name\r\n" + "".join(lines), newline="")
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs PyArrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pyarrow.table({"image": IMAGES.tolist(), "name": NAMES.tolist()})
        parquet.write_table(table, path, row_group_size=2)
    else:
        path.mkdir()
        for image, name in zip(IMAGES, NAMES, strict=True):
            np.save(path / f"{name}.npy", image)
    return str(path)


def all_rows(source: Source, step: int) -> list[Rows]:
    return [source.read(start, start + step) for start in range(0, len(source), step)]


@pytest.mark.parametrize("name", ["data.npz", "data.jsonl", "data.csv", "data.parquet", "folder"])
@pytest.mark.parametrize("step", [2, 5])
def test_every_source_gives_the_same_rows(name: str, step: int, tmp_path: Path) -> None:
    import pickle

    source: Source = pickle.loads(pickle.dumps(open_source(written(tmp_path / name), INPUTS)))
    assert len(source) == 5
    pieces = all_rows(source, step)
    images = np.concatenate([piece.given["image"] for piece in pieces]).astype(np.int8)
    np.testing.assert_array_equal(images, IMAGES)
    column = "file" if name == "folder" else "name"
    names = [Path(str(n)).stem for piece in pieces for n in piece.passed[column]]
    assert names == NAMES.tolist()
    assert source.identity() == open_source(str(tmp_path / name), INPUTS).identity()


def test_pictures_are_prepared_and_broken_ones_told(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    (folder / "sub").mkdir(parents=True)
    pillow.fromarray(np.full((16, 16), 200, np.uint8)).save(folder / "sub" / "a.png")
    (folder / "b.jpg").write_bytes(b"no picture")
    (folder / "notes.txt").write_text("no row")
    rows = open_source(str(folder), INPUTS).read(0, 9)
    assert rows.passed["file"].tolist() == ["b.jpg", "sub/a.png"]
    assert "no kind that Pillow knows" in rows.unread[0]
    np.testing.assert_array_equal(rows.given["image"], np.full((1, 8, 8, 1), 72))


def test_a_picture_is_prepared_as_evaluate_does_with_the_options_that_docs_name(
    tmp_path: Path,
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30), np.uint8)
    pillow.fromarray(pixels).convert("RGB").save(tmp_path / "a.png")
    shape = np.array([1, 8, 8, 3], np.int32)
    details = {"name": "x", "index": 0, "shape": shape, "shape_signature": shape}
    details |= {"dtype": np.int8, "quantization": (0.5, 0)}
    how = Preprocessing("tflite", "", resize="bilinear", upright=True)  # --crop none
    rows = open_source(str(tmp_path), {"x": details}).read(0, 1)
    expected = how.input(PictureFile(str(tmp_path / "a.png")), details)
    np.testing.assert_array_equal(rows.given["x"], expected)


def test_lines_that_are_no_rows_are_told(tmp_path: Path) -> None:
    good = {"image": IMAGES[0].tolist(), "id": 7}
    bad = [
        "nonsense",
        '{"id": "\udce4"}',
        "[1]",
        json.dumps({**good, "id": 8, "image": [1, 2]}),
        json.dumps({"id": 9}),
        json.dumps({**good, "image": [[1], [2, 3]]}),
        json.dumps({**good, "image": None}),
    ]
    path = tmp_path / "data.jsonl"
    text = "\n".join([json.dumps(good), *bad, json.dumps(good)]) + "\n"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    rows = open_source(str(path), INPUTS).read(0, 100)
    assert len(rows.given["image"]) == 2
    assert rows.passed["id"].tolist() == [7, None, None, None, 8, 9, 7, 7, 7]
    reasons = [rows.unread[place] for place in range(1, 8)]
    assert all(f"line {place}: " in reason for place, reason in enumerate(reasons, 2))
    for text, reason in zip(
        ["is not JSON: Expecting value at character 1", "is not JSON: byte 9 is not UTF-8",
         "is list, expected an object", "shape [2], expected [8, 8, 1]",
         "has no 'image'; its keys are id", "inhomogeneous", "'image' is null"],
        reasons,
        strict=True,
    ):  # fmt: skip
        assert text in reason


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "data.txt",
            b"1",
            "neither a folder nor a file ending in .npy, .npz, .parquet, .jsonl, .csv",
        ),
        ("data.csv", b"image,image\n", "has more than one column 'image'"),
        ("data.csv", b'image\n"[1, 2\n', r"line 2: unexpected end of data"),
        ("data.csv", b"image\n", "has no rows"),
        (
            "data.csv",
            b"a,b\n1,2\n",
            "it has 2 columns: a, b; .*FIRST:LAST. 64 columns with one number each",
        ),
        ("data.csv", b"0.5,2\n", "2 columns: 0.5, 2; .*; the first line has numbers in place of"),
        ("data.jsonl", b"", "is empty"),
        ("data.jsonl", b"[\n]\n", "line 1: is not JSON: .*; write a JSON object in each line"),
        ("data.jsonl", b"{}\n", "has no column 'image'"),
        ("data.npz", b"1", "cannot be read"),
        ("data.parquet", b"1", "cannot be read|needs? PyArrow"),
        ("folder/notes.txt", b"", r"neither pictures nor .npy files \(1 file skipped: .txt\)"),
    ],
)
def test_data_that_cannot_be_used(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=message):
        open_source(str(path.parent if "/" in name else path), INPUTS)


@pytest.mark.parametrize("name", ["data.npz", "data.jsonl", "data.csv", "data.parquet"])
def test_an_input_without_column_is_told_with_the_columns(name: str, tmp_path: Path) -> None:
    inputs = {"images": INPUTS["image"]}
    message = r"column 'images' \(did you mean 'image'\?\); it has 2 columns: image, name; inputs="
    with pytest.raises(ArgumentError, match=message):
        open_source(written(tmp_path / name), inputs).read(0, 2)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("id,v\na,1\n", "; inputs={x: v} takes the only one that fits"),
        ("id,v\n1,0.5\n", "; inputs={x: v} takes the only one of real numbers"),
        ("0.5,7\n0.25,8\n", "; the first line has numbers in place of names"),
        ("id,v\n1,2\n", " names another"),
        ("id,v\n0.5,0.1\n", " names another"),
        ("id,v\n", " names another"),
    ],
)
def test_the_only_column_that_fits_is_told(text: str, advice: str, tmp_path: Path) -> None:
    inputs = Predictor(DIGITS.with_name("sines.tflite")).input_columns()
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ArgumentError, match=f"{advice}$"):
        open_source(str(tmp_path / "data.csv"), inputs)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.csv", "x\n9007199254740993\n1.0\n"),
        ("data.jsonl", '{"x": 9007199254740993}\n{"x": 1.0}\n'),
    ],
)
def test_large_integers_stay_exact_beside_a_real_number(
    name: str, text: str, tmp_path: Path
) -> None:
    details = {**INPUTS["image"], "dtype": np.int64, "shape": np.int32([1]), "name": "x"}
    details |= {"shape_signature": np.int32([1]), "quantization": (0.0, 0)}
    (tmp_path / name).write_text(text)
    found = open_source(str(tmp_path / name), {"x": details}).read(0, 2).given["x"]
    assert found.reshape(-1).tolist() == [9007199254740993, 1]


@pytest.mark.parametrize("name", ["data.npz", "data.jsonl", "data.parquet"])
def test_consecutive_columns_are_an_input(name: str, tmp_path: Path) -> None:
    numbers = IMAGES.reshape(5, 64)
    columns = {"id": np.arange(5), **{f"p{i}": numbers[:, i] for i in range(64)}}
    if name.endswith(".jsonl"):
        rows = [{key: int(values[row]) for key, values in columns.items()} for row in range(5)]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        if name.endswith(".parquet"):
            pytest.importorskip("pyarrow", reason="Parquet needs PyArrow")
        output_format(name).write(str(tmp_path / name), columns)
    rows = open_source(str(tmp_path / name), {"p0:p63": INPUTS["image"]}).read(0, 5)
    np.testing.assert_array_equal(rows.given["p0:p63"].astype(np.int8), IMAGES)
    assert {key: values.tolist() for key, values in rows.passed.items()} == {"id": [*range(5)]}
    many = "columns: id, p0, p1, p2, p3, p4, p5, p6, p7, p8, ..., p63; inputs={image: COLUMN}"
    with pytest.raises(ArgumentError, match=many):
        open_source(str(tmp_path / name), INPUTS)


def test_an_array_is_the_only_input(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", IMAGES)
    rows = open_source(str(tmp_path / "data.npy"), INPUTS).read(1, 3)
    np.testing.assert_array_equal(rows.given["image"], IMAGES[1:3])
    with pytest.raises(ArgumentError, match=r"a .npy file has one input, and the model has 2"):
        open_source(str(tmp_path / "data.npy"), {**INPUTS, "b": INPUTS["image"]})


def test_data_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="is not there"):
        open_source(str(tmp_path / "nothing.npz"), INPUTS)
    two = {"a": INPUTS["image"], "b": INPUTS["image"]}
    with pytest.raises(ArgumentError, match=r"a folder has one input, and the model has 2"):
        open_source(str(tmp_path), two)


# -- outputs ---------------------------------------------------------------------------------------

PIECES: list[dict[str, Any]] = [
    {
        "row": np.arange(2),
        "file": np.array(["a", None], object),
        "y": np.array([[1, np.nan], [0.1, -np.inf]], np.float32),
        "text": np.array([b"\xc3\xa9", b"x"]),
    },
    {
        "row": np.array([2]),
        "file": np.array(["longer"], object),
        "y": np.array([[3, 4]], np.float32),
        "text": np.array([b"long"]),
    },
]


@pytest.mark.parametrize("suffix", FORMATS)
def test_pieces_become_one_file(suffix: str, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs PyArrow")
    kind = output_format(f"out{suffix}")
    paths = [str(tmp_path / f"{number}{suffix}") for number in range(2)]
    for path, columns in zip(paths, PIECES, strict=True):
        kind.write(path, columns)
    whole = tmp_path / f"whole{suffix}"
    kind.join(paths, str(whole))
    names, y, files = _read(whole)
    assert names == ["row", "file", "y", "text"]
    assert files == ["a", "" if suffix in (".npz", ".csv") else None, "longer"]
    expected = np.concatenate([piece["y"] for piece in PIECES])
    if suffix in (".jsonl", ".csv"):
        expected[~np.isfinite(expected)] = np.nan
    np.testing.assert_array_equal(np.array(y, np.float32), expected)


def _read(path: Path) -> tuple[list[str], Any, list[Any]]:
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return arrays.files, arrays["y"], arrays["file"].tolist()
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [row["text"] for row in rows] == ["é", "x", "long"]
        return list(rows[0]), [row["y"] for row in rows], [row["file"] for row in rows]
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
        assert [row["text"] for row in table] == ["é", "x", "long"]
        return list(table[0]), [json.loads(row["y"]) for row in table], [r["file"] for r in table]
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    return table.column_names, table["y"].to_pylist(), table["file"].to_pylist()


def test_rows_of_other_shapes_are_no_npz(tmp_path: Path) -> None:
    ragged = np.empty(2, object)
    ragged[:] = [np.zeros(2), np.zeros(3)]
    kind = output_format("out.npz")
    with pytest.raises(ArgumentError, match=r"another shape in each row.*write .parquet"):
        kind.write(str(tmp_path / "0.npz"), {"y": ragged})
    for rows in (2, 3):
        kind.write(str(tmp_path / f"{rows}.npz"), {"y": np.zeros((1, rows))})
    with pytest.raises(ArgumentError, match=r"rows of the shapes \(2,\), \(3,\)"):
        kind.join([str(tmp_path / "2.npz"), str(tmp_path / "3.npz")], str(tmp_path / "out.npz"))
    output_format("out.jsonl").write(str(tmp_path / "0.jsonl"), {"y": ragged})
    assert (tmp_path / "0.jsonl").read_text().splitlines()[1] == '{"y": [0.0, 0.0, 0.0]}'


def test_times_are_texts_in_json(tmp_path: Path) -> None:
    times = np.array([datetime(2020, 1, 2), None], object)
    FORMATS[".jsonl"].write(str(tmp_path / "a.jsonl"), {"t": times})
    assert (tmp_path / "a.jsonl").read_text() == '{"t": "2020-01-02 00:00:00"}\n{"t": null}\n'


def test_values_that_npz_cannot_hold_are_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"column .n. has values that \.npz cannot hold"):
        FORMATS[".npz"].write(str(tmp_path / "a.npz"), {"n": np.array([1, "a", None], object)})


def test_an_output_of_another_kind() -> None:
    with pytest.raises(ArgumentError, match=r"'out.txt': expected a file ending in .jsonl, .csv"):
        output_format("out.txt")


def test_a_value_out_of_range_is_a_bad_row_of_a_table(tmp_path: Path) -> None:
    images = IMAGES.astype(np.int64)
    images[3, 0, 0, 0] = 300
    np.savez(tmp_path / "data.npz", image=images)
    rows = open_source(str(tmp_path / "data.npz"), INPUTS).read(0, 5)
    np.testing.assert_array_equal(rows.given["image"], IMAGES[[0, 1, 2, 4]])
    assert list(rows.unread) == [3]
    assert "300, which is out of the range" in rows.unread[3]


def test_texts_of_json_lines_are_rows(tmp_path: Path) -> None:
    details = {"name": "t", "dtype": np.bytes_, "quantization": (0.0, 0), "index": 0}
    shape = np.array([1], np.int32)
    (tmp_path / "t.jsonl").write_text('{"t": "a b"}\n{"t": null}\n{"t": ["c"]}\n')
    inputs = {"t": details | {"shape": shape, "shape_signature": shape}}
    rows = open_source(str(tmp_path / "t.jsonl"), inputs).read(0, 3)
    assert [text for row in rows.given["t"] for text in np.ravel(row)] == ["a b", "c"]
    assert rows.unread == {1: "line 2: 't' is null"}


def test_a_new_key_of_json_lines_is_found_among_texts_and_objects(tmp_path: Path) -> None:
    inputs = Predictor(DIGITS.with_name("sines.tflite")).input_columns()
    texts = ['{"x": 1, "n": "m"}', '{"x": 2, "n": {"m": 1}}', r'{"x": 3, "n": "\": ", "m" : 5}']
    (tmp_path / "data.jsonl").write_text("\n".join(texts))
    passed = open_source(str(tmp_path / "data.jsonl"), inputs).read(0, 3).passed
    assert {name: values.tolist() for name, values in passed.items()} == {
        "n": ["m", {"m": 1}, '": '],
        "m": [None, None, 5],
    }


def test_lines_without_a_new_key_are_parsed_only_when_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda line: parsed.append(line) or loads(line))
    inputs = {"image": INPUTS["image"]}
    source = open_source(written(tmp_path / "data.jsonl"), inputs)
    assert len(parsed) == 1
    source.read(0, 5)
    assert len(parsed) == 1 + 5


def test_scalars_and_lists_of_json_lines_have_one_shape(tmp_path: Path) -> None:
    inputs = Predictor(DIGITS.with_name("sines.tflite")).input_columns()
    texts = ['{"x": 1}', '{"x": [2]}', '{"x": [[3]]}', '{"x": []}', '{"x": [4, 5]}']
    (tmp_path / "data.jsonl").write_text("\n".join(texts))
    rows = open_source(str(tmp_path / "data.jsonl"), inputs).read(0, 5)
    assert rows.given["x"].tolist() == [1, 2, 3]
    assert [*rows.unread] == [3, 4]


@pytest.mark.parametrize("last", [2, 2.0])
@pytest.mark.parametrize("name", ["data.npz", "data.jsonl", "data.csv", "data.parquet"])
def test_one_real_number_makes_the_whole_column_real(
    name: str, last: float, tmp_path: Path
) -> None:
    shape = np.array([1, 1], np.int32)
    details = {"name": "x", "index": 0, "shape": shape, "shape_signature": shape}
    inputs = {"x": details | {"dtype": np.int8, "quantization": (0.5, -3)}}
    path, values = tmp_path / name, [1, 1, last]
    if name == "data.npz":
        np.savez(path, x=values)
    elif name == "data.parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs PyArrow")
        table = pyarrow.table({"x": [[value] for value in np.array(values).tolist()]})
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif name == "data.csv":
        path.write_text("x,note\n1,0.5\n[1],none\n" + f"{last},\nnone.1,\nnan,\n")
    else:
        path.write_text('{"x": 1, "t": "0.5"}\n{"x": [1]}\n' + f'{{"x": {last}}}\n{{"x": NaN}}\n')
    source = open_source(str(path), inputs)
    is_real = isinstance(last, float)
    read = [source.read(i, i + 1).given["x"].astype(np.int8).item() for i in (0, 1)]
    if name not in ("data.npz", "data.parquet"):  # other sources give the predictor's own numbers
        assert read == ([-1, -1] if is_real else [1, 1])
    words = "real values, quantized" if is_real else "whole numbers, read as stored integers; "
    assert source.read_as()["x"].startswith(words)


@pytest.mark.parametrize("name", ["data.npz", "data.jsonl", "data.csv", "data.parquet"])
def test_a_column_may_have_the_name_of_the_tensor(name: str, tmp_path: Path) -> None:
    details = {**INPUTS["image"], "name": "photo"}
    assert details["tensor_name"] == "image"
    rows = open_source(written(tmp_path / name), {"photo": details}).read(0, 5)
    np.testing.assert_array_equal(rows.given["photo"].astype(np.int8), IMAGES)
    assert [*rows.passed] == ["name"]
    with pytest.raises(ArgumentError, match="has no column 'other'"):
        open_source(str(tmp_path / name), {"other": details}).read(0, 5)


def test_keys_of_json_lines_are_optional_and_blank_lines_no_rows(tmp_path: Path) -> None:
    image = IMAGES[0].tolist()
    rows = [{"image": image}, {"image": image, "n": 1}, {"n": "a", "image": image, "k": [2]}]
    texts = [json.dumps(row) for row in rows]
    (tmp_path / "data.jsonl").write_text(f"\n{texts[0]}\n \n{texts[1]}\n\n{texts[2]}\n{{")
    source = open_source(str(tmp_path / "data.jsonl"), INPUTS)
    found = source.read(0, 4)
    assert len(source) == 4
    assert {name: values.tolist() for name, values in found.passed.items()} == {
        "n": [None, 1, "a", None],
        "k": [None, None, [2], None],
    }
    assert found.unread == {
        3: "line 7: is not JSON: Expecting property name enclosed in double quotes at character 2"
    }
    assert source.read(1, 3).passed["n"].tolist() == [1, "a"]


def test_options_that_fit_no_picture_are_an_error(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("L", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(ArgumentError, match=r"shape \[-?1, 8, 8, 1\] and takes no picture.*nchw"):
        open_source(str(tmp_path), INPUTS, picture=PictureOptions(layout="nchw"))
    with pytest.raises(ArgumentError, match="of 2 channels, the input has 1"):
        open_source(str(tmp_path), INPUTS, picture=PictureOptions(mean=(1, 2)))


def test_missing_numbers_of_parquet_are_bad_rows_and_leave_integers_whole(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs PyArrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"x": [0.5, None, 2.0], "k": [1, 2, None]})
    parquet.write_table(table, tmp_path / "data.parquet")
    inputs = Predictor(DIGITS.with_name("sines.tflite")).input_columns()
    rows = open_source(str(tmp_path / "data.parquet"), inputs).read(0, 3)
    assert rows.given["x"].tolist() == [0.5, 2.0]
    assert rows.unread == {
        1: "input 'x' (float32 [1]): 'x' holds a missing value, expected float32"
    }
    assert [str(each) for each in rows.passed["k"]] == ["1", "2", "None"]


def test_a_row_group_of_parquet_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(written(tmp_path / "data.parquet"), INPUTS)  # groups of 2, 2 and 1 rows
    kind = pytest.importorskip("pyarrow.parquet").ParquetFile
    read, groups = kind.read_row_groups, list[Any]()
    monkeypatch.setattr(
        kind, "read_row_groups", lambda self, each: groups.append(each) or read(self, each)
    )
    assert [len(rows.passed["name"]) for rows in all_rows(source, 1)] == [1] * 5
    assert groups == [[0], [1], [2]]


def test_a_column_of_numbers_is_rows_of_one_element(tmp_path: Path) -> None:
    shapes = {"shape": np.array([1, 1]), "shape_signature": np.array([-1, 1])}
    np.savez(tmp_path / "numbers.npz", image=np.int8([1, 2, 3]))
    source = open_source(str(tmp_path / "numbers.npz"), {"image": {**INPUTS["image"], **shapes}})
    assert source.read(0, 3).given["image"].tolist() == [[1], [2], [3]]
    with pytest.raises(ArgumentError, match="expected"):
        open_source(str(tmp_path / "numbers.npz"), INPUTS).read(0, 3)
