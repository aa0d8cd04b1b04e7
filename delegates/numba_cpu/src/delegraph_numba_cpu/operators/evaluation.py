"""Delegraph's own kernels, run while a program is made: what integer operators give is tabulated.

An 8-bit operator of one operand is a table of 256 results, one of two operands a table of 65,536.
The core's kernel fills it, so the results here are its results.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph import Node, Rejection, Tensor, builtin_registration
from delegraph.errors import OperatorError
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import CallableSubgraph
from delegraph_numba_cpu.operators.registry import Call


@dataclass(slots=True)
class _Work:
    """Working memory of a kernel."""

    data: NDArray[Any]


@dataclass(slots=True)
class _Bench:
    """A context with the tensors of one node, and memory at once."""

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


def evaluate(
    call: Call, inputs: Sequence[NDArray[Any]], numerics: Numerics | None = None
) -> NDArray[Any]:
    """Return what the core's kernel makes of other inputs: its first output.

    Args:
        call: the node; types, quantization and options are its own.
        inputs: an array for each input, of any shape that suits the operator.
        numerics: which official kernels to round like; the host's if not given.

    Raises:
        OperatorError: the kernel refuses the node.
    """
    tensors = [_like(call.input(i), array, i) for i, array in enumerate(inputs)]
    tensors.append(_like(call.output(), None, len(tensors)))
    bench = _Bench(tensors, numerics or call.context.numerics)
    node = Node(
        0,
        tuple(range(len(inputs))),
        (len(inputs),),
        options=call.node.options,
        version=call.node.version,
    )
    registration = builtin_registration(call.name)
    if registration is None:
        raise OperatorError(f"Delegraph has no kernel of {call.name}")
    run = registration.prepare(bench, node)
    with np.errstate(all="ignore"):
        run()
    result: NDArray[Any] = tensors[-1].data
    return result


def check_evaluation(call: Call, inputs: Sequence[NDArray[Any]]) -> Rejection | None:
    """Reject all but nodes that the core's kernel takes; *inputs* as of :func:`evaluate`."""
    try:
        evaluate(call, inputs)
    except OperatorError as error:
        return Rejection("parameters", actual=str(error))
    return None


def _like(tensor: Tensor, array: NDArray[Any] | None, index: int) -> Tensor:
    """Return a tensor with the type and quantization of another."""
    shape = tensor.shape if array is None else array.shape
    copy = Tensor(index, tensor.type, shape, name=tensor.name, quantization=tensor.quantization)
    copy.data = array
    return copy


def every_value(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return all values of an 8- or 16-bit integer type, in the order of their bits."""
    return np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype)
