"""Decode steps in a process of its own: ``gemma_step.py LiteRT|Delegraph MODEL THREADS``.

Prints the peak memory of the process in kilobytes. It imports nothing that a user would not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

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


def peak_memory() -> int:
    """Return the peak memory of this process in kilobytes, as Linux counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    interpreter = interpreter_of(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    for _ in range(5):
        interpreter.invoke()
    print(peak_memory())
