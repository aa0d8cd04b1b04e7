"""Tests of the delegates on small models; NumPy computes the right results."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import BuiltinOperator, Interpreter, TensorType
from delegraph.errors import PluginOptionError
from delegraph.schema import write_model
from delegraph.schema.enums import ActivationFunctionType as Activation
from delegraph.schema.options import AddOptions, MulOptions, SubOptions
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code

OPTIONS = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions}
TWO = 1  # the tensor that holds the constant 2

Step = tuple[str, tuple[int, ...], Activation]


def model(
    *steps: Step,
    type: TensorType = TensorType.FLOAT32,
    shape: tuple[int, ...] = (1,),
    constant_shape: tuple[int, ...] = (1,),
) -> bytes:
    """Return a ``.tflite``: tensor 0 is the input, 1 the constant 2, the i-th step writes 2 + i.

    A step is an operator, the tensors it reads, and its fused activation. The last one is the
    model's output.
    """
    two = np.full(constant_shape, 2, "<f4" if type == TensorType.FLOAT32 else "<i4")
    names = list(dict.fromkeys(op for op, _, _ in steps))
    operators = [
        Operator(
            opcode_index=names.index(op),
            inputs=inputs,
            outputs=(2 + i,),
            builtin_options=(
                OPTIONS[op](fused_activation_function=activation) if op in OPTIONS else None
            ),
        )
        for i, (op, inputs, activation) in enumerate(steps)
    ]
    tensors = [
        Tensor(shape=shape, type=type, buffer=0, name=f"t{i}") for i in range(2 + len(steps))
    ]
    tensors[TWO] = Tensor(shape=constant_shape, type=type, buffer=1, name="two")
    graph = SubGraph(
        tensors=tuple(tensors), inputs=(0,), outputs=(1 + len(steps),), operators=tuple(operators)
    )
    return write_model(
        Model(
            version=3,
            operator_codes=tuple(operator_code(BuiltinOperator[name]) for name in names),
            subgraphs=(graph,),
            buffers=(Buffer(), Buffer(data=np.frombuffer(two.tobytes(), np.uint8))),
        )
    )


def step(op: str, *inputs: int, activation: Activation = Activation.NONE) -> Step:
    return op, inputs, activation


SINES = (  # f(x) = sin(x) + x + sin(2x)
    step("SIN", 0),
    step("ADD", 2, 0),
    step("MUL", 0, TWO),
    step("SIN", 4),
    step("ADD", 3, 5),
)


def run(content: bytes, x: Any, *delegates: str) -> tuple[NDArray[Any], Interpreter]:
    """Return the output for *x*, and the interpreter that computed it."""
    interpreter = Interpreter(model_content=content, delegates=delegates)
    x = np.asarray(x)
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


def taken(interpreter: Interpreter) -> list[tuple[str, tuple[int, ...]]]:
    """Return the delegate and the nodes of every partition."""
    return [(p.delegate, p.nodes) for p in interpreter.placement.partitions]


def reason(interpreter: Interpreter, node: int, delegate: str) -> str:
    return str(interpreter.placement.nodes[node].rejections[delegate])


def test_sin_splits_f_into_four_subsets_and_f_of_2_is_right() -> None:
    y, interpreter = run(model(*SINES), np.float32([2]), "sin")
    np.testing.assert_allclose(y, [2.152495], rtol=1e-6)
    assert taken(interpreter) == [("sin", (0,)), ("sin", (3,))]
    with interpreter.profile() as profile:
        interpreter.invoke()
    ran = [event.name for event in profile.events]
    assert ran == ["sin", "ADD", "MUL", "sin", "ADD"]  # [SIN], [ADD, MUL], [SIN], [ADD]


def test_sin_of_sin_is_one_partition_and_its_inner_tensor_is_the_kernels_own() -> None:
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    y, interpreter = run(model(step("SIN", 0), step("SIN", 2)), x, "sin")
    np.testing.assert_allclose(y, np.sin(np.sin(x)), rtol=1e-6)
    assert taken(interpreter) == [("sin", (0, 1))]


def test_both_delegates_share_a_graph() -> None:
    x = np.float32([2])
    y, interpreter = run(model(*SINES), x, "sin", "add_sub")
    np.testing.assert_allclose(y, [2.152495], rtol=1e-6)
    assert str(interpreter.placement) == (
        "5 nodes: sin takes 2 in 2 partitions, add_sub takes 2 in 1 partition, "
        "1 stays with Delegraph's kernels"
    )
    assert taken(interpreter)[-1] == ("add_sub", (1, 4))  # [SIN, MUL, SIN] can all run before
    assert reason(interpreter, 2, "add_sub") == "op: is MUL, needs ADD or SUB"


def test_add_sub_runs_its_nodes_in_order_and_broadcasts() -> None:
    content = model(
        step("ADD", 0, TWO), step("SUB", 2, 0), step("SUB", 0, 3), constant_shape=(3, 1)
    )
    x = np.arange(4, dtype=np.float32)
    y, interpreter = run(content, x, "add_sub")
    np.testing.assert_array_equal(y, np.broadcast_to(x - 2, (3, 4)))
    assert taken(interpreter) == [("add_sub", (0, 1, 2))]


@pytest.mark.parametrize(
    ("activation", "low", "high"),
    [("NONE", -9, 9), ("RELU", 0, 9), ("RELU_N1_TO_1", -1, 1), ("RELU6", 0, 6)],
)
def test_add_sub_applies_fused_activations(activation: str, low: float, high: float) -> None:
    content = model(step("ADD", 0, TWO, activation=Activation[activation]))
    y, interpreter = run(content, np.float32([-9, -3, -2.5, 0, 7]), "add_sub")
    np.testing.assert_array_equal(y, np.clip([-7, -1, -0.5, 2, 9], low, high))
    assert taken(interpreter) == [("add_sub", (0,))]


def test_a_scalar_has_no_dimensions() -> None:
    content = model(step("SIN", 0), step("ADD", 2, TWO), shape=(), constant_shape=())
    y, interpreter = run(content, np.float32(1), "sin", "add_sub")
    np.testing.assert_allclose(y, np.sin(1) + 2, rtol=1e-6)
    assert len(taken(interpreter)) == 2


def test_results_follow_a_resize() -> None:
    _, interpreter = run(model(step("SIN", 0), step("SIN", 2)), np.float32([1]), "sin")
    x = np.linspace(0, 1, 5, dtype=np.float32)
    interpreter.resize_tensor_input(0, [5])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(3), np.sin(np.sin(x)), rtol=1e-6)
    assert taken(interpreter) == [("sin", (0, 1))]


def test_integers_are_left_with_a_reason() -> None:
    content = model(step("ADD", 0, TWO), type=TensorType.INT32)
    y, interpreter = run(content, np.int32([5]), "add_sub", "sin")
    np.testing.assert_array_equal(y, [7])
    assert taken(interpreter) == []
    assert reason(interpreter, 0, "add_sub") == "input is INT32; claimed is FLOAT32"
    assert reason(interpreter, 0, "sin") == "op: is ADD, needs SIN"


def test_an_activation_without_a_range_is_left_with_a_reason() -> None:
    content = model(step("ADD", 0, TWO, activation=Activation.TANH))
    interpreter = Interpreter(model_content=content, delegates=["add_sub"])
    assert reason(interpreter, 0, "add_sub") == (
        "activation: is TANH, needs NONE or RELU or RELU_N1_TO_1 or RELU6"
    )


def test_min_nodes_leaves_small_partitions() -> None:
    _, interpreter = run(model(*SINES), np.float32([2]), "add_sub:min_nodes=3")
    assert taken(interpreter) == []
    assert reason(interpreter, 1, "add_sub") == "min-nodes-per-partition: is 2, needs 3"


def test_min_nodes_must_be_positive() -> None:
    with pytest.raises(PluginOptionError, match="is 0, expected int, 1 or more"):
        Interpreter(model_content=model(*SINES), delegates=["add_sub:min_nodes=0"])


def test_listing_imports_no_delegate() -> None:
    code = (
        "import sys; from delegraph.plugins import installed\n"
        "assert {'add_sub', 'sin'} <= {offer.spec.name for offer in installed().offers()}\n"
        "print(*(m for m in sys.modules if m in ('delegraph_example.sin', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
