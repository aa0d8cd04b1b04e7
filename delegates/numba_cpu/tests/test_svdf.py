"""SVDF with float or 8-bit weights, against Delegraph's own kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from delegated import assert_near, delegate, levels, run
from delegraph import Interpreter, PlacementPolicy, PlacementRule
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import SVDFOptions
from delegraph.testing import TensorDef, constant, graph_model, tensor


class Layers:
    """A model of layers behind one another, with an operator in between if there are several.

    Args:
        batch: rows of the input.
        inputs: their length.
        layers: units, rank and window of each layer.
        between: an operator of one input.
        is_hybrid: whether weights have 8 bits.
        options: of the layers.
    """

    def __init__(
        self,
        batch: int,
        inputs: int,
        *layers: tuple[int, int, int],
        between: str = "",
        is_hybrid: bool = False,
        **options: Any,
    ) -> None:
        self.is_hybrid, self.random = is_hybrid, np.random.default_rng([batch, inputs])
        self.shape = (batch, inputs)
        nodes: list[Any] = []
        tensors = {"x": tensor(self.shape)}
        last = "x"
        for i, (units, rank, window) in enumerate(layers):
            if i and between:
                nodes.append((between, last, f"b{i}"))
                last = f"b{i}"
                tensors[last] = tensor((batch, inputs))
            tensors[f"f{i}"] = self._weights((units * rank, inputs))
            tensors[f"t{i}"] = self._weights((units * rank, window))
            tensors[f"c{i}"] = constant(self.random.standard_normal(units).astype(np.float32))
            tensors[f"s{i}"] = tensor((batch, units * rank * window), is_variable=True)
            tensors[f"y{i}"] = tensor((batch, units))
            names = f"{last} f{i} t{i} c{i} s{i}"
            nodes.append(("SVDF", names, f"y{i}", SVDFOptions(rank=rank, **options)))
            last, inputs = f"y{i}", units
        self.model = graph_model(nodes, inputs="x", outputs=last, tensors=tensors)

    def _weights(self, shape: tuple[int, int]) -> TensorDef:
        if self.is_hybrid:
            return constant(self.random.integers(-127, 128, shape).astype(np.int8), scale=0.01)
        return constant(self.random.standard_normal(shape).astype(np.float32))

    def assert_agrees(
        self, level: str = "auto", threads: int = 1, rules: Sequence[PlacementRule] = ()
    ) -> Interpreter:
        """Check five steps, and five more after a reset; return the delegated interpreter."""
        ours = Interpreter(
            model_content=self.model,
            experimental_delegates=[delegate(level, num_threads=threads)],
            placement=PlacementPolicy(rules=rules),
        )
        theirs = Interpreter(model_content=self.model)
        svdf = [node for node in ours.placement.nodes if node.op == "SVDF"]
        assert all(node.delegate == "numba_cpu" for node in svdf)
        for step in range(10):
            if step == 5:
                ours.reset_all_variables()
                theirs.reset_all_variables()
            x = self.random.standard_normal(self.shape).astype(np.float32)
            assert_near(run(ours, x), run(theirs, x), 1e-3)
        return ours


@levels
@pytest.mark.parametrize("is_hybrid", [False, True])
@pytest.mark.parametrize("window", [1, 2, 10, 17, 40])
@pytest.mark.parametrize("rank", [1, 2])
def test_any_windows(level: str, is_hybrid: bool, window: int, rank: int) -> None:
    layers = Layers(3, 37, (19, rank, window), is_hybrid=is_hybrid, asymmetric_quantize_inputs=True)
    layers.assert_agrees(level)


@levels
@pytest.mark.parametrize("activation", list(Act))
def test_all_activations(level: str, activation: Act) -> None:
    Layers(2, 8, (35, 1, 4), fused_activation_function=activation).assert_agrees(level)


@pytest.mark.parametrize("is_hybrid", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_work(is_hybrid: bool, threads: int) -> None:
    layers = Layers(8, 300, (200, 2, 30), (100, 1, 8), is_hybrid=is_hybrid)
    layers.assert_agrees(threads=threads)


@pytest.mark.parametrize("is_hybrid", [False, True])
def test_each_partition_keeps_its_states(is_hybrid: bool) -> None:
    layers = Layers(2, 12, (12, 1, 6), (12, 2, 5), between="COS", is_hybrid=is_hybrid)
    interpreter = layers.assert_agrees(rules=[PlacementRule("exclude", operators=["COS"])])
    placed = [node.delegate for node in interpreter.placement.nodes]
    assert placed == ["numba_cpu", None, "numba_cpu"]
