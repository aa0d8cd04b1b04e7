from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import CustomOp, Interpreter
from delegraph.runtime.execution.node_dependencies import tasks_of
from delegraph.runtime.execution.schedule import StateUse, Task
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model, tensor
from support.asynchronous_delegate import Late
from support.by_name import ByName, doubling_while
from support.policy_models import counting, remembering


def tasks(model: bytes, *delegates: Any, **options: Any) -> list[Task]:
    interpreter = Interpreter(model_content=model, delegates=delegates, **options)
    interpreter.session.resources["", "v"] = np.zeros(4, np.float32)
    subgraph = interpreter.session.subgraphs[0]
    subgraph.prepare_all()
    return tasks_of(subgraph.plan, subgraph.steps.evals, subgraph.tensors)


CUSTOM = graph_model(
    [("Twice", "x", "a"), ("ADD", "x x", "b", AddOptions()), ("ADD", "a b", "y", AddOptions())],
    inputs="x",
    outputs="y",
    tensors={"x": tensor((4,))},
)


def test_only_kernels_with_eval_async_are_asynchronous() -> None:
    found = tasks(CUSTOM, ByName("Twice"), Late("ADD"))
    assert sorted(task.is_asynchronous for task in found) == [False, True]


def test_variables_are_written_by_those_that_read_them() -> None:
    (task,) = tasks(remembering())
    assert task.reads[-1] in task.writes


@pytest.mark.parametrize("model", [counting(), doubling_while()])
def test_resources_and_calls_are_state(model: bytes) -> None:
    assert StateUse.CERTAIN in [task.state for task in tasks(model)]


def test_custom_operators_may_have_state_where_a_delegate_computes_them() -> None:
    states = [task.state for task in tasks(CUSTOM, ByName("Twice"))]
    assert states[:1] == [StateUse.MAYBE]
    assert set(states[1:]) == {StateUse.NONE}


def test_custom_operators_of_python_keep_their_order() -> None:
    twice = CustomOp("Twice", lambda x: x + x)
    assert tasks(CUSTOM, custom_ops={"Twice": twice})[0].state is StateUse.CERTAIN
