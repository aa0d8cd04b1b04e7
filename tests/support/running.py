"""Running an interpreter, and reading its first output."""

from __future__ import annotations

from typing import Any


def result(interpreter: Any) -> Any:
    """Return the first output, as a copy."""
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def result_of(interpreter: Any, *inputs: Any) -> Any:
    """Invoke an allocated interpreter on values of its first inputs; return the first output."""
    for detail, x in zip(interpreter.get_input_details(), inputs, strict=False):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return result(interpreter)
