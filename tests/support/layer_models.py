"""Small models, and a delegate that is wrong in one kind of node, to compare layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.schema.options import AddOptions, MulOptions
from delegraph.tools import InputRequest, LayerDifference, Setup
from support.seeded_faults import SoundKernel

RUNTIMES = ["delegraph", "litert"]


def add(inputs: str, output: str) -> Any:
    return "ADD", inputs, output, AddOptions()


def mul(inputs: str, output: str) -> Any:
    return "MUL", inputs, output, MulOptions()


CHAIN = [add("x x", "a"), mul("a x", "b"), add("b x", "c"), add("c a", "y")]


class WrongProduct(SoundKernel):
    """Kernel that adds 1 to the first element of each product."""

    def result(self, step: Any, registration: Any, a: Any, b: Any) -> Any:
        y = np.array(super().result(step, registration, a, b))
        if registration.name == "MUL":
            y.reshape(-1)[0] += 1
        return y


def fed(**given: Any) -> InputRequest:
    return InputRequest(**{"distribution": "inference_diff", **given})


def file(folder: Path, content: bytes, name: str = "m.tflite") -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def setup_of(model: str, runtime: Any, *delegates: Any) -> Setup:
    if runtime == "litert":
        pytest.importorskip("ai_edge_litert")
    return Setup(model, runtime, delegates or ("none",), use_default_delegates=False)


def greatest(difference: Any) -> float | None:
    return None if difference is None else difference.compared()["max"].max


def by_name(layers: tuple[LayerDifference, ...]) -> dict[str, LayerDifference]:
    return {layer.name: layer for layer in layers}
