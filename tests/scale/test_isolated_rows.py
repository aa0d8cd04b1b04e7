"""A row that ends its process or hangs is bad; the others are computed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Predictor
from delegraph.errors import ArgumentError, DelegraphError, PredictionError
from delegraph.tools.setup import Setup
from support.moody_delegate import moody_setup

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals as POSIX has them")


@pytest.fixture
def moody(tmp_path: Path) -> Setup:
    return moody_setup(tmp_path)


def rows(*values: float) -> dict[str, Any]:
    return {"x": np.array([[value, 1] for value in values], np.float32)}


def test_rows_that_kill_hang_or_fail_are_marked(moody: Setup) -> None:
    with Predictor(moody, on_error="column", isolation="process", timeout=2.0) as predictor:
        for _ in range(2):
            batch = predictor(rows(1, 66, 3, 88, 77, 6))
            np.testing.assert_array_equal(batch["y"][[0, 2, 5], 0], [-1, -3, -6])
            assert batch["error"][[0, 2, 5]].tolist() == ["", "", ""]
            assert batch["error"][1].startswith("the process ended with SIGSEGV")
            assert "88 is too much" in batch["error"][3]
            assert batch["error"][4] == "no answer after 2 s"
        np.testing.assert_array_equal(predictor(rows(1, 2))["y"][:, 0], [-1, -2])
        assert predictor.metrics.errors == 6
        assert predictor.metrics.lost_processes == 6  # twice: the batch, and each of two rows


def test_a_single_bad_row_costs_one_process(moody: Setup) -> None:
    with Predictor(moody, on_error="drop", isolation="process") as predictor:
        assert predictor(rows(66))["y"].shape == (0, 2)
    assert predictor.metrics.lost_processes == 1


def test_the_first_bad_row_is_named_and_the_predictor_goes_on(moody: Setup) -> None:
    with Predictor(moody, isolation="process") as predictor:
        for bad in (66, 88):
            with pytest.raises(PredictionError, match=r"row 1: .*(SIGSEGV|too much)") as caught:
                predictor(rows(1, bad, 66))
            assert caught.value.row == 1
        np.testing.assert_array_equal(predictor(rows(5))["y"], [[-5, -1]])


def test_restarts_are_bounded(moody: Setup) -> None:
    predictor = Predictor(moody, on_error="column", isolation="process", max_restarts=1)
    with (
        predictor,
        pytest.raises(PredictionError, match=r"ended 2 processes.* limit is 1 restart$"),
    ):
        predictor(rows(66, 66))


def test_what_cannot_be_loaded_says_so(moody: Setup, tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text("import os; os._exit(7)")
    for model, message in [
        (tmp_path / "nothing.tflite", r"nothing\.tflite"),
        (moody, r"while the model was loaded, .* exit code 7"),
    ]:
        predictor = Predictor(model, isolation="process")
        with predictor, pytest.raises(DelegraphError, match=message):
            predictor.warm_up()


def test_a_child_ends_with_the_process_that_started_it(moody: Setup) -> None:
    code = (
        "import os, sys, threading, numpy as np\n"
        "from delegraph import Predictor\n"
        "from delegraph.tools.setup import Setup\n"
        "setup = Setup(sys.argv[1], delegate_files=(sys.argv[2],))\n"
        "predictor = Predictor(setup, isolation='process')\n"
        "predictor.warm_up()\n"
        "threading.Timer(0.2, os._exit, (0,)).start()\n"
        "predictor({'x': np.float32([[77, 1]])})\n"
    )
    command = [sys.executable, "-c", code, moody.model, *moody.delegate_files]
    # Standard error ends when the child, which hangs and has it too, has ended.
    subprocess.run(command, stderr=subprocess.PIPE, timeout=120, check=True)


def test_arguments_that_do_not_fit(moody: Setup) -> None:
    with pytest.raises(ArgumentError, match="isolation is 'thread', expected 'none' or 'process'"):
        Predictor(moody, isolation="thread")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="timeout needs isolation='process'"):
        Predictor(moody, timeout=3)
