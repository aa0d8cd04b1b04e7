"""Programs whose run time is known take one call: the same results, errors and profiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from delegated import run
from delegraph import DelegateContext, Interpreter
from delegraph.errors import CallCancelledError, DelegateError
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program
from test_gather import X, gather_model, interpreter_of

POSITIONS = np.array([[2, 0], [1, 1]], np.int32)


@pytest.fixture
def known_runs(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """Results of runs of known time: True, None if another way was taken, False if rows did not."""
    results: list[bool | None] = []
    made = Program.known_run

    def watched(
        program: Program,
        pool: Pool,
        library: Library,
        context: DelegateContext,
        otherwise: Callable[[], object],
        failed: Callable[[], object],
    ) -> Callable[[], None]:
        def noted(result: bool | None, call: Callable[[], object]) -> Callable[[], object]:
            def note() -> object:
                results[-1] = result
                return call()

            return note

        run = made(program, pool, library, context, noted(None, otherwise), noted(False, failed))

        def begin() -> None:
            results.append(True)
            run()

        return begin

    monkeypatch.setattr(Program, "known_run", watched)
    return results


@pytest.fixture
def interpreter(known_runs: list[bool | None]) -> Interpreter:
    """One whose program is known to be brief."""
    found = interpreter_of(gather_model(POSITIONS), ["numba_cpu"])
    while not (known_runs and known_runs[-1]):
        assert np.array_equal(run(found, X, POSITIONS), X[POSITIONS])
        assert len(known_runs) < 1000
    known_runs.clear()
    return found


def test_results_are_of_the_present_inputs(
    interpreter: Interpreter, known_runs: list[bool | None]
) -> None:
    for x, positions in ((X, POSITIONS), (2 * X, 2 - POSITIONS)):
        assert np.array_equal(run(interpreter, x, positions), x[positions])
    assert known_runs == [True, True]


def test_what_goes_wrong_is_told_and_the_next_run_is_right(
    interpreter: Interpreter, known_runs: list[bool | None]
) -> None:
    with pytest.raises(DelegateError, match=r"node 0 \(GATHER\).*3"):
        run(interpreter, X, POSITIONS + 1)
    assert np.array_equal(run(interpreter, X, POSITIONS), X[POSITIONS])
    assert known_runs == [False, True]


def test_memory_that_moves_is_followed(
    interpreter: Interpreter, known_runs: list[bool | None]
) -> None:
    x = np.concatenate([X, X + 1])
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    interpreter.allocate_tensors()
    assert np.array_equal(run(interpreter, x, POSITIONS + 3), x[POSITIONS + 3])
    assert known_runs == [None]


def test_other_memory_of_the_same_shape_is_followed(
    interpreter: Interpreter, known_runs: list[bool | None]
) -> None:
    for tensor in interpreter.session.subgraphs[0].tensors:
        if tensor.data is not None and tensor.data.flags.writeable:
            tensor.data = tensor.data.copy()
    assert np.array_equal(run(interpreter, X, POSITIONS), X[POSITIONS])
    assert np.array_equal(run(interpreter, X, POSITIONS), X[POSITIONS])
    assert known_runs == [None, True]


def test_a_profile_has_the_nodes(interpreter: Interpreter, known_runs: list[bool | None]) -> None:
    with interpreter.profile() as profile:
        assert np.array_equal(run(interpreter, X, POSITIONS), X[POSITIONS])
    assert "GATHER" in str(profile)
    assert known_runs == [None]


def test_a_call_that_is_cancelled_before_does_not_run(
    interpreter: Interpreter, known_runs: list[bool | None]
) -> None:
    interpreter.session.cancellation.request()
    with pytest.raises(CallCancelledError):
        interpreter.session.subgraphs[0].invoke()
    assert known_runs == []
