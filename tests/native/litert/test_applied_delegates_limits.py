"""Limits on memory and size in both official APIs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import DelegateContext, DelegateFlags, Limits, Node
from delegraph.errors import ModelError, OperatorError
from delegraph.native import LiteRtInterpreter, compiled_model
from delegraph.schema.options import IfOptions
from delegraph.testing import constant, subgraphs_model
from support.by_name import ByName, ByNameKernel, sines

pytest.importorskip("ai_edge_litert.compiled_model")


def in_interpreter(content: bytes, count: int, **arguments: Any) -> None:
    made = LiteRtInterpreter(model_content=content, **arguments)
    made.resize_tensor_input(0, [count])
    made.allocate_tensors()
    made.invoke()


def in_compiled_model(content: bytes, count: int, **arguments: Any) -> None:
    with compiled_model(content, **arguments) as made:
        made.resize_input_tensor(0, [count], strict=False)
        made.run_by_index(0, made.create_input_buffers(0), made.create_output_buffers(0))


def nested() -> bytes:
    """Return a model with an IF within an IF."""
    yes = constant(np.array([True]))
    inner = [
        [("IF", "c x", "y", IfOptions(then_subgraph_index=i, else_subgraph_index=i))]
        for i in (1, 2)
    ]
    last = [("SIN", "x", "y")]
    return subgraphs_model([(nodes, "x", "y", {"c": yes}) for nodes in (*inner, last)])


both_apis = pytest.mark.parametrize("run", [in_interpreter, in_compiled_model])


@both_apis
@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DelegateFlags.ALLOW_DYNAMIC_TENSORS])
def test_tensors_that_take_more_memory_are_an_error(run: Any, flags: DelegateFlags) -> None:
    limits = Limits(memory=100_000)
    run(sines(), 1000, delegates=[ByName("SIN", flags=flags)], limits=limits)
    with pytest.raises(OperatorError, match=r"needs \d+ bytes, more than the limit of 100000"):
        run(sines(), 10_000, delegates=[ByName("SIN", flags=flags)], limits=limits)


@both_apis
def test_a_kernel_learns_the_limit_and_cannot_exceed_it(run: Any) -> None:
    seen = []

    class Kernel(ByNameKernel):
        def prepare(self, context: DelegateContext, node: Node) -> None:
            seen.append(context.memory_limit.bytes)
            context.resize_tensor(context.tensors[node.outputs[0]], [1000])

    with pytest.raises(OperatorError, match="needs 4000 bytes, more than the limit of 3000"):
        run(sines(), 4, delegates=[ByName("SIN", kernel=Kernel)], limits=Limits(memory=3000))
    assert set(seen) == {3000}


@both_apis
@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(tables=3), "more tables than the limit of 3"),
        (Limits(depth=1), "call each other 2 deep, more than the limit of 1"),
        (Limits(memory=1), "limit of 1 byte"),
    ],
    ids=["tables", "depth", "memory"],
)
def test_limits_hold_for_the_file(run: Any, limits: Limits, text: str) -> None:
    with pytest.raises((ModelError, OperatorError), match=text):
        run(nested(), 1, delegates=[], limits=limits)
