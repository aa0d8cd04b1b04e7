"""A model in segments: where it is cut, and what goes from one to the next."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

import delegraph_edgetpu
from compiled_models import DIGITS, random_inputs
from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph.schema.options import Conv2DOptions
from delegraph.testing import tensor
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu import PipelinedModelRunner
from delegraph_edgetpu.segments import balanced
from quantised_chains import bias, chain, q, weights


def heaviest(weights: list[int], slices: list[tuple[int, int]]) -> int:
    return max(sum(weights[start:end]) for start, end in slices)


def test_no_other_division_has_a_lighter_heaviest_part() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        given = rng.integers(0, 50, rng.integers(1, 9)).tolist()
        count = int(rng.integers(1, len(given) + 1))
        found = balanced(given, count)
        assert [start for start, _ in found[1:]] == [end for _, end in found[:-1]]
        assert (found[0][0], found[-1][1]) == (0, len(given))
        assert all(start < end for start, end in found)
        every = combinations(range(1, len(given)), count - 1)
        bounds = ([0, *cuts, len(given)] for cuts in every)
        best = min(heaviest(given, list(pairwise(b))) for b in bounds)
        assert heaviest(given, found) == best


def test_segments_are_named_as_the_real_compiler_names_them() -> None:
    assert [c.name for c in delegraph_edgetpu.compile(DIGITS, segments=3)] == [
        "digits_int8_segment_0_of_3_edgetpu.tflite",
        "digits_int8_segment_1_of_3_edgetpu.tflite",
        "digits_int8_segment_2_of_3_edgetpu.tflite",
    ]


@pytest.mark.parametrize("count", [1, 2, 5, 15])
@pytest.mark.parametrize("balance", ["multiply-adds", "parameters"])
def test_segments_one_after_the_other_are_the_model(count: int, balance: str) -> None:
    model = DIGITS.read_bytes()
    compiled = delegraph_edgetpu.compile(model, segments=count, balance=balance)  # type: ignore[arg-type]
    inputs = random_inputs(model)
    with PipelinedModelRunner([Interpreter(model_content=c.model) for c in compiled]) as runner:
        runner.push(inputs)
        found = runner.pop()
    assert isinstance(found, list)
    expected = outputs_of(Interpreter(model_content=model), inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_outputs_made_early_come_out_in_order_at_the_end() -> None:
    nodes = [("RELU", "x", "a"), ("RELU", "a", "b"), ("RELU", "b", "c"), ("RELU", "c", "d")]
    model = chain(nodes, outputs="d a b")
    compiled = delegraph_edgetpu.compile(model, segments=4)
    segments = [Interpreter(model_content=compilation.model) for compilation in compiled]
    assert [d["name"] for d in segments[-1].get_output_details()] == ["d", "a", "b"]
    inputs = random_inputs(model)
    expected = outputs_of(Interpreter(model_content=model), inputs)
    with PipelinedModelRunner(segments) as runner:
        runner.push(inputs)
        found = runner.pop()
    assert isinstance(found, list)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_operators_on_the_cpu_are_in_the_first_and_the_last_segment() -> None:
    model = chain(
        [("QUANTIZE", "x", "a"), ("RELU", "a", "b"), ("RELU", "b", "c"), ("DEQUANTIZE", "c", "y")],
        outputs="y",
        tensors={"x": tensor((1, 4)), "y": tensor((1, 4))},
    )
    first, last = delegraph_edgetpu.compile(model, segments=2)
    assert [o.name for o in first.operators] == ["QUANTIZE", "RELU"]
    assert [o.name for o in last.operators] == ["RELU", "DEQUANTIZE"]


def test_each_segment_has_a_cache_and_a_token_of_its_own() -> None:
    compiled = delegraph_edgetpu.compile(DIGITS, segments=3)
    assert len({c.executable.caching_token for c in compiled}) == 3
    assert all(c.memory.cached_bytes == c.memory.parameter_bytes for c in compiled)


def test_balance_says_what_is_shared_equally() -> None:
    model = chain(
        [
            ("CONV_2D", "x w0 b0", "a", Conv2DOptions(stride_w=1, stride_h=1)),
            ("CONV_2D", "a w1 b1", "b", Conv2DOptions(stride_w=8, stride_h=8)),
            ("CONV_2D", "b w2 b2", "y", Conv2DOptions(stride_w=1, stride_h=1)),
        ],
        outputs="y",
        tensors={
            "x": q(1, 8, 8, 2), "w0": weights(2, 1, 1, 2), "b0": bias(2), "a": q(1, 8, 8, 2),
            "w1": weights(2, 1, 1, 2), "b1": bias(2), "b": q(1, 1, 1, 2),
            "w2": weights(50, 1, 1, 2), "b2": bias(50), "y": q(1, 1, 1, 50),
        },
    )  # fmt: skip
    by_work = delegraph_edgetpu.compile(model, segments=2)
    by_bytes = delegraph_edgetpu.compile(model, segments=2, balance="parameters")
    assert [len(c.operators) for c in by_work] == [1, 2]
    assert [len(c.operators) for c in by_bytes] == [2, 1]


def test_more_segments_than_operators_are_refused() -> None:
    model = chain([("RELU", "x", "y")], outputs="y")
    with pytest.raises(ArgumentError, match="2 segments, expected 1 to 1"):
        delegraph_edgetpu.compile(model, segments=2)
