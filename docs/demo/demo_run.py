"""What all parts of the showcase use: running a model on real numbers, and names in tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table

from delegraph import Interpreter

MODELS = Path(__file__).parent / "models"


def run(interpreter: Interpreter, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Run the model; input and output are real numbers even if the model's are quantized."""
    source = interpreter.get_input_details()[0]
    sink = interpreter.get_output_details()[0]
    interpreter.set_tensor(source["index"], quantize(values, source))
    interpreter.invoke()
    return dequantize(interpreter.get_tensor(sink["index"]), sink)


def quantize(values: NDArray[np.float32], details: dict[str, Any]) -> NDArray[Any]:
    """Return real numbers as the tensor stores them: ``round(real / scale) + zero_point``."""
    scale, zero_point = details["quantization"]
    if scale == 0:
        return values
    limits = np.iinfo(details["dtype"])
    stored: NDArray[Any] = np.clip(np.rint(values / scale) + zero_point, limits.min, limits.max)
    return stored.astype(limits.dtype)


def dequantize(values: NDArray[Any], details: dict[str, Any]) -> NDArray[np.float32]:
    """Return stored numbers as real ones: ``(stored - zero_point) * scale``."""
    scale, zero_point = details["quantization"]
    return values if scale == 0 else (values.astype(np.float32) - zero_point) * np.float32(scale)


def chosen(delegate: str | None) -> list[str]:
    """Return the value for the ``delegates`` argument of an interpreter."""
    return [] if delegate is None else [delegate]


def short(address: str | None) -> str:
    """Return a delegate's name without its distribution's name."""
    return "none" if address is None else address.rpartition(":")[2]


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).splitlines()[0]


def plain_table(*headings: str) -> Table:
    """Return an empty table in the showcase's style."""
    return Table(*headings, box=SIMPLE_HEAD, header_style="", pad_edge=True)


def is_taken(node: Any) -> bool:
    """Whether a requested delegate runs a node."""
    return node.delegate is not None and not node.is_by_default
