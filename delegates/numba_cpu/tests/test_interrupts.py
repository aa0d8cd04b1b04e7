"""An interrupt at every line, and at every instruction, of a run: the next one is right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateContext, Interpreter, Node, PlacementPolicy, PlacementRule
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, graph_model, interrupted, tensor
from delegraph.testing.interrupts import Step
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.pool import POOL, Pool
from delegraph_numba_cpu.program.program import Program

OURS = ["delegraph", "delegraph_numba_cpu"]
STEPS: list[Step] = ["line", "opcode"]
WORKERS = 3


def state(pool: Pool) -> list[int]:
    """Callers and whether one has the workers."""
    return [int(pool.crew.control[word]) for word in (layout.CALLERS, layout.IS_LED)]


def assert_all_take_part(pool: Pool, lib: Library, meet: Callable[..., Program]) -> None:
    """Assert that a run has *WORKERS* threads, of different numbers, at once."""
    meeting = threading.Barrier(WORKERS)
    numbers: set[int] = set()

    def kernel(tile: int, worker: int) -> None:
        numbers.add(worker)
        meeting.wait(60)

    pool.crew.control[layout.KEEPS_APART] = 0  # the kernel waits for all workers
    pool.run(meet(kernel, tiles=WORKERS, workers=WORKERS), lib)
    assert numbers == set(range(WORKERS))


@pytest.mark.repetition(1)
@pytest.mark.parametrize("step", STEPS)
def test_a_run_may_be_interrupted_anywhere(
    lib: Library,
    pool: Pool,
    chain: Callable[..., Any],
    python_kernel: Callable[..., Program],
    step: Step,
) -> None:
    copies = chain(workers=WORKERS)
    copies.run_in(pool, 1)
    at = 0
    while interrupted(lambda: pool.run(copies.program, lib), at, inside=OURS, step=step):
        at += 1
        assert state(pool) == [0, 0]
        copies.run_in(pool, at)
        assert copies.program.header[layout.THREADS] == WORKERS
    assert at > 5
    assert_all_take_part(pool, lib, python_kernel)


@pytest.mark.repetition(1)
@pytest.mark.parametrize("step", STEPS)
def test_a_first_run_may_be_interrupted_anywhere(
    lib: Library, chain: Callable[..., Any], python_kernel: Callable[..., Program], step: Step
) -> None:
    copies = chain(workers=WORKERS)
    at, is_interrupted = 0, True
    while is_interrupted:
        pool = Pool()
        pool.most_threads = WORKERS
        is_interrupted = interrupted(
            lambda pool=pool: pool.run(copies.program, lib),  # type: ignore[misc]  # run at once
            at,
            inside=OURS,
            step=step,
        )
        copies.run_in(pool, at)
        assert state(pool) == [0, 0]
        if at % 10 == 0:
            assert_all_take_part(pool, lib, python_kernel)
        pool.stop()
        at += 1
    assert at > 30


# -- an interpreter --------------------------------------------------------------------------------


class Observed(NumbaCpuDelegate):
    """The delegate; its programs take workers from the first run on."""

    def __init__(self) -> None:
        super().__init__(NumbaCpuOptions(num_threads=WORKERS))

    def create_delegate_kernel_interface(self) -> NumbaCpuKernel:
        return ObservedKernel(self)


class ObservedKernel(NumbaCpuKernel):
    def prepare(self, context: DelegateContext, node: Node) -> None:
        super().prepare(context, node)
        assert self.program is not None
        self.program.run_time.observe(1.0)
        assert self.program.tiles > 1


BATCH, SIZE = 1024, 64  # for which rows are split
FULL = FullyConnectedOptions()


def two_partitions() -> bytes:
    """Return a model of two partitions, with a node between them that the delegate may not have."""
    generator = np.random.default_rng(0)

    def values(*shape: int) -> Any:
        return constant(generator.normal(size=shape).astype(np.float32))

    return graph_model(
        [
            ("FULLY_CONNECTED", "x w b", "h", FULL),
            ("NEG", "h", "r"),
            ("FULLY_CONNECTED", "r v b", "z", FULL),
            ("ADD", "z h", "y"),
        ],
        inputs="x",
        outputs="y",
        tensors={
            **{name: tensor((BATCH, SIZE)) for name in "xhrzy"},
            **{name: values(SIZE, SIZE) for name in "wv"},
            "b": values(SIZE),
        },
    )


def invoked(interpreter: Interpreter, x: Any) -> Any:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.repetition(1)
@pytest.mark.parametrize("step", STEPS)
def test_an_invoke_may_be_interrupted_anywhere(
    lib: Library,
    python_kernel: Callable[..., Program],
    step: Step,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(POOL, "most_threads", WORKERS)
    content = two_partitions()
    rules = [PlacementRule("exclude", operators="NEG")]
    interpreter = Interpreter(
        model_content=content, delegates=[Observed()], placement=PlacementPolicy(rules=rules)
    )
    core = Interpreter(model_content=content, delegates=[])
    generator = np.random.default_rng(1)
    at, is_interrupted = 0, True
    for each in (interpreter, core):
        each.allocate_tensors()
    while is_interrupted:
        x = generator.normal(size=(BATCH, SIZE)).astype(np.float32)
        interpreter.set_tensor(0, x)
        is_interrupted = interrupted(interpreter.invoke, at, inside=OURS, step=step)
        assert state(POOL) == [0, 0]
        if at % 10 == 0:
            x = generator.normal(size=(BATCH, SIZE)).astype(np.float32)
        np.testing.assert_allclose(invoked(interpreter, x), invoked(core, x), 1e-4, 1e-4)
        at += 1
    assert at > 50
    assert_all_take_part(POOL, lib, python_kernel)
