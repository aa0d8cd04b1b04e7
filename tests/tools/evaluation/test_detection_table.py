from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.detection_table import COLUMNS, write_detections
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture

BOXES = np.float32([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.4]])
TRUTH = TruePicture(1, "a.png", BOXES[:1], np.array([17]))
FOUND = Detections(BOXES, np.array([17, 17]), np.float32([0.9, 0.1]))


def test_a_line_per_detection_says_whether_it_takes_an_object(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    write_detections(str(path), [TRUTH], ["m", "n"], [[FOUND], [FOUND]], {17: "cat"}.__getitem__)
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["a.png", "1", "17", "cat", "0.9", "0.0", "0.0", "0.5", "0.5", "true", "m"]
    assert [(row[1], row[4], row[-2]) for row in rows[2:]] == [
        ("1", "0.1", "false"),
        ("2", "0.9", "true"),
        ("2", "0.1", "false"),
    ]
    assert [row[-1] for row in rows] == ["set-up name", "m", "m", "n", "n"]


def test_a_path_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be written: Is a directory"):
        write_detections(str(tmp_path), [TRUTH], ["m"], [[FOUND]], str)
