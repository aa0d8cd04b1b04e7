"""Small models with everything that delegates may meet, and runs of them under a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.schema import options as o
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from support.by_name import sines
from support.faulty_delegate import Faulty
from support.running import result_of


def positive_positions() -> bytes:
    """Return a model of the squared positions of positive values, an output of dynamic shape."""
    tensors = {
        "zero": constant(np.zeros(1, np.float32)),
        "c": tensor((4,), "BOOL"),
        "w": tensor((4, 1), "INT64"),
        "f": tensor((4, 1)),
        "y": tensor((4, 1)),
    }
    return graph_model(
        [
            ("GREATER", "x zero", "c", o.GreaterOptions()),
            ("WHERE", "c", "w", o.WhereOptions()),
            ("CAST", "w", "f", o.CastOptions()),
            ("MUL", "f f", "y", o.MulOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors=tensors,
    )


def doubling() -> bytes:
    """Return a model of a loop and an addition: ``while x < 10: x = x + x``; then ``x + 1``."""
    one = {"x": tensor((1,)), "y": tensor((1,)), "z": tensor((1,))}
    options = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    unit = constant(np.ones(1, np.float32))
    loop = [("WHILE", "x", "z", options), ("ADD", "z unit", "y", o.AddOptions())]
    less = [("LESS", "x ten", "c", o.LessOptions())]
    ten = constant(np.array([10], np.float32))
    return subgraphs_model(
        [
            (loop, "x", "y", {**one, "unit": unit}),
            (less, "x", "c", {**one, "ten": ten, "c": tensor((1,), "BOOL")}),
            ([("ADD", "x x", "y", o.AddOptions())], "x", "y", one),
        ]
    )


def remembering() -> bytes:
    """Return a one-unit RNN, whose state is a variable tensor: h = x + h / 2."""
    tensors = {
        "x": tensor((1, 1)),
        "w": constant(np.ones((1, 1), np.float32)),
        "r": constant(np.full((1, 1), 0.5, np.float32)),
        "b": constant(np.zeros(1, np.float32)),
        "h": tensor((1, 1), is_variable=True),
        "y": tensor((1, 1)),
    }
    return graph_model(
        [("RNN", "x w r b h", "y", o.RNNOptions())], inputs="x", outputs="y", tensors=tensors
    )


def counting() -> bytes:
    """Return a model that adds x to a resource variable and returns the sum."""
    tensors = {"h": tensor((), "RESOURCE")}
    handle, read = o.VarHandleOptions(shared_name="v"), o.ReadVariableOptions()
    main = [
        ("VAR_HANDLE", "", "h", handle),
        ("READ_VARIABLE", "h", "old", read),
        ("ADD", "old x", "y", o.AddOptions()),
        ("ASSIGN_VARIABLE", "h y", "", o.AssignVariableOptions()),
    ]
    return graph_model(main, inputs="x", outputs="y", tensors=tensors)


def counting_in_a_branch() -> bytes:
    """Return a model like :func:`counting` with the variable in both branches of an IF."""
    tensors = {"h": tensor((), "RESOURCE")}
    branch = [
        ("VAR_HANDLE", "", "h", o.VarHandleOptions(shared_name="v")),
        ("READ_VARIABLE", "h", "old", o.ReadVariableOptions()),
        ("ADD", "old x", "y", o.AddOptions()),
        ("ASSIGN_VARIABLE", "h y", "", o.AssignVariableOptions()),
    ]
    either = [("IF", "c x", "y", o.IfOptions(then_subgraph_index=1, else_subgraph_index=1))]
    yes = constant(np.array([True]))
    return subgraphs_model([(either, "x", "y", {"c": yes}), (branch, "x", "y", tensors)])


def stepped(interpreter: Interpreter, steps: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the first output of one invoke per input."""
    index, results = interpreter.get_input_details()[0]["index"], []
    for x in steps:
        if tuple(interpreter.get_input_details()[0]["shape"]) != x.shape:
            interpreter.resize_tensor_input(index, x.shape)
        interpreter.allocate_tensors()
        results.append(result_of(interpreter, x))
    return results


def floats(count: int, *shape: int, seed: int = 0) -> list[NDArray[Any]]:
    """Return *count* arrays of *shape*, float32, around zero."""
    numbers = np.random.default_rng(seed)
    return [numbers.normal(size=shape or (4,)).astype(np.float32) for _ in range(count)]


STATEFUL = {
    "variable": (remembering(), floats(7, 1, 1)),
    "resource": (counting(), floats(7)),
    "branch": (counting_in_a_branch(), floats(7)),
}
MODELS = {
    "chain": (sines(), floats(7)),
    "resized": (sines(), [*floats(2), *floats(2, 3, 4), *floats(2, 2)]),
    "dynamic": (positive_positions(), floats(7)),
    "loop": (doubling(), [np.full(1, n, np.float32) for n in (1, 3, 20, 0.5)]),
    **STATEFUL,
}


def undelegated(name: str) -> list[Any]:
    """Return the results of a model without delegates."""
    model, steps = MODELS[name]
    interpreter = Interpreter(model_content=model)
    if name in ("resource", "branch"):
        interpreter.session.resources["", "v"] = np.zeros(4, np.float32)
    return stepped(interpreter, steps)


def delegated(name: str, delegate: Faulty, **policy: Any) -> tuple[Interpreter, list[Any]]:
    """Return an interpreter with a delegate and a policy, and its results."""
    model, steps = MODELS[name]
    interpreter = Interpreter(model_content=model, delegates=[delegate], **policy)
    if name in ("resource", "branch"):
        interpreter.session.resources["", "v"] = np.zeros(4, np.float32)
    return interpreter, stepped(interpreter, steps)


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """Check that arrays are equal bit for bit, except for the payload of NaN."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
