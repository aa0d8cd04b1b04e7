"""Checks that the official ``CompiledModel`` can run Delegraph's delegates.

``guard.py`` calls ``main`` in a child process, as for :mod:`delegraph.native.litert.self_check`.
The check finds the environment's accelerators through its layout in memory, and repeats the checks
of the interpreter: the C structs are the same, but they come from another library.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.native.litert.environment import compiling
from delegraph.native.litert.installed_runtimes import compiled_model_module
from delegraph.native.litert.self_check import (
    Checking,
    Runs,
    check_errors,
    check_fields,
    check_order,
    check_running,
    expect,
)


def main(arguments: list[str]) -> int:
    """Check the installed ``CompiledModel``; return 0 or raise an error. *arguments* is ignored."""
    check_compiled_model(compiled_model_module())
    return 0


def check_compiled_model(module: Any) -> None:
    """Check that environments and structs of the ``CompiledModel`` in *module* are as expected.

    Raises:
        UnsupportedRuntimeError: a field differs; the message names the first one.
    """
    run = _CompiledModelRuns(module)
    check_fields(run)
    check_running(run)
    check_order(run)
    check_errors(run)
    _check_calls(run)


class _CompiledModelRuns(Runs):
    """Creates the check's models in the ``CompiledModel`` of an official *module*, and runs them.

    All models share one environment.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._module = module
        self._environment = module.Environment.create()

    def official(self, delegates: Sequence[LiteRtDelegate]) -> Any:
        module = self._module
        cpu = module.CpuOptions(kernel_mode=module.CpuKernelMode.BUILTIN)
        addresses = [partial(getattr, delegate, "address") for delegate in delegates]
        with compiling(self._environment, {"before": addresses, "after": ()}):
            return module.CompiledModel.from_buffer(
                self.content, environment=self._environment, options=module.Options(cpu_options=cpu)
            )

    def output(self, made: Any, x: NDArray[np.float32]) -> NDArray[np.float32]:
        made.resize_input_tensor(0, x.shape)
        (source,), (target,) = made.create_input_buffers(0), made.create_output_buffers(0)
        source.write(x)
        made.run_by_index(0, [source], [target])
        found: NDArray[np.float32] = target.read(x.size, np.float32).reshape(x.shape)
        return found


def _check_calls(run: _CompiledModelRuns) -> None:
    """Check that a delegate is applied to its own model only, and once to each subgraph."""
    delegate = Checking("counts", lambda _, context: None, 1)
    run.made(delegate)
    run.made()
    expect("subgraphs of the model", delegate.subgraphs, [0, 1])
