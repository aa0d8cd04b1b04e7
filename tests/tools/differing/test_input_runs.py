"""Input values of the runs of a comparison."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph.testing import one_op_model, tensor
from delegraph.tools.differing import input_runs
from delegraph.tools.differing.input_runs import OFFICIAL, InputRuns
from delegraph.tools.setup import Setup


def test_a_run_is_drawn_once(tmp_path: Path) -> None:
    """Random values may take longer than the model; they are the same when drawn again."""
    path = tmp_path / "abs.tflite"
    path.write_bytes(one_op_model("ABS", [tensor((3, 4))], [tensor((3, 4))]))
    setup = Setup(str(path))
    runs = InputRuns(setup, None, setup.interpreter().get_input_details(), OFFICIAL, 2)
    first = runs.run(0)
    assert runs.run(0) is first
    assert not np.array_equal(runs.run(1).values[0], first.values[0])
    assert_array_equal(runs.run(0).values[0], first.values[0])


@pytest.mark.parametrize(("shape", "lines"), [((), 1), ((1,), 1), ((2,), 0)])
def test_long_runs_log_once_that_a_random_scalar_may_count_a_loop(
    shape: tuple[int, ...],
    lines: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    like = tensor(shape, "INT32", name="n")
    path = tmp_path / "abs.tflite"
    path.write_bytes(one_op_model("ABS", [like], [like]))
    setup = Setup(str(path))
    runs = InputRuns(setup, None, setup.interpreter().get_input_details(), OFFICIAL, 2)
    monkeypatch.setattr(input_runs, "PATIENCE", 0.0)
    with runs.timed():
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
    told = [text for text in caplog.messages if "if 'n' counts the iterations of a loop" in text]
    assert len(told) == lines
