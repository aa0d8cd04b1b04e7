"""Models run by this delegate, to compare with the core's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.options import NumbaCpuOptions

Array = NDArray[Any]

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


def kernels_of(model: bytes) -> list[str]:
    """Return the kernels that the only partition of a model calls."""
    made: list[NumbaCpuKernel] = []

    class Observed(NumbaCpuDelegate):
        def create_delegate_kernel_interface(self) -> NumbaCpuKernel:
            kernel = NumbaCpuKernel(self)
            made.append(kernel)
            return kernel

    delegate = Observed(NumbaCpuOptions(num_threads=1))
    interpreter = Interpreter(model_content=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    programs = [kernel.program for kernel in made]
    return [row.instruction.kernel for program in programs if program for row in program.rows]


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
