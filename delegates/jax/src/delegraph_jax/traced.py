"""A partition as one function of its inputs, which JAX can trace, compile and differentiate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from delegraph import DelegateContext, DelegateParams
from delegraph.arithmetic.weights import dense_values
from delegraph.errors import OperatorError, in_words
from delegraph_jax.operators import Call, operator_of


class TracedPartition:
    """The nodes of a partition, to be called with the arrays it reads.

    Attributes:
        inputs: tensor indices of the arguments: what it reads and the file does not hold.
        outputs: tensor indices of the results.
    """

    def __init__(self, context: DelegateContext, params: DelegateParams) -> None:
        self._tensors, self._numerics = context.tensors, context.numerics
        self._nodes = [context.get_node_and_registration(i) for i in params.nodes_to_replace]
        self.inputs = [i for i in params.input_tensors if not self._tensors[i].is_constant]
        self.outputs = list(params.output_tensors)
        read = {i for node, _ in self._nodes for i in node.inputs if i >= 0}
        self._constants = {
            i: self._tensors[i] for i in sorted(read) if self._tensors[i].is_constant
        }

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs, in the order of :attr:`outputs`.

        Raises:
            OperatorError: a node cannot be computed, or its result has another shape than the host
                says.
        """
        return self._computed(arguments)[0]

    def checked(self, *arguments: Any) -> list[Any]:
        """Return the outputs, and which of the doubts about the values are true: ``[D], bool``."""
        outputs, doubts = self._computed(arguments)
        return [*outputs, jnp.array([is_wrong for is_wrong, _ in doubts], np.bool_)]

    def doubts(self) -> list[str]:
        """Return what each of the doubts is about."""
        found: list[str] = []

        def keep(*arguments: Any) -> list[Any]:
            outputs, doubts = self._computed(arguments)
            found.extend(why for _, why in doubts)
            return outputs

        tensors = [self._tensors[i] for i in self.inputs]
        jax.eval_shape(keep, *[jax.ShapeDtypeStruct(each.shape, each.dtype) for each in tensors])
        return found

    def _computed(self, arguments: Sequence[Any]) -> tuple[list[Any], list[tuple[Any, str]]]:
        values: dict[int, Any] = {
            # A copy: JAX may otherwise keep a view of memory that is the host's. One of NumPy:
            # what is done with constants alone is done once, while tracing.
            i: np.array(dense_values(tensor))
            for i, tensor in self._constants.items()
        }
        values.update(zip(self.inputs, arguments, strict=True))
        doubts: list[tuple[Any, str]] = []
        for node, registration in self._nodes:
            call = Call(node, registration, self._tensors, values, self._numerics)
            try:
                results = operator_of(call.name, node, self._tensors).compute(call)
            except Exception as error:
                raise OperatorError(
                    f"node {node.index} ({call.name}): {in_words(error)}"
                ) from error
            where = f"node {node.index} ({call.name})"
            doubts += [(is_wrong, f"{where}: {why}") for is_wrong, why in call.doubts]
            if not isinstance(results, Sequence):
                results = (results,)
            for index, output, result in zip(node.outputs, call.outputs, results, strict=True):
                if result.shape != output.shape:
                    raise OperatorError(
                        f"node {node.index} ({call.name}) gives {list(result.shape)}, the host "
                        f"expects {list(output.shape)}"
                    )
                values[index] = result.astype(np.dtype(output.dtype))
        return [values[i] for i in self.outputs], doubts
