from __future__ import annotations

import numpy as np

from delegraph.graph import parse_model
from delegraph.graph.lifetimes import Lifetime, tensor_lifetimes
from delegraph.testing import constant, one_op_model, tensor


def test_a_constant_is_there_before_the_plan_and_an_output_after_it() -> None:
    weight = constant(np.ones(2, np.float32))
    graph = parse_model(one_op_model("ADD", [tensor((2,)), weight], [tensor((2,))])).subgraphs[0]
    assert tensor_lifetimes(graph.operators, graph.inputs, graph.outputs) == {
        0: Lifetime(-1, 0),
        1: Lifetime(-1, 0),
        2: Lifetime(0, 1),
    }


class Step:
    def __init__(self, inputs: list[int], outputs: list[int]) -> None:
        self.inputs, self.outputs = inputs, outputs


def test_the_last_reader_counts_and_absent_inputs_do_not() -> None:
    steps = [Step([0, -1], [1]), Step([1], [2]), Step([1, 2], [3])]
    lifetimes = tensor_lifetimes(steps, [0], [3])
    assert lifetimes == {
        0: Lifetime(-1, 0),
        1: Lifetime(0, 2),
        2: Lifetime(1, 2),
        3: Lifetime(2, 3),
    }


def test_a_result_that_nobody_reads_ends_where_it_starts() -> None:
    assert tensor_lifetimes([Step([], [5])], [], [])[5] == Lifetime(0, 0)


def test_a_graph_input_that_nobody_reads_ends_before_the_plan() -> None:
    assert tensor_lifetimes([], [4], [])[4] == Lifetime(-1, -1)
