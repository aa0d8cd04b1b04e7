"""Loops and branches whose shapes are fixed with the file's inputs, and open with others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from delegraph import Interpreter
from delegraph.native import LiteRtInterpreter
from delegraph.schema.options import AddOptions, IfOptions, ReducerOptions, WhileOptions
from delegraph.testing import constant, subgraphs_model, tensor
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions
from loop_model import LIMIT, run

ROWS = tensor((1, 2), shape_signature=(-1, 2))
NAMES: dict[str, Any] = dict.fromkeys(("x", "h", "h2", "y"), ROWS)
ONE_ROW = constant(np.float32([[1, 2]]))


def growing() -> bytes:
    """Return a model that adds *x* to one row, which becomes as many, until an element is 9."""
    main = (
        [("WHILE", "one x", "h2 y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))],
        "x",
        "h2",
        NAMES | {"one": ONE_ROW},
    )
    small = [("REDUCE_MAX", "h axis", "m", ReducerOptions()), ("LESS", "m limit", "holds")]
    tensors = NAMES | LIMIT | {"axis": constant(np.int32([0, 1]))}
    body = ([("ADD", "h x", "h2", AddOptions())], "h x", "h2 x", NAMES)
    return subgraphs_model([main, (small, "h x", "holds", tensors), body])


def branched() -> bytes:
    """Return a model that returns all rows, or their sum."""
    calls = IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    main = ([("IF", "c x", "y", calls)], "c x", "y", NAMES | {"c": tensor((), "BOOL")})
    rows = ([("ADD", "x one", "y", AddOptions())], "x", "y", NAMES | {"one": ONE_ROW})
    axis = {"axis": constant(np.int32([0]))}
    total = ([("SUM", "x axis", "y", ReducerOptions(keep_dims=True))], "x", "y", NAMES | axis)
    return subgraphs_model([main, rows, total])


def delegated(model: bytes, host: Any) -> Any:
    """Return an interpreter in which JAX has the only node of the first subgraph."""
    interpreter = host(model_content=model, experimental_delegates=[JaxDelegate(JaxOptions())])
    [owner] = [node.delegate for node in interpreter.placement.nodes if node.subgraph == 0]
    assert owner == "jax"
    return interpreter


@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
def test_a_state_may_grow_to_the_batch_in_the_first_turn(host: Any) -> None:
    with delegated(growing(), host) as interpreter:
        for rows in (1, 3, 2, 1):
            x = np.full((rows, 2), 4, np.float32)
            np.testing.assert_array_equal(run(interpreter, x), [[9, 10]] * rows)


@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
def test_branches_may_give_other_shapes(host: Any) -> None:
    with delegated(branched(), host) as interpreter:
        for rows in (1, 3, 1):
            x = np.full((rows, 2), 4, np.float32)
            np.testing.assert_array_equal(run(interpreter, True, x), [[5, 6]] * rows)
            np.testing.assert_array_equal(run(interpreter, False, x), [[4 * rows, 4 * rows]])
