"""Chooses an executor by name."""

from __future__ import annotations

import importlib.util
from typing import Literal

from delegraph.errors import DelegateError
from delegraph_flex.executor import Executor
from delegraph_flex.extras import install_command

ExecutorName = Literal["auto", "tensorflow", "numpy"]


def has_tensorflow() -> bool:
    """Whether TensorFlow is installed; the check does not import TensorFlow."""
    return importlib.util.find_spec("tensorflow") is not None


def executor_named(name: ExecutorName) -> Executor:
    """Return the executor with a name; ``auto`` means TensorFlow if it is installed, else NumPy.

    Raises:
        DelegateError: TensorFlow is requested but not installed.
    """
    if name == "numpy" or (name == "auto" and not has_tensorflow()):
        from delegraph_flex.numpy_executor.executor import NumpyExecutor

        return NumpyExecutor()
    if not has_tensorflow():
        raise DelegateError(
            "executor=tensorflow needs TensorFlow, which is not installed: "
            f"{install_command('tensorflow')}"
        )
    from delegraph_flex.tensorflow_executor.executor import TensorFlowExecutor

    return TensorFlowExecutor()
