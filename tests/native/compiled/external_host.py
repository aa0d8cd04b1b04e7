"""The two hosts of compiled delegates, small models, and the scenarios that run in them."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor

SCENARIOS: dict[str, Callable[[Host], Any]] = {}

RELU = AddOptions(fused_activation_function=ActivationFunctionType.RELU)
ISLANDS = graph_model(
    [
        ("ADD", "x c", "a", RELU),
        ("LOGISTIC", "a", "b"),
        ("ADD", "b x", "d", AddOptions()),
        ("ADD", "d d", "y", AddOptions()),
    ],
    inputs="x",
    outputs="y",
    tensors={"c": constant(np.array([0.5, -0.5, 1, 0], np.float32))},
)
TWO_SUBGRAPHS = subgraphs_model(
    [
        (
            [
                ("ADD", "x c", "a", RELU),
                ("LOGISTIC", "a", "b"),
                ("ADD", "b x", "d", AddOptions()),
                ("ADD", "d d", "y", AddOptions()),
            ],
            "x",
            "y",
            {"c": constant(np.array([0.5, -0.5, 1, 0], np.float32))},
        ),
        ([("LOGISTIC", "p", "q")], "p", "q", {}),
    ],
    metadata={"about": b"forty-two"},
)
ONE_ADD = graph_model([("ADD", "x z", "y", AddOptions())], inputs="x z", outputs="y")
BROADCAST = graph_model(
    [("ADD", "x z", "y", AddOptions())], inputs="x z", outputs="y", tensors={"z": tensor((1,))}
)
ADD_THEN_LOGISTIC = graph_model(
    [("ADD", "x z", "a", AddOptions()), ("LOGISTIC", "a", "y")], inputs="x z", outputs="y"
)
SHOUT = graph_model(
    [("Shout", "x", "y")],
    inputs="x",
    outputs="y",
    tensors={"x": tensor((3,), "STRING"), "y": tensor((3,), "STRING")},
)
REPORTED = "{} failed: 3 of 1099511627776, 2.500, five six 7 -8 9.0 x%"
X = np.array([-1, 0, 2, 3], np.float32)


class Host:
    """One runtime and the delegates to load into it; both have the official class's methods."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, Path(folder)
        if name == "delegraph":
            from delegraph import Interpreter, load_delegate

            self.Interpreter, self.load_delegate, options = Interpreter, load_delegate, {}
        else:
            from ai_edge_litert import interpreter as official

            self.Interpreter, self.load_delegate = official.Interpreter, official.load_delegate
            resolver = official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            options = {"experimental_op_resolver_type": resolver}
        self.options: dict[str, Any] = options

    def path(self, library: str) -> str:
        return str(self.folder / f"lib{library}.so")

    def c_library(self, library: str) -> ctypes.CDLL:
        return ctypes.CDLL(self.path(library))

    def load(self, library: str, options: dict[str, Any] | None = None) -> Any:
        return self.load_delegate(self.path(library), options)

    def interpreter(self, model: bytes, *delegates: Any, **more: Any) -> Any:
        return self.Interpreter(
            model_content=model, experimental_delegates=list(delegates), **self.options, **more
        )


def scenario(function: Callable[[Host], Any]) -> Callable[[Host], Any]:
    SCENARIOS[function.__name__] = function
    return function


def run(interpreter: Any, *arrays: Any) -> list[Any]:
    """Allocate, set the inputs, invoke; return the first output."""
    interpreter.allocate_tensors()
    return again(interpreter, *arrays)


def again(interpreter: Any, *arrays: Any) -> list[Any]:
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return output(interpreter)


def output(interpreter: Any) -> list[Any]:
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return [list(found.shape), [round(float(v), 5) for v in found.reshape(-1)]]


def collect() -> None:
    """Free what is in circles, what only finalizers of that let go, and so on."""
    while gc.collect():
        pass


def words(function: Callable[[], Any]) -> str:
    """Return what a call raises; its type is left out, the message is what counts."""
    try:
        function()
    except Exception as error:  # noqa: BLE001 - the message is the result
        return str(error)
    return "no error"
