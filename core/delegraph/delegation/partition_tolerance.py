"""Tolerance for the results of a partition: the tolerances of its nodes, summed along its paths.

Each node adds its error to the errors of its inputs. So the result of several nodes in a row may
have a larger error than one node's tolerance. Along the worst path to a tensor, errors are added up
in two ways:

- as shares of the largest value, since nodes enlarge and reduce errors as they do values;
- as real values, since a difference of large numbers keeps their errors.

For a quantized tensor only the first sum counts, and a quantization step is a share of the tensor's
range. For other tensors the larger sum counts. :data:`SLACK` times the sum is allowed, because
nodes may enlarge errors more than values. Where real errors are rounded to a quantized tensor, one
more step is allowed. After a node whose result jumps (:data:`STEPS`), such as an index, values
cannot be compared.

Values from :data:`HUGE` on are no largest values: they would hide the errors of all others. Each of
them may be off by :data:`SLACK` times the sum of shares of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.tolerance import Tolerance
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

STEPS = frozenset({
    "ARG_MAX", "ARG_MIN", "BUCKETIZE", "CEIL", "EQUAL", "FAKE_QUANT", "FLOOR", "FLOOR_DIV",
    "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5", "NOT_EQUAL", "ONE_HOT", "ROUND", "SIGN", "TOPK_V2", "UNIQUE",
    "WHERE",
})  # fmt: skip
"""Operators for which a small difference of inputs can give a large difference of outputs."""

SLACK = 4
"""Factor by which results of several nodes may exceed the sum of errors."""

_STEPS_OF = {"INT4": 8, "UINT4": 8, "INT8": 128, "UINT8": 128, "INT16": 32768}
HUGE = 1e18
"""Values from this number on stand for infinity, for example where masks add them."""

_FLOATS = ("FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "COMPLEX64", "COMPLEX128")


@dataclass(frozen=True, slots=True)
class ComputedTensor:
    """A tensor that a node computed, with its type and range.

    Attributes:
        index: tensor index.
        type: element type.
        steps: half of a quantized tensor's range, in quantization steps; 0 for other tensors.
        largest: largest absolute value below :data:`HUGE` of a tensor that is not quantized.
        has_huge: whether the tensor has values of :data:`HUGE` or more.
    """

    index: int
    type: TensorType
    steps: int
    largest: float
    has_huge: bool = False


@dataclass(frozen=True, slots=True)
class HugeTolerance(Tolerance):
    """Tolerance that is wider for values whose magnitude is :data:`HUGE` or more.

    Attributes:
        huge: allowed difference of these values, as a share of the right value; the tolerance of
            the other values is added to it.
    """

    huge: float = 0.0

    def __str__(self) -> str:
        return f"{Tolerance.__str__(self)}; {self.huge:g} relative from {HUGE:g} on"

    def compare(self, found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
        """Return by how much each element's difference exceeds the tolerance; <= 0 if allowed.

        *found* and *expected* are as in :meth:`Tolerance.compare`.
        """
        of_huge = Tolerance(self.relative + self.huge, self.absolute).compare(found, expected)
        others = Tolerance.compare(self, found, expected)
        with np.errstate(all="ignore"):  # garbage may be a signalling NaN
            return np.where(np.abs(expected) < HUGE, others, of_huge)


@dataclass(frozen=True, slots=True)
class ComputedNode:
    """A node that Delegraph's kernels have computed.

    Attributes:
        form: operator, types and options of the node.
        inputs: tensor indices.
        outputs: tensors that the node wrote, including variables that are its inputs.
    """

    form: NodeTraits
    inputs: tuple[int, ...]
    outputs: tuple[ComputedTensor, ...]

    @classmethod
    def of(cls, operator: str, node: Node, tensors: Sequence[Tensor]) -> ComputedNode:
        """Return the record of a node that has just run.

        Args:
            operator: operator name of the node.
            node: the node.
            tensors: tensors of its subgraph, by index; tensors that it wrote have data.
        """
        read = tuple(i for i in node.inputs if i >= 0)
        written = [i for i in node.outputs if i >= 0] + [i for i in read if tensors[i].is_variable]
        outputs = tuple(_computed(i, tensors[i]) for i in written)
        return cls(NodeTraits.of(operator, node, tensors), read, outputs)


def partition_tolerances(
    nodes: Iterable[ComputedNode], capabilities: Capabilities
) -> dict[int, Tolerance | None]:
    """Return the tolerance that a delegate has for each computed tensor, by tensor index.

    A tolerance of None means that only the shape can be compared, after a node whose result jumps.

    Args:
        nodes: nodes of a partition, in the order in which they ran.
        capabilities: capabilities of the delegate, with its tolerances.
    """
    found: dict[int, Tolerance | None] = {}
    errors: dict[int, _Error] = {}
    for node in nodes:
        inner = [i for i in node.inputs if i in errors]
        passed = _Error.largest(errors[i] for i in inner)
        is_unknown = any(found[i] is None for i in inner)
        for y in node.outputs:
            own = capabilities.tolerance_of(y.type, node.form)
            errors[y.index] = passed.after(own, y)
            if is_unknown or (passed and _jumps(node.form.operator, y.type)):
                found[y.index] = None
            else:
                found[y.index] = errors[y.index].allowed(y) if inner else own
    return found


class _Error(NamedTuple):
    """Largest error that may have reached a tensor through the nodes before it.

    Attributes:
        share: sum of the errors as shares of the tensor's largest value.
        absolute: sum of the absolute errors of nodes that are not quantized, as real values.
    """

    share: float = 0.0
    absolute: float = 0.0

    @classmethod
    def largest(cls, errors: Iterable[_Error]) -> _Error:
        return cls(*(max(parts) for parts in zip((0.0, 0.0), *errors, strict=True)))

    def __bool__(self) -> bool:
        return self.share > 0 or self.absolute > 0

    def after(self, own: Tolerance, y: ComputedTensor) -> _Error:
        """Return the error of the tensor *y*, computed from a tensor with this error.

        Args:
            own: tolerance of the node that computes *y*.
            y: the computed tensor.
        """
        if y.steps:
            return _Error(self.share + own.relative + own.absolute / y.steps, self.absolute)
        absolute = own.absolute + own.relative * y.largest
        return _Error(self.share + own.relative, self.absolute + absolute)

    def allowed(self, y: ComputedTensor) -> Tolerance:
        if y.steps:
            tipped = 1.0 if self.absolute > 0 else 0.0
            return Tolerance(0.0, SLACK * self.share * y.steps + tipped)
        absolute = SLACK * max(self.share * y.largest, self.absolute)
        if y.has_huge:
            return HugeTolerance(0.0, absolute, SLACK * self.share)
        return Tolerance(0.0, absolute)


def _jumps(operator: str, type: TensorType) -> bool:
    return operator in STEPS or (operator == "CAST" and type.name not in _FLOATS)


def _computed(index: int, tensor: Tensor) -> ComputedTensor:
    steps = _STEPS_OF.get(tensor.type.name, 0) if tensor.scale else 0
    if steps:
        return ComputedTensor(index, tensor.type, steps, 0.0)
    return ComputedTensor(index, tensor.type, 0, *_largest(tensor))


def _largest(tensor: Tensor) -> tuple[float, bool]:
    """Largest absolute value below :data:`HUGE`, and whether there are values from it on."""
    data = tensor.data
    if data is None or not data.size or data.dtype.kind in "ObSU":
        return 0.0, False
    with np.errstate(all="ignore"):
        sizes = np.abs(data)
        top = float(sizes.max())
        if top < HUGE:
            return top, False
        return float(sizes.max(where=sizes < HUGE, initial=0)), True
