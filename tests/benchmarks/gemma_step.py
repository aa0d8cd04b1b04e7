"""Decode steps of ``gemma.py``, which imports more than a user who makes tokens would."""

from __future__ import annotations

from typing import Any

import numpy as np
from network_process import peak_memory

MASKED = np.float32(-1e9)


def interpreter_of(name: str, path: str, threads: int) -> Any:
    """Return an interpreter of ``"Delegraph"`` or ``"LiteRT"`` with the inputs of a step."""
    if name == "Delegraph":
        from delegraph import Interpreter

        found: Any = Interpreter(path, delegates=["numba_cpu"], num_threads=threads)
    else:
        from ai_edge_litert import interpreter as litert

        found = litert.Interpreter(path, num_threads=threads)
    found.allocate_tensors()
    for details in found.get_input_details():
        value = np.zeros(details["shape"], details["dtype"])
        if details["name"] == "mask":
            value[..., 101:] = MASKED
        elif details["name"] in ("token", "position"):
            value[...] = 100
        found.set_tensor(details["index"], value)
    return found


def tell_peak(name: str, path: str, threads: int) -> None:
    """Generate a few tokens, and print the peak memory of this process."""
    interpreter = interpreter_of(name, path, threads)
    for _ in range(5):
        interpreter.invoke()
    print(peak_memory())
