"""Checks whether a wrong result comes from a wrong kernel or from magnified float rounding.

A node that quantizes floats turns a difference in the last bit into a whole quantization step. To
find the cause, each node is run alone, by Delegraph's kernels and by the delegate. Both get the
inputs that Delegraph's kernels compute.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.delegate import Delegate
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.partition_model import PartitionModel, partition_model
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import OperatorError, in_words
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.tensor import Tensor
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.delegates.original_nodes import OriginalNodes
from delegraph.runtime.execution.steps import Step
from delegraph.runtime.options import FailurePolicy
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType

logger = logging.getLogger(__name__)

_INTERPRETER = "delegraph.runtime.interpreter"
"""Name of the interpreter's module, which is imported when needed because it imports this one."""

_Values = dict[int, NDArray[Any]]
"""Mapping from the index of a tensor to its values."""

_INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT2)


@dataclass(frozen=True, slots=True)
class _OneNode:
    """A single node as a partition for :func:`partition_model`."""

    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]

    @classmethod
    def of(cls, step: Step) -> _OneNode:
        node, _ = step
        inputs = dict.fromkeys(i for i in node.inputs if i >= 0)
        return cls((node.index,), tuple(inputs), tuple(i for i in node.outputs if i >= 0))


def magnified(
    subgraph: Subgraph,
    originals: OriginalNodes,
    delegate: Delegate,
    capabilities: Capabilities,
    tolerances: Mapping[int, Tolerance | None],
) -> str | None:
    """Return text that names the node that magnified rounding differences; None if none is found.

    None means that a node is wrong on equal inputs, that the cause cannot be determined, or that
    the delegate's results are within the tolerances when nodes run one by one.

    Args:
        subgraph: the subgraph, whose tensors are as they were when the partition ran.
        originals: the nodes of the partition, which have run.
        delegate: the delegate whose results are outside its tolerance.
        capabilities: capabilities of the delegate.
        tolerances: tolerance of each tensor of the partition; None for a tensor that is not
            compared.
    """
    tensors, steps = subgraph.tensors, originals.nodes
    if delegate.is_isolated or not any(_quantizes_floats(step, tensors) for step in steps[1:]):
        return None
    touched = {i for node, _ in steps for i in (*node.inputs, *node.outputs) if i >= 0}
    if any(_is_opaque(tensors[i]) for i in touched):
        return None
    comparison = _Comparison(subgraph, delegate, capabilities, tolerances)
    try:
        with originals.as_computed():
            return comparison.run(steps, originals.inputs)
    except Exception as error:  # noqa: BLE001 - a plugin's code; then nothing is known
        logger.debug("nodes of %r cannot run alone: %s", delegate.name(), in_words(error))
        return None


def _quantizes_floats(step: Step, tensors: Sequence[Tensor]) -> bool:
    """Whether the node of *step* quantizes a float input, for its outputs or weights."""
    node, _ = step
    read, written = ([tensors[i] for i in ids if i >= 0] for ids in (node.inputs, node.outputs))
    if not read or read[0].type is not TensorType.FLOAT32:
        return False
    weights = [tensor for tensor in read[1:] if tensor.is_constant]
    return any(tensor.type in _INTEGERS for tensor in (*weights, *written))


def _is_opaque(tensor: Tensor) -> bool:
    is_packed = tensor.is_packed and not tensor.is_constant
    return tensor.is_variable or tensor.type in OBJECT_TYPES or is_packed


class _Comparison:
    """Runs nodes one by one, with Delegraph's kernels and with a delegate, on the same inputs."""

    def __init__(
        self,
        subgraph: Subgraph,
        delegate: Delegate,
        capabilities: Capabilities,
        tolerances: Mapping[int, Tolerance | None],
    ) -> None:
        self._context, self._tensors = subgraph.context, subgraph.tensors
        self._delegate, self._capabilities = delegate, capabilities
        self._tolerances = tolerances

    def run(self, steps: Sequence[Step], inputs: Sequence[int]) -> str | None:
        """Run nodes one by one on equal inputs, by Delegraph's kernels and by the delegate.

        The result is text that names the node that magnifies rounding differences; None as for
        :func:`magnified`.
        """
        fed = [i for i in inputs if not self._tensors[i].is_constant]
        right: _Values = {i: self._tensors[i].data.copy() for i in fed}
        mine, found = dict(right), None
        for step in steps:
            node, registration = step
            alone = partition_model(self._context, _OneNode.of(step))
            expected = self._outputs(alone, right)
            form = NodeTraits.of(registration.name, node, self._tensors)
            own = {
                i: self._capabilities.tolerance_of(self._tensors[i].type, form) for i in expected
            }
            if _are_outside(own, self._outputs(alone, right, self._delegate), expected):
                return None
            right |= expected
            mine |= self._outputs(alone, mine, self._delegate)
            allowed = self._tolerances
            if registration.name == "QUANTIZE":  # it turns a rounding into a step
                allowed = dict.fromkeys(expected, Tolerance())
            if found is None and _are_outside(allowed, mine, expected):
                found = f"node {node.index} ({registration.name})"
        if found is None:
            return None
        return f"roundings were magnified by {found}; each node is right on equal inputs"

    def _outputs(self, alone: PartitionModel, values: _Values, *delegates: Delegate) -> _Values:
        """Run the one-node model *alone*; return its outputs by the whole model's tensor indices.

        *values* has the inputs by tensor index. An empty *delegates* means Delegraph's kernels.

        Raises:
            OperatorError: the delegate does not take the node.
        """
        make = importlib.import_module(_INTERPRETER).Interpreter
        kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        if self._context.numerics == "reference":
            kernels = OpResolverType.BUILTIN_REF
        with make(
            model_content=alone.content,
            delegates=delegates,
            experimental_op_resolver_type=kernels,
            failures=FailurePolicy("raise"),
        ) as interpreter:
            if delegates and any(node.delegate is None for node in interpreter.placement.nodes):
                raise OperatorError("the delegate leaves the node when it is alone")
            interpreter.allocate_tensors()
            for index, entry in zip(alone.inputs, interpreter.get_input_details(), strict=True):
                interpreter.set_tensor(entry["index"], values[index])
            interpreter.invoke()
            outputs = zip(alone.outputs, interpreter.get_output_details(), strict=True)
            return {index: interpreter.get_tensor(entry["index"]) for index, entry in outputs}


def _are_outside(
    tolerances: Mapping[int, Tolerance | None], found: _Values, expected: _Values
) -> bool:
    """Whether a tensor in *found* differs from *expected* by more than its tolerance.

    All three arguments are by tensor index; a tensor without a tolerance is not compared.
    """
    for index, values in expected.items():
        allowed = tolerances.get(index)
        if allowed is not None and (allowed.compare(found[index], values) > 0).any():
            return True
    return False
