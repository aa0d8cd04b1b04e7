"""Partition as a Python function that JAX can trace, compile and differentiate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph import DelegateParams
from delegraph.arithmetic import dense_values
from delegraph.errors import OperatorError, in_words
from delegraph.operators import Numerics
from delegraph_jax.graphs import Graph, Step, graphs_of
from delegraph_jax.operators import Call, operator_of
from delegraph_jax.operators.registry import Doubt, all_of


class TracedGraphs:
    """Subgraphs that call each other, as one function, which computes the first subgraph.

    Args:
        graphs: the subgraphs.
        numerics: official kernels whose rounding is used.
    """

    def __init__(self, graphs: Sequence[Graph], numerics: Numerics) -> None:
        self._graphs, self._numerics = graphs, numerics

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs of the first subgraph for the inputs *arguments*."""
        return self._run(0, arguments)[0]

    def checked(self, doubts: list[str], *arguments: Any) -> list[Any]:
        """Return the outputs, then the flags of all doubts (possible wrong values), ``[D], bool``.

        The error texts of the flags are added to *doubts* during tracing.
        """
        outputs, found = self._run(0, arguments)
        doubts += [why for _, why in found]
        return [*outputs, all_of(found)]

    def _run(self, index: int, arguments: Sequence[Any]) -> tuple[list[Any], list[Doubt]]:
        graph = self._graphs[index]
        # Values are NumPy arrays, so that operations on constants are computed once, during
        # tracing.
        values: dict[int, Any] = {
            tensor.index: np.asarray(dense_values(tensor)) for tensor in graph.constants
        }
        values.update(zip(graph.inputs, arguments, strict=True))
        doubts: list[Doubt] = []
        for step in graph.steps:
            doubts += self._compute(step, graph, values)
        return [jnp.asarray(values[i]) for i in graph.outputs], doubts

    def _compute(self, step: Step, graph: Graph, values: dict[int, Any]) -> list[Doubt]:
        """Compute *step*'s node, add its outputs to *values*, and return doubts.

        *values* has the value of each tensor of *graph* by index.
        """
        node, tensors = step.node, graph.tensors
        call = Call(node, step.registration, tensors, values, self._numerics, self._run)
        try:
            results = operator_of(call.name, node, tensors).compute(call)
        except Exception as error:
            raise OperatorError(f"{step.where}: {in_words(error)}") from error
        if not isinstance(results, Sequence):
            results = (results,)
        for index, output, result in zip(node.outputs, call.outputs, results, strict=True):
            if index < 0:
                continue
            if result.shape != output.shape:
                raise OperatorError(
                    f"{step.where} gives {list(result.shape)}, the host expects "
                    f"{list(output.shape)}"
                )
            values[index] = result.astype(np.dtype(output.dtype))
        return [(is_wrong, f"{step.where}: {why}") for is_wrong, why in call.doubts]


class TracedPartition:
    """A partition as a function that returns the outputs for input arrays.

    Attributes:
        inputs: tensor indices of the arguments: the partition's inputs without constants.
        outputs: tensor indices of the results.
    """

    def __init__(self, params: DelegateParams, numerics: Numerics) -> None:
        tensors = params.context.tensors
        self._params, self._numerics = params, numerics
        self.inputs = [i for i in params.input_tensors if not tensors[i].is_constant]
        self.outputs = list(params.output_tensors)

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs, in the order of :attr:`outputs`.

        Raises:
            OperatorError: a node cannot be computed, or the shape of its result differs from the
                host's.
        """
        return self._graphs(*arguments)

    @cached_property
    def _graphs(self) -> TracedGraphs:
        """Function for all subgraphs, which is built at the first call because it needs memory."""
        return TracedGraphs(graphs_of(self._params.partition_model()), self._numerics)
