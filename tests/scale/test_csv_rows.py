"""CSV tables as rows: the columns of inputs, the types of cells, and bad lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.scale.csv_rows import CsvRows
from delegraph.scale.sources import Inputs, Rows


def inputs(dtype: Any = np.float32, shape: tuple[int, ...] = (1, 3), scale: float = 0) -> Inputs:
    """Return the details of a single input ``x``."""
    sizes = np.array(shape, np.int32)
    details = {"name": "x", "index": 0, "shape": sizes, "shape_signature": sizes}
    return {"x": details | {"dtype": dtype, "quantization": (scale, 0)}}


def rows_of(tmp_path: Path, text: str, given: Inputs) -> Rows:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    return CsvRows(str(path), given).read(0, 99)


def columns(first: str, given: Inputs) -> Inputs:
    return {first: given["x"]}


@pytest.mark.parametrize(
    "text", ["a,b,c\n1,2,3.5\n", "a;b;c\n\n1;2; 3.5", '"a"\tb\tc\r\n1\t2\t3.5\n']
)
def test_columns_of_numbers_are_the_only_input(text: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path, text, inputs())
    np.testing.assert_array_equal(rows.given["x"], [[1, 2, 3.5]])
    assert not rows.passed
    assert rows.given["x"].dtype == np.float32


@pytest.mark.parametrize(
    ("text", "column", "shape", "expected"),
    [
        ("0\n1\n", "x", (1,), [0, 1]),
        ("1,2\n3,4\n", "x", (1, 2), [[1, 2], [3, 4]]),
        ('\n"[1, 2]"\n[3]\n', "x", (1, 2), [[1, 2]]),
        ("0,1,2\n3,4,5\n", "x", (1, 3), [[3, 4, 5]]),
        ("2024\n7\n", "2024", (1,), [7]),
        ("1,5\n3,4\n", "1:5", (1, 2), [[3, 4]]),
    ],
)
def test_numbers_in_the_first_line_are_a_row_unless_they_name_columns(
    text: str, column: str, shape: tuple[int, ...], expected: object, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text(text)
    source = CsvRows(str(tmp_path / "data.csv"), columns(column, inputs(shape=shape)))
    assert source.read(0, 9).given[column].tolist() == expected
    assert source.note.startswith("the first line is ")


def test_a_column_without_a_name_is_not_that_of_a_tensor_without_one(tmp_path: Path) -> None:
    nameless = {"x": {**inputs()["x"], "tensor_name": ""}}
    rows = rows_of(tmp_path, ",a,b,c\n7,1,2,3\n", nameless)
    np.testing.assert_array_equal(rows.given["x"], [[1, 2, 3]])
    assert rows.passed[""].tolist() == [7]


def test_consecutive_columns_are_an_input_and_the_others_keep_their_types(tmp_path: Path) -> None:
    text = "id,a,b,c,code,score,name\n7,1,2,3,007,.5,Ann\n8,4,5,6,1,,\n"
    rows = rows_of(tmp_path, text, columns("a:c", inputs(shape=(1, 3, 1))))
    np.testing.assert_array_equal(rows.given["a:c"][..., 0], [[1, 2, 3], [4, 5, 6]])
    assert {name: values.tolist() for name, values in rows.passed.items()} == {
        "id": [7, 8],
        "code": ["007", "1"],
        "score": [0.5, None],
        "name": ["Ann", ""],
    }


def test_integers_of_a_column_with_a_real_number_are_real(tmp_path: Path) -> None:
    quantized = inputs(np.int8, scale=0.5)
    rows = rows_of(tmp_path, "a,b,c\n1,2,3\n4,5,6.0\n", quantized)
    np.testing.assert_array_equal(rows.given["x"], [[2, 4, 6], [8, 10, 12]])
    rows = rows_of(tmp_path, "a,b,c\n1,2,3\n4,5,6\n", quantized)
    np.testing.assert_array_equal(rows.given["x"], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("dtype", "cell", "expected"),
    [
        (np.float32, "2", 2.0),
        (np.float32, "nan", np.nan),
        (np.int32, "2.0", 2),
        (np.bool_, "True", True),
        (np.bytes_, "3 words, here", "3 words, here"),
    ],
)
def test_a_cell_of_each_type(dtype: Any, cell: str, expected: Any, tmp_path: Path) -> None:
    rows = rows_of(tmp_path, f'x,y\n"{cell}",1\n', inputs(dtype, (1, 1)))
    np.testing.assert_array_equal(rows.given["x"], [[expected]])


def test_bad_lines_are_told_and_the_others_are_read(tmp_path: Path) -> None:
    text = "a,b,c\n1,2,3\n1,2\n\n1,x,3\n1,,3\n4,5,6\n"
    rows = rows_of(tmp_path, text, inputs())
    np.testing.assert_array_equal(rows.given["x"], [[1, 2, 3], [4, 5, 6]])
    assert rows.unread == {
        1: "line 3: has 2 cells, expected 3",
        2: "line 5: the cell of 'b' is 'x', expected a number",
        3: "line 6: the cell of 'b' is empty",
    }
    rows = rows_of(tmp_path, "x\n1.5\n", inputs(np.int32, (1, 1)))
    assert "holds float64, expected int32" in rows.unread[0]


def test_a_decimal_comma_is_told(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "a;b;c\n1;0,13;3\n", inputs())
    assert rows.unread[0].endswith("'0,13', expected a number with a decimal point, not a comma")


def test_too_few_columns_are_told_by_number(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"it has 2 columns: a, b; inputs=.* 3 columns with"):
        rows_of(tmp_path, "a,b\n1,2\n", inputs())


def test_lists_that_are_none_are_told(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, 'x\n[1\n"[[1], [2, 3]]"\n', inputs())
    assert "line 2: the cell of 'x' is no list in JSON: Expecting" in rows.unread[0]
    assert rows.unread[1] == "line 3: the cell of 'x' has lists of different lengths"


def test_another_encoding_is_told(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n1,2,3\n", encoding="utf-16")
    with pytest.raises(ArgumentError, match="is UTF-16, expected UTF-8"):
        CsvRows(str(path), inputs())


def test_a_span_of_the_wrong_size_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"'a:b' are 2 columns of .*, expected 3, one for each"):
        rows_of(tmp_path, "a,b,c\n1,2,3\n", columns("a:b", inputs()))


def test_a_number_out_of_range_is_a_bad_row(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "x\n1e40\n-inf\n1e400\n", inputs(shape=(1, 1)))
    assert rows.given["x"].tolist() == [[-np.inf]]
    assert "line 2: input 'x'" in rows.unread[0]
    assert "1e+40, which is out of" in rows.unread[0]
    assert rows.unread[2] == "line 4: the cell of 'x' is '1e400', which is out of range"
    rows = rows_of(tmp_path, "x\n3000000000\n1e300\n7\n", inputs(np.int32, (1, 1)))
    assert rows.given["x"].tolist() == [[7]]
    assert "holds 3000000000, which is out of the range of int32" in rows.unread[0]
    assert "which is out of the range of int32" in rows.unread[1]


def test_bytes_are_taken_by_a_quantized_input(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "a,b,c\n1,2,255\n1,2,256\n", inputs(np.uint8, scale=0.5))
    assert rows.given["x"].tolist() == [[1, 2, 255]]
    assert "'c' holds 256, which is out of the range of uint8: 0 to 255" in rows.unread[1]


def test_single_texts_are_rows(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "x\na b\nc\n", inputs(np.bytes_, (1,)))
    assert rows.given["x"].reshape(-1).tolist() == ["a b", "c"]
