"""Loops and branches inside a partition, in both hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

import jax

from delegraph import Interpreter
from delegraph.errors import DelegraphError, OperatorError
from delegraph.native import LiteRtInterpreter
from delegraph.schema import options as o
from delegraph.testing import constant, subgraphs_model, tensor
from delegraph_jax import kernel
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.gradients import gradients
from delegraph_jax.options import JaxOptions
from loop_model import DOUBLE, LIMIT, SMALL, TWO, X, loop, run


def branched(second: Any = DOUBLE) -> bytes:
    """Return a model that squares its input in one branch; *second* is the other branch."""
    calls = o.IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    main = [("IF", "c x", "y", calls)]
    square = ([("SQUARE", "x", "y")], "x", "y", X)
    return subgraphs_model([(main, "c x", "y", X | {"c": tensor((), "BOOL")}), square, second])


def delegated(model: bytes, host: Any = Interpreter) -> Any:
    """Return an interpreter in which JAX has every node of the first subgraph."""
    interpreter = host(model_content=model, experimental_delegates=[JaxDelegate(JaxOptions())])
    taken = [node.delegate for node in interpreter.placement.nodes if node.subgraph == 0]
    assert set(taken) == {"jax"}
    return interpreter


def reasons(model: bytes) -> str:
    with Interpreter(
        model_content=model, experimental_delegates=[JaxDelegate(JaxOptions())]
    ) as interpreter:
        [node] = [n for n in interpreter.placement.nodes if n.subgraph == 0 and n.index == 0]
        assert node.delegate is None
        return " ".join(str(rejection) for rejection in node.rejections.values())


@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
@pytest.mark.parametrize("x", [[1, 0.5], [100, 1], [1, 2, 3, 0.25, -1]])
def test_loops_turn_as_often_as_they_should(host: Any, x: Sequence[float]) -> None:
    expected = np.float32(x)
    while expected.max() < 9:
        expected = expected * 2
    with delegated(loop(), host) as interpreter:
        np.testing.assert_array_equal(run(interpreter, x), -expected)


@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
def test_branches_are_chosen_by_the_condition(host: Any) -> None:
    with delegated(branched(), host) as interpreter:
        np.testing.assert_array_equal(run(interpreter, True, [3, 4]), [9, 16])
        np.testing.assert_array_equal(run(interpreter, False, [3, 4]), [6, 8])


@pytest.mark.parametrize(
    ("number", "expected"), [(0, [9, 16]), (1, [6, 8]), (7, [6, 8]), (-1, [6, 8])]
)
def test_numbers_outside_choose_the_last_case(number: int, expected: list[float]) -> None:
    calls = o.StablehloCaseOptions(branch_subgraph_indices=(1, 2))
    main = ([("STABLEHLO_CASE", "i x", "y", calls)], "i x", "y", X | {"i": tensor((), "INT32")})
    square = ([("SQUARE", "x", "y")], "x", "y", X)
    with delegated(subgraphs_model([main, square, DOUBLE])) as interpreter:
        np.testing.assert_array_equal(run(interpreter, number, [3, 4]), expected)


def test_composites_are_their_decomposition() -> None:
    calls = o.StableHLOCompositeOptions(name="some.thing", decomposition_subgraph_index=1)
    main = ([("STABLEHLO_COMPOSITE", "x", "y", calls)], "x", "y", X)
    with delegated(subgraphs_model([main, DOUBLE])) as interpreter:
        np.testing.assert_array_equal(run(interpreter, [3, 4]), [6, 8])


def test_loops_within_loops() -> None:
    calls = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=3)
    body = ([("WHILE", "x", "w", calls), ("MUL", "w two", "y", o.MulOptions())], "x", "y", X | TWO)
    outer = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = ([("WHILE", "x", "y", outer)], "x", "y", X)
    with delegated(subgraphs_model([main, SMALL, body, DOUBLE])) as interpreter:
        np.testing.assert_array_equal(run(interpreter, [1, 2]), [16 * 1, 16 * 2])


def test_a_node_inside_that_is_not_taken_is_named() -> None:
    body = ([("MUL", "x two", "w", o.MulOptions()), ("Mine", "w", "y")], "x", "y", X | TWO)
    with pytest.raises(DelegraphError, match="Mine"):  # nobody can prepare it
        run(Interpreter(model_content=loop(body), delegates=[]), [1, 2])
    assert "Mine" in reasons(loop(body))
    size = {"size": constant(np.int32([2]), "INT32")}
    random = (
        [("RANDOM_UNIFORM", "size", "w", o.RandomOptions()), ("ADD", "x w", "y", o.AddOptions())],
        "x",
        "y",
        X | size,
    )
    assert reasons(loop(random)).startswith("node 0 (RANDOM_UNIFORM) of subgraph 2: ")


def test_shapes_that_change_between_turns_are_refused() -> None:
    pads = {"pads": constant([[0, 1]], "INT32"), "y": tensor((3,))}
    longer = ([("PAD", "x pads", "y", o.PadOptions())], "x", "y", X | pads)
    assert "known only while it runs" in reasons(loop(longer))


def test_branches_of_different_shapes_are_refused() -> None:
    pads = {"pads": constant([[0, 1]], "INT32"), "y": tensor((3,))}
    longer = ([("PAD", "x pads", "y", o.PadOptions())], "x", "y", X | pads)
    assert "node 0 (IF) gives 'y' a shape" in reasons(branched(longer))


@pytest.mark.parametrize(
    ("first", "x", "turns"), [(0, 8, 1), (0, 7, 2), (0, 0, None), (-1, 6.5, None)]
)
def test_positions_outside_are_found_in_any_turn(first: int, x: float, turns: int | None) -> None:
    """Each iteration adds the next of two rows; other positions are out of range."""
    tensors = {
        "rows": constant(np.float32([1, 2])),
        "one": constant(np.int32(1), "INT32"),
        "i": tensor((), "INT32"),
        "j": tensor((), "INT32"),
        "row": tensor(()),
    }
    nodes = [
        ("GATHER", "rows i", "row", o.GatherOptions()),
        ("ADD", "x row", "y", o.AddOptions()),
        ("ADD", "i one", "j", o.AddOptions()),
    ]
    calls = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = ([("WHILE", "i x", "j y", calls)], "i x", "j y", X | tensors)
    condition = (SMALL[0], "i x", "holds", X | LIMIT | tensors)
    body = (nodes, "i x", "j y", X | tensors)
    with delegated(subgraphs_model([main, condition, body])) as interpreter:
        if turns is None:
            message = r"node 0 \(GATHER\) of subgraph 2: a position is outside \[0, 2\)"
            with pytest.raises(DelegraphError, match=message):
                run(interpreter, first, [x, x])
        else:
            assert run(interpreter, first, [x, x]) == first + turns


def test_doubts_of_the_branch_that_is_not_taken_do_not_count() -> None:
    tensors = {"rows": constant(np.float32([1, 2])), "i": tensor((2,), "INT32"), "y": tensor((2,))}
    pick = ([("GATHER", "rows i", "y", o.GatherOptions())], "i", "y", tensors)
    cast = ([("CAST", "i", "y")], "i", "y", tensors)
    calls = o.IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    main = ([("IF", "c i", "y", calls)], "c i", "y", tensors | {"c": tensor((), "BOOL")})
    with delegated(subgraphs_model([main, pick, cast])) as interpreter:
        np.testing.assert_array_equal(run(interpreter, False, [0, 7]), [0, 7])
        np.testing.assert_array_equal(run(interpreter, True, [0, 1]), [1, 2])
        with pytest.raises(DelegraphError, match=r"GATHER\) of subgraph 1: a position is outside"):
            run(interpreter, True, [0, 7])


@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
def test_bodies_are_compiled_once(
    host: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    found: list[tuple[int, ...]] = []
    compile = kernel.compiled

    def recorded(model: Any, *given: Any) -> bytes:
        found.append(model.called)
        return compile(model, *given)

    monkeypatch.setattr(kernel, "compiled", recorded)
    with host(
        model_content=loop(), experimental_delegates=[JaxDelegate(JaxOptions())], cache_dir=tmp_path
    ) as interpreter:
        run(interpreter, [1, 2])
    assert found == [(1, 2)]


def partition_of(interpreter: Interpreter, delegate: JaxDelegate) -> Any:
    interpreter.allocate_tensors()
    [partition] = delegate.partitions
    return partition


def test_derivatives_go_through_branches_backwards_and_through_loops_forwards() -> None:
    delegate = JaxDelegate(JaxOptions())
    x = np.float32([1, 2])
    with Interpreter(model_content=branched(), experimental_delegates=[delegate]) as interpreter:
        partition = partition_of(interpreter, delegate)
        _, slope = gradients(partition, [np.array(True), x])
        np.testing.assert_array_equal(slope, [2, 4])
    with Interpreter(model_content=loop(), experimental_delegates=[delegate]) as interpreter:
        partition = partition_of(interpreter, delegate)
        with pytest.raises(OperatorError, match=r"has a WHILE, through which .* forwards"):
            gradients(partition, [x])
        _, [slope] = jax.jvp(partition, [x], [np.ones(2, np.float32)])
        np.testing.assert_array_equal(slope, [-8, -8])
