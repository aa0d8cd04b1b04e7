"""A call that is asked to stop ends between two rows of a program; the next one is right."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from delegated import Watched, run
from delegraph import Interpreter
from delegraph.errors import CallCancelledError, DelegateError
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program

LAYERS, BATCH, SIZE = 40, 1024, 64


def layers() -> bytes:
    """A chain of layers, each of which takes some hundred microseconds."""
    generator = np.random.default_rng(0)
    weights = constant((generator.normal(size=(SIZE, SIZE)) / 8).astype(np.float32))
    names = [f"t{i}" for i in range(LAYERS + 1)]
    nodes = [
        ("FULLY_CONNECTED", f"{x} w b", y, FullyConnectedOptions()) for x, y in pairwise(names)
    ]
    return graph_model(
        nodes,
        inputs=names[0],
        outputs=names[-1],
        tensors={
            **{name: tensor((BATCH, SIZE)) for name in names},
            "w": weights,
            "b": constant(np.zeros(SIZE, np.float32)),
        },
    )


def interpreter(threads: int) -> tuple[Interpreter, Program]:
    """Return an interpreter and its program, which is not brief and takes workers."""
    delegate = Watched(threads=threads)
    made = Interpreter(model_content=layers(), delegates=[delegate])
    made.allocate_tensors()
    (program,) = delegate.programs
    program.run_time.observe(1.0)
    return made, program


def invoked(made: Interpreter) -> Any:
    return run(made, np.random.default_rng(1).normal(size=(BATCH, SIZE)).astype(np.float32))


def for_ever(made: Interpreter) -> None:
    while True:
        invoked(made)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_cancelled_invoke_raises_and_the_next_one_is_right(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, program = interpreter(threads)
    right = invoked(made)
    run_program = Pool.run

    def cancel_and_run(pool: Pool, *given: Any) -> None:
        made.cancel()
        run_program(pool, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Pool, "run", cancel_and_run)  # after the core has looked
        with pytest.raises(CallCancelledError):
            invoked(made)
    assert program.header[layout.IS_CANCELLED]
    np.testing.assert_array_equal(invoked(made), right)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_invoke_can_be_cancelled_from_another_thread(threads: int) -> None:
    made, _ = interpreter(threads)
    right = invoked(made)
    stop = threading.Event()

    def cancel() -> None:
        while not stop.wait(1e-3):
            made.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    try:
        with pytest.raises(CallCancelledError):
            for_ever(made)
    finally:
        stop.set()
        other.join()
    np.testing.assert_array_equal(invoked(made), right)


def test_a_run_that_nobody_has_stopped_is_never_half_done_in_silence() -> None:
    made, program = interpreter(1)
    invoked(made)
    word = np.ones(1, np.int32)
    program.heed(word)
    with pytest.raises(DelegateError, match="the run was stopped, for an unknown reason"):
        invoked(made)
