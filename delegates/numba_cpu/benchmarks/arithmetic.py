"""How much arithmetic a node asks for, whoever computes it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph_numba_cpu.lowering import Call


def multiply_adds(call: Call) -> int:
    """Return how many products a node adds up; 0 for operators that are not about products."""
    count = _COUNTS.get(call.name)
    return 0 if count is None else count(call)


def _conv(call: Call) -> int:
    return prod(call.output().shape) * prod(call.input(1).shape[1:])


def _depthwise_conv(call: Call) -> int:
    return prod(call.output().shape) * prod(call.input(1).shape[1:3])


def _transpose_conv(call: Call) -> int:
    return prod(call.input(2).shape[:-1]) * prod(call.input(1).shape)


def _fully_connected(call: Call) -> int:
    return prod(call.output().shape) * int(call.input(1).shape[-1])


def _batch_matmul(call: Call) -> int:
    inner = call.input(0).shape[-2 if call.options.adj_x else -1]
    return prod(call.output().shape) * int(inner)


_COUNTS: dict[str, Callable[[Call], int]] = {
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise_conv,
    "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _transpose_conv,
}


class _Counting(SimpleDelegateInterface):
    """Takes nothing, and counts."""

    def __init__(self) -> None:
        self.total = 0

    def name(self) -> str:
        return "counting"

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        self.total += multiply_adds(Call.of(context, node, registration))
        return Rejection("nothing", "only counted")

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        raise AssertionError("takes no node")


def model_multiply_adds(model: Path) -> int:
    """Return how many products a model adds up, in the shapes that the file declares."""
    counting = _Counting()
    Interpreter(str(model), experimental_delegates=[counting]).close()
    return counting.total
