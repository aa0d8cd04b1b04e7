"""A call that is asked to stop ends between two rows of a program; the next one is right."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import CallCancelledError, DelegateError
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program

LAYERS, BATCH, SIZE = 40, 1024, 64


class Observed(NumbaCpuDelegate):
    """The delegate, which keeps its kernel. Its program is not brief, and takes workers."""

    kernel: ObservedKernel

    def create_delegate_kernel_interface(self) -> NumbaCpuKernel:
        self.kernel = ObservedKernel(self)
        return self.kernel


class ObservedKernel(NumbaCpuKernel):
    made: Program

    def prepare(self, context: Any, node: Any) -> None:
        super().prepare(context, node)
        assert self.program is not None
        self.made = self.program
        self.made.run_time.observe(1.0)


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


def interpreter(threads: int, **arguments: Any) -> tuple[Interpreter, Observed]:
    delegate = Observed(NumbaCpuOptions(num_threads=threads))
    made = Interpreter(model_content=layers(), delegates=[delegate], **arguments)
    made.allocate_tensors()
    return made, delegate


def invoked(made: Interpreter) -> Any:
    x = np.random.default_rng(1).normal(size=(BATCH, SIZE)).astype(np.float32)
    made.set_tensor(0, x)
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])


def for_ever(made: Interpreter) -> None:
    while True:
        invoked(made)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_cancelled_invoke_raises_and_the_next_one_is_right(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, delegate = interpreter(threads)
    right = invoked(made)
    run = Pool.run

    def cancel_and_run(pool: Pool, *given: Any) -> None:
        made.cancel()
        run(pool, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Pool, "run", cancel_and_run)  # after the core has looked
        with pytest.raises(CallCancelledError):
            invoked(made)
    assert delegate.kernel.made.header[layout.IS_CANCELLED]
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
    made, delegate = interpreter(1)
    invoked(made)
    program = delegate.kernel.made
    word = np.ones(1, np.int32)
    program.heed(word)
    with pytest.raises(DelegateError, match="the run was stopped, for an unknown reason"):
        invoked(made)
