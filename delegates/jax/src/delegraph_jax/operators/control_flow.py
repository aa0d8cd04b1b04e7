"""WHILE, IF and other operators that call subgraphs, as loops and branches of XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from delegraph_jax.operators.registry import MOVED, Call, Callee, operator


@operator("WHILE", MOVED, features=("subgraph",), lacks=("dynamic-shapes",))
def while_loop(call: Call) -> Any:
    """Return the values of a WHILE loop after its last iteration.

    Flags of wrong values (doubts) that are set in an iteration remain set in later iterations.
    """
    condition = call.callee(call.options.cond_subgraph_index)
    body = call.callee(call.options.body_subgraph_index)
    start = [jnp.asarray(value) for value in call.inputs()]

    def turn(state: Any) -> Any:
        values, _, wrong = state
        values, wrong_body = body(values)
        [holds], wrong_condition = condition(values)
        return values, holds.reshape(()), [wrong[0] | wrong_body, wrong[1] | wrong_condition]

    [holds], wrong = condition(start)
    none = jnp.zeros(len(body.doubts(start)), bool)
    found, _, wrongs = lax.while_loop(
        lambda state: state[1], turn, (start, holds.reshape(()), [none, wrong])
    )
    call.doubt(wrongs, [body.doubts(start), condition.doubts(start)])
    return found


@operator("IF", MOVED, features=("subgraph",), lacks=("dynamic-shapes",), condition="BOOL")
def branch(call: Call) -> Any:
    """Return the outputs of the branch of an IF that input 0 selects."""
    options = call.options
    indices = (options.else_subgraph_index, options.then_subgraph_index)
    return chosen(call, call.input(0).astype(jnp.int32), indices)


@operator("STABLEHLO_CASE", MOVED, features=("subgraph",), lacks=("dynamic-shapes",))
def case(call: Call) -> Any:
    """Return the outputs of the subgraph with the number in input 0, or of the last subgraph."""
    indices = call.options.branch_subgraph_indices
    number = call.input(0)
    is_inside = (number >= 0) & (number < len(indices))
    return chosen(call, jnp.where(is_inside, number, len(indices) - 1), indices)


@operator("STABLEHLO_COMPOSITE", MOVED, features=("subgraph",), lacks=("dynamic-shapes",))
def composite(call: Call) -> Any:
    """Return the outputs of the composite's decomposition."""
    decomposition = call.callee(call.options.decomposition_subgraph_index)
    values = call.inputs()
    found, wrong = decomposition(values)
    call.doubt([wrong], [decomposition.doubts(values)])
    return found


def chosen(call: Call, position: Any, indices: Sequence[int]) -> Any:
    """Return the outputs of the subgraph that *position* selects; its inputs are all but input 0.

    *position*, a number in *indices*, is known only in a run.
    """
    callees = [call.callee(index) for index in indices]
    values = [jnp.asarray(value) for value in call.inputs()[1:]]
    doubts = [callee.doubts(values) for callee in callees]

    def taken(own: int, callee: Callee) -> Any:
        def run(*values: Any) -> Any:
            found, wrong = callee(values)
            wrongs = [jnp.zeros(len(each), bool) for each in doubts]
            wrongs[own] = wrong
            return found, wrongs

        return run

    branches = [taken(own, callee) for own, callee in enumerate(callees)]
    found, wrongs = lax.switch(jnp.asarray(position).reshape(()), branches, *values)
    call.doubt(wrongs, doubts)
    return found
