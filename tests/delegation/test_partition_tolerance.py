"""How far the results of several nodes may be off follows from what each may be."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import Capabilities, Claim, Tolerance
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.partition_tolerance import (
    SLACK,
    ComputedNode,
    ComputedTensor,
    partition_tolerances,
)
from delegraph.graph.model import Quantization
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

FLOAT, BYTE = TensorType.FLOAT32, TensorType.INT8
CLAIMED = Capabilities(
    [Claim("TANH", "FLOAT32", tolerance=Tolerance(0.5, 0.25))],
    tolerance={"FLOAT32": Tolerance(relative=0.125), "INT8": Tolerance(absolute=1)},
)


def floats(largest: float) -> tuple[TensorType, int, float]:
    return FLOAT, 0, largest


BYTES = (BYTE, 128, 0.0)
INDICES = (TensorType.INT64, 0, 9.0)


def chain(*steps: tuple[str, tuple[TensorType, int, float]]) -> list[ComputedNode]:
    """Nodes that read what the one before wrote; tensor 0 is given, node *n* writes *n* + 1."""
    return [
        ComputedNode(
            NodeTraits(op, (("input", kind[0].name), ("output", kind[0].name))),
            (i,),
            (ComputedTensor(i + 1, *kind),),
        )
        for i, (op, kind) in enumerate(steps)
    ]


def last(*steps: tuple[str, tuple[TensorType, int, float]]) -> Tolerance | None:
    return partition_tolerances(chain(*steps), CLAIMED)[len(steps)]


def test_a_single_node_is_held_to_its_own_tolerance() -> None:
    assert last(("NEG", floats(8))) == Tolerance(relative=0.125)
    assert last(("NEG", BYTES)) == Tolerance(absolute=1)
    assert last(("TANH", floats(1))) == Tolerance(0.5, 0.25)


@pytest.mark.parametrize(
    ("steps", "allowed"),
    [
        # Shares of the largest value add up ...
        ([("NEG", floats(8)), ("NEG", floats(8))], 0.25 * 8),
        ([("NEG", floats(8))] * 5, 0.625 * 8),
        # ... but what is left of large numbers has their errors,
        ([("NEG", floats(800)), ("SUB", floats(8))], 100 + 1),
        # and what is made of small ones has as large a share.
        ([("NEG", floats(1)), ("MUL", floats(80))], 0.25 * 80),
        # An operator may have a tolerance of its own, absolute as well.
        ([("NEG", floats(8)), ("TANH", floats(1))], 1 + 0.25 + 0.5),
        ([("TANH", floats(0)), ("TANH", floats(0))], 0.5),
        # Units of quantized tensors add up.
        ([("NEG", BYTES)] * 3, 3),
        ([("NEG", BYTES)] * 2 + [("DEQUANTIZE", floats(64))], (2 / 128 + 0.125) * 64),
    ],
)
def test_tolerances_of_nodes_in_a_row_are_added(
    steps: list[tuple[str, tuple[TensorType, int, float]]], allowed: float
) -> None:
    assert last(*steps) == Tolerance(0.0, SLACK * allowed)


def test_an_error_may_tip_the_rounding_to_a_quantized_result() -> None:
    exact = Capabilities(tolerance={"FLOAT32": Tolerance(absolute=1e-9)})
    found = partition_tolerances(chain(("NEG", floats(8)), ("QUANTIZE", BYTES)), exact)
    assert found[2] == Tolerance(absolute=1)


def test_exact_nodes_stay_exact_in_a_row() -> None:
    exact = Capabilities(tolerance={"FLOAT32": Tolerance()})
    for kind in (BYTES, floats(8), INDICES):
        found = partition_tolerances(chain(*[("NEG", kind)] * 4, ("ARG_MAX", INDICES)), exact)
        assert set(found.values()) == {Tolerance()}


@pytest.mark.parametrize("op", ["ARG_MAX", "CAST", "ROUND"])
def test_nothing_can_be_compared_once_an_error_has_met_a_step(op: str) -> None:
    assert last((op, INDICES)) == Tolerance()
    assert last(("NEG", floats(8)), (op, INDICES)) is None
    assert last(("NEG", floats(8)), (op, INDICES), ("NEG", floats(8))) is None
    assert last(("NEG", floats(8)), ("CAST", floats(8))) is not None


def test_the_worst_of_several_paths_counts() -> None:
    nodes = chain(*[("NEG", floats(8))] * 3)
    y = ComputedTensor(9, FLOAT, 0, 8.0)
    joined = ComputedNode(NodeTraits("ADD", ()), (0, 1, 3), (y,))
    found = partition_tolerances([*nodes, joined], CLAIMED)
    assert found[9] == Tolerance(0.0, SLACK * 4 * 0.125 * 8)


def test_what_a_node_wrote_is_read_off_its_tensors() -> None:
    quantization = Quantization(np.float32([0.5]), np.array([3]), 0)
    x = Tensor(0, FLOAT, (2,), is_variable=True, data=np.float32([-7, 2]))
    y = Tensor(1, BYTE, (1,), quantization=quantization, data=np.int8([4]))
    z = Tensor(2, FLOAT, (3,), data=np.float32([3, -np.inf, 3e38]))
    found = ComputedNode.of("MINE", Node(0, (0, -1), (1, 2)), [x, y, z])
    assert found.inputs == (0,)
    assert found.outputs == (
        ComputedTensor(1, BYTE, 128, 0.0),
        ComputedTensor(2, FLOAT, 0, 3.0, has_huge=True),
        ComputedTensor(0, FLOAT, 0, 7.0),
    )


def test_each_huge_value_is_held_to_a_share_of_itself() -> None:
    y = Tensor(2, FLOAT, (3,), data=np.float32([1, -2e33, np.inf]))
    written = ComputedNode.of("EXP", Node(1, (1,), (2,)), [y, y, y])
    allowed = partition_tolerances([*chain(("ABS", floats(8))), written], CLAIMED)[2]
    assert str(allowed) == "0 relative, 4.5 absolute; 1 relative from 1e+18 on"

    def excess(*found: float) -> list[bool]:
        assert allowed is not None
        return list(allowed.compare(np.float32(found), y.data) > 0)

    assert excess(5, -0.5e33, np.inf) == [False, False, False]
    assert excess(6, 0.5e33, 1) == [True, True, True]
