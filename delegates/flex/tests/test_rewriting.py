"""Builtin operators rewritten as Flex operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import ActivationFunctionType, Interpreter
from delegraph.errors import ArgumentError, NodeError, ResizeError
from delegraph.schema import read_model, write_model
from delegraph.schema.options import AddOptions, ReducerOptions
from delegraph.testing import OperatorCase, cases, constant, fed, operator_case
from delegraph_flex import CannotFlexify, flexify
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.rewrite_rules import RULES
from flex_models import flex_model, results

SINES = Path(__file__).parents[3] / "docs" / "demo" / "models" / "sines.tflite"
EXECUTORS = ["numpy", *(["tensorflow"] if has_tensorflow() else [])]
X = np.array([0.5], np.float32)
ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2}
"""Relative; NumPy computes narrow floats operation by operation, builtin kernels in float32."""


def test_sines_flexified_in_part_run_in_three_ways_with_equal_results() -> None:
    plain = results(Interpreter(str(SINES)), X)
    for executor in EXECUTORS:
        for nodes, partitions in ((["SIN"], [(0,), (3,)]), (None, [(0, 1, 2, 3, 4)])):
            model = flexify(SINES, nodes)
            interpreter = Interpreter(model_content=model, delegates=[f"flex:executor={executor}"])
            assert [p.nodes for p in interpreter.placement.partitions] == partitions
            np.testing.assert_allclose(results(interpreter, X), plain, rtol=1e-6)


def test_nodes_are_chosen_by_index_too() -> None:
    interpreter = Interpreter(model_content=flexify(SINES, [4]))
    assert [node.op for node in interpreter.placement.nodes].count("FlexAddV2") == 1


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [([9], "no node 9; there are 5"), (["COS"], "no operator 'COS'; there are ADD, MUL, SIN")],
)
def test_a_node_that_does_not_exist_is_named(nodes: list[Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        flexify(SINES, nodes)


def test_an_operator_that_cannot_be_rewritten_is_left_unless_it_is_asked_for() -> None:
    fused = AddOptions(fused_activation_function=ActivationFunctionType.SIGN_BIT)
    model = flex_model(
        [("ADD", "x x", "a", fused), ("SIN", "a", "y", None)], inputs="x", outputs="y"
    )
    ops = [node.op for node in Interpreter(model_content=flexify(model)).placement.nodes]
    assert ops == ["ADD", "FlexSin"]
    with pytest.raises(CannotFlexify, match=r"node 0 \(ADD\): fused activation SIGN_BIT"):
        flexify(model, ["ADD"])


def test_reductions_of_truth_values_are_left() -> None:
    truth = fed(np.array([[True, False], [True, True]]))
    case = operator_case(
        "REDUCE_PROD", [truth, constant(np.int32([0]))], ["BOOL"], ReducerOptions()
    )
    with pytest.raises(CannotFlexify, match=r"node 0 \(REDUCE_PROD\): BOOL, which TensorFlow"):
        flexify(case.model(), ["REDUCE_PROD"])


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"Could not open 'gone\.tflite'"):
        flexify("gone.tflite")


@pytest.mark.repetition(2)
@pytest.mark.parametrize("op", sorted(RULES))
def test_a_rewritten_operator_gives_what_the_builtin_one_gives(op: str) -> None:
    rewritten = 0
    for case in cases(op, count=6):
        model = with_shapes(case.model())
        is_usual = all(is_finite(array) for step in case.steps for array in step)
        expected = steps_of(model, case, delegates=[]) if model and is_usual else None
        try:
            changed = flexify(model, [op]) if expected is not None else b""
        except CannotFlexify:
            continue
        if not changed:
            continue
        for executor in EXECUTORS:
            found = steps_of(changed, case, delegates=[f"flex:executor={executor}"])
            assert found is not None
            for array, right in zip(found, expected, strict=True):
                assert (array.dtype, array.shape) == (right.dtype, right.shape)
                dtype = right.dtype
                if dtype.kind in "fcV":  # bfloat16 is of kind V
                    assert is_finite(array) == is_finite(right)
                    wide = np.complex128 if dtype.kind == "c" else np.float64
                    array, right = (np.nan_to_num(a.astype(wide)) for a in (array, right))
                    rounding = ROUNDING.get(dtype.name, case.tolerance)
                    limit = rounding * float(np.max(np.abs(right), initial=0))
                    np.testing.assert_allclose(array, right, rtol=rounding, atol=limit)
                else:
                    np.testing.assert_array_equal(array, right)
        rewritten += 1
    assert rewritten


def is_finite(array: Any) -> bool:
    """Whether the values are finite, so that builtin kernels, which clamp, should agree."""
    if array.dtype.kind not in "fcV":
        return True
    return bool(np.all(np.abs(array.astype(np.complex128)) < 1e30))


def with_shapes(model: bytes) -> bytes | None:
    """Return a model with declared shapes as allocated; None if it cannot be allocated."""
    interpreter = Interpreter(model_content=model, delegates=[])
    try:
        interpreter.allocate_tensors()
    except (NodeError, ResizeError):
        return None
    tensors = interpreter.session.subgraphs[0].tensors
    record = read_model(np.frombuffer(model, np.uint8))
    first, *others = record.subgraphs or ()
    shaped = tuple(
        old.replace(shape=new.shape, has_rank=not new.is_dynamic)
        for old, new in zip(first.tensors or (), tensors, strict=True)
    )
    return write_model(record.replace(subgraphs=(first.replace(tensors=shaped), *others)))


def steps_of(model: bytes, case: OperatorCase, **arguments: Any) -> list[Any] | None:
    """Return the outputs of every step; None if the model cannot run."""
    interpreter = Interpreter(model_content=model, **arguments)
    try:
        return [array for step in case.steps for array in results(interpreter, *step)]
    except (NodeError, ResizeError):
        if arguments["delegates"]:
            raise
        return None
