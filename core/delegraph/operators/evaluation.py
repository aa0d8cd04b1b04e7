"""Evaluates one node without a graph; delegates use this for tables of integer operators.

An 8-bit operator of one operand is a table of 256 results; an operator of two operands is a table
of 65,536 results. Delegraph's own kernel fills the table, so results are the same.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass, field
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import CallableSubgraph, Eval, Node, Registration
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


@dataclass(slots=True)
class _Work:
    """Working memory of a kernel that runs alone, allocated when it is requested."""

    data: NDArray[Any]


@dataclass(slots=True)
class _Bench:
    """An ``OpContext`` in which a single node can be prepared and run, without a graph."""

    tensors: list[Tensor]
    numerics: Numerics
    num_threads: int = 1
    memory_limit: MemoryLimit = field(default_factory=MemoryLimit.of_machine)
    resources: MutableMapping[Any, Any] = field(default_factory=dict)

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        tensor.shape = tuple(shape)
        tensor.data = np.empty(shape, tensor.dtype)

    def set_dynamic(self, tensor: Tensor) -> None:
        raise OperatorError(f"tensor {tensor.name!r} is dynamic, expected a known shape")

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> _Work:
        return _Work(np.empty(shape, dtype))

    def subgraph(self, index: int) -> CallableSubgraph:
        raise OperatorError(f"subgraph {index} is out of reach")


def evaluate_node(
    registration: Registration,
    node: Node,
    tensors: Sequence[Tensor],
    inputs: Sequence[NDArray[Any]],
    numerics: Numerics,
) -> NDArray[Any]:
    """Compute one node on the arrays *inputs*, and return its first output.

    *registration* is its kernel, and *tensors* are those of its graph. *numerics* are the official
    kernels whose rounding is reproduced.

    Raises:
        OperatorError: the kernel rejects the node.
    """
    run, output = prepare_alone(registration, node, tensors, inputs, numerics)
    with np.errstate(all="ignore"):
        run()
    result: NDArray[Any] = output.data
    return result


def prepare_alone(
    registration: Registration,
    node: Node,
    tensors: Sequence[Tensor],
    inputs: Sequence[NDArray[Any]],
    numerics: Numerics,
) -> tuple[Eval, Tensor]:
    """Prepare one node without its graph; return its evaluation and its output tensor.

    Args:
        registration: the kernel, as :func:`delegraph.builtin_registration` returns it.
        node: the node; the kernel gets its options and version.
        tensors: tensors of the node's graph; the kernel gets their types and quantization.
        inputs: an array for each of the first inputs, of any shape that suits the operator; later
            inputs are absent.
        numerics: official kernels whose rounding is reproduced.

    Raises:
        OperatorError: the kernel rejects the node.
    """
    present = (*node.inputs[: len(inputs)], *node.outputs[:1])
    if len(present) <= len(inputs) or min(present) < 0:
        raise OperatorError(f"{registration.name} lacks an input or an output")
    arrays = (*inputs, None)
    bench_tensors = [
        _like(tensors[index], array, i)
        for i, (index, array) in enumerate(zip(present, arrays, strict=True))
    ]
    bench = _Bench(bench_tensors, numerics)
    alone = Node(
        0, tuple(range(len(inputs))), (len(inputs),), node.intermediates, node.options,
        node.custom_options, node.version, node.user_data, node.delegate,
    )  # fmt: skip
    return registration.prepare(bench, alone), bench_tensors[-1]


def _like(tensor: Tensor, array: NDArray[Any] | None, index: int) -> Tensor:
    """Return a tensor with type and quantization of *tensor* and the shape of *array*.

    An output without a value has no array.
    """
    shape = tensor.shape if array is None else array.shape
    copy = Tensor(index, tensor.type, shape, name=tensor.name, quantization=tensor.quantization)
    copy.data = array
    return copy


def every_value(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return all values of *dtype*, an 8- or 16-bit integer type, in the order of their bits.

    >>> every_value(np.dtype(np.int8))[126:130].tolist()
    [126, 127, -128, -127]
    """
    return np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype)
