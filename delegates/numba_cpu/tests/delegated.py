"""Models run by this delegate, to compare with the core's kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.instructions.memory import Row
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.program import Program

Array = NDArray[Any]

MODELS = Path(__file__).parents[3] / "docs" / "demo" / "models"
DIGITS = MODELS / "digits_int8.tflite"

LEVELS = [level.name for level in supported_levels()]
levels = pytest.mark.parametrize("level", LEVELS)


def delegate(level: str = "auto", **options: Any) -> NumbaCpuDelegate:
    """Return the delegate for a processor level."""
    return NumbaCpuDelegate(NumbaCpuOptions(cpu=level, **options))  # type: ignore[arg-type]  # any text


def delegated(model: bytes, level: str = "auto", **options: Any) -> Interpreter:
    """Return an interpreter with the delegate; its tensors are not allocated yet."""
    return Interpreter(model_content=model, experimental_delegates=[delegate(level, **options)])


def is_taken(interpreter: Interpreter) -> bool:
    """Whether the delegate runs every node."""
    return all(node.delegate == "numba_cpu" for node in interpreter.placement.nodes)


def run(interpreter: Interpreter, *inputs: Array) -> Array:
    """Return the first output for *inputs*, which resize where their shapes are new."""
    return outputs_of(interpreter, inputs)[0]


class Watched(NumbaCpuDelegate):
    """The delegate, with the kernels that it made.

    Args:
        level: processor level.
        threads: number of threads.
        options: other options.
    """

    def __init__(self, level: str = "auto", *, threads: int = 2, **options: Any) -> None:
        super().__init__(NumbaCpuOptions(cpu=level, num_threads=threads, **options))  # type: ignore[arg-type]  # any text
        self.kernels: list[NumbaCpuKernel] = []

    def create_delegate_kernel_interface(self) -> NumbaCpuKernel:
        self.kernels.append(NumbaCpuKernel(self))
        return self.kernels[-1]

    @property
    def programs(self) -> list[Program]:
        """Programs of the kernels that have one, in order."""
        return [kernel.program for kernel in self.kernels if kernel.program is not None]

    @property
    def rows(self) -> list[Row]:
        """Kernel calls of all programs, in order."""
        return [row for program in self.programs for row in program.rows]


def rows_of(model: bytes, level: str = "auto", threads: int = 1) -> list[Row]:
    """Return the kernel calls of a model's programs, each checked when it was made."""
    watched = Watched(level, threads=threads)
    with Interpreter(model_content=model, experimental_delegates=[watched]) as interpreter:
        interpreter.allocate_tensors()
        return watched.rows


def results(case: OperatorCase, *delegates: NumbaCpuDelegate) -> tuple[list[Array], bool]:
    """Return all outputs of all invokes of a case, and whether delegates took every node."""
    interpreter = Interpreter(model_content=case.model(), experimental_delegates=list(delegates))
    with np.errstate(all="ignore"):
        found = [y for step in case.steps for y in outputs_of(interpreter, step)]
    return found, is_taken(interpreter)


def kernels_of(model: bytes) -> list[str]:
    """Return the names of the kernels that a model calls, in order."""
    return [row.instruction.kernel for row in rows_of(model)]


def assert_agrees(
    model: bytes, *inputs: Array, level: str = "auto", threads: int = 1, least: float = 1e-3
) -> None:
    """Check that the delegate takes all nodes, and that results are the core's, twice.

    See :func:`assert_near` for *least*.
    """
    ours = delegated(model, level, num_threads=threads)
    assert is_taken(ours)
    expected = run(Interpreter(model_content=model), *inputs)
    for _ in range(2):
        assert_near(run(ours, *inputs), expected, least)


def assert_near(found: Array, expected: Array, least: float = 0.0) -> None:
    """Check that integers are equal, and floats differ by at most 1e-5 of the largest.

    Args:
        found: of the delegate.
        expected: of the core's kernels.
        least: what the largest value counts as at least.
    """
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if found.dtype.kind == "f":
        largest = float(np.abs(expected).max(initial=least))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * largest)
    else:
        np.testing.assert_array_equal(found, expected)
