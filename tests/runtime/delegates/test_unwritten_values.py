"""Values that a delegate does not write, which ``validate`` finds at the first run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, Node
from delegraph.errors import DelegateNodeError
from delegraph.testing import graph_model, tensor
from support.asynchronous_delegate import LateFaultyKernel
from support.by_name import sines
from support.faulty_delegate import Faulty, first_output
from support.policy_models import MODELS, delegated, stepped, undelegated

VALIDATE = FailurePolicy(validate=True)


class Forgetful(Faulty):
    """Leaves the last *count* values of its first output as they were."""

    def __init__(self, count: int, **given: Any) -> None:
        self.count = count
        super().__init__(at_start=self._remember, fault=self._put_back, **given)

    def _remember(self, context: Any, node: Node, run: int) -> None:
        self.before = context.tensors[node.outputs[0]].data.copy()

    def _put_back(self, context: Any, node: Node, run: int) -> None:
        y = context.tensors[node.outputs[0]].data.reshape(-1)
        y[y.size - self.count :] = self.before.reshape(-1)[y.size - self.count :]


def _negated(type: str) -> bytes:
    q = {"scale": 0.05} if type == "INT8" else {}
    tensors = {"x": tensor((50,), type, **q), "y": tensor((50,), type, **q)}
    return graph_model([("ABS", "x", "y")], inputs="x", outputs="y", tensors=tensors)


@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "INT16"])
@pytest.mark.parametrize("count", [1, 20])
def test_values_that_are_not_written_are_counted(type: str, count: int) -> None:
    interpreter = Interpreter(
        model_content=_negated(type), delegates=[Forgetful(count)], failures=VALIDATE
    )
    x = np.arange(50).astype(interpreter.get_input_details()[0]["dtype"])
    wanted = rf"eval wrote only {50 - count} of 50 values of its output Tensor\(1, 'y', {type}"
    for _ in range(2):  # it stays an error
        with pytest.raises(DelegateNodeError, match=wanted):
            stepped(interpreter, [x])


def test_such_a_result_falls_back() -> None:
    interpreter, found = delegated(
        "chain", Forgetful(2), failures=FailurePolicy("fallback", validate=True)
    )
    np.testing.assert_array_equal(found, undelegated("chain"))
    assert "wrote only 2 of 4 values" in interpreter.incidents[0].error


def test_a_value_that_is_the_mark_is_right_and_states_advance_once() -> None:
    marks: list[Any] = []
    delegate = Faulty(
        at_start=first_output(lambda y: marks.append(y.data[:1].copy())),
        fault=first_output(lambda y: y.data.__setitem__(slice(1), marks[0])),
    )
    _, found = delegated("resource", delegate, failures=VALIDATE)
    assert delegate.runs == len(MODELS["resource"][1]) + 1
    for y, right in zip(found, undelegated("resource"), strict=True):
        np.testing.assert_array_equal(y[1:], right[1:])
        assert y[:1].tobytes() == marks[0].tobytes()


def test_without_validation_a_part_is_not_looked_for() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Forgetful(2)])
    stepped(interpreter, MODELS["chain"][1])


def test_kernels_that_are_started_are_checked_as_well() -> None:
    class Late(Forgetful):
        def create_delegate_kernel_interface(self) -> LateFaultyKernel:
            return LateFaultyKernel(self)

    with pytest.raises(DelegateNodeError, match="wrote only 2 of 4 values"):
        delegated("chain", Late(2), failures=VALIDATE)
    _, found = delegated("chain", Late(0), failures=VALIDATE)
    np.testing.assert_array_equal(found, undelegated("chain"))
