"""One partition as an executable of XLA, run on the host's own arrays."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable
from numpy.typing import NDArray

from delegraph import DelegateContext, DelegateParams, Node, SimpleDelegateKernelInterface
from delegraph.errors import OperatorError
from delegraph_jax.compiling import compile_safely, version
from delegraph_jax.traced import TracedPartition


class JaxKernel(SimpleDelegateKernelInterface):
    """One partition."""

    def __init__(self, device: jax.Device, partitions: list[TracedPartition]) -> None:
        self._device = device
        self._partitions = partitions
        self._compiled: dict[tuple[tuple[int, ...], ...], Any] = {}
        self._arguments: list[Any] = []

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self._params = params
        self.traced = TracedPartition(context, params)
        self._partitions.append(self.traced)
        self._inputs = [context.tensors[i] for i in self.traced.inputs]
        self._outputs = [context.tensors[i] for i in self.traced.outputs]

    def prepare(self, context: DelegateContext, node: Node) -> None:
        shapes = tuple(tensor.shape for tensor in (*self._inputs, *self._outputs))
        if shapes not in self._compiled:
            self._compiled = {shapes: self._compile(context)}
        self._run = self._compiled[shapes]

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        with jax.enable_x64(True):
            self._arguments = [shared(tensor.data, self._device) for tensor in self._inputs]

    def eval(self, context: DelegateContext, node: Node) -> None:
        with jax.enable_x64(True):
            *results, is_wrong = self._run(*self._arguments)
        if is_wrong.size and np.asarray(is_wrong).any():
            with jax.enable_x64(True):
                doubts = self.traced.doubts()
            raise OperatorError(doubts[int(np.argmax(is_wrong))])
        for tensor, result in zip(self._outputs, results, strict=True):
            np.copyto(tensor.data, np.asarray(result))

    def close(self) -> None:
        self._compiled = {}
        self._arguments = []
        if self.traced in self._partitions:
            self._partitions.remove(self.traced)

    def _compile(self, context: DelegateContext) -> Any:
        """Return the executable for the shapes of now, from the cache if it is there."""
        platform = self._device.platform
        key = f"{self._params.partition_model().digest} {platform} {self._device.device_kind}"
        path = context.cache("jax", version()).get_or_make(key, self._executable)
        return serialize_executable.deserialize_and_load(
            path.read_bytes(),
            jax.tree.structure((tuple(self._inputs), {})),
            jax.tree.structure([*self._outputs, 0]),
            backend=platform,
            execution_devices=[self._device],
        )

    def _executable(self) -> bytes:
        with jax.enable_x64(True), jax.default_device(self._device):
            arguments = [
                jax.ShapeDtypeStruct(tensor.shape, tensor.dtype) for tensor in self._inputs
            ]
            lowered = jax.jit(self.traced.checked, keep_unused=True).lower(*arguments)
            compiled = compile_safely(lowered, self._device.platform)
        payload: bytes = serialize_executable.serialize(compiled)[0]
        return payload


def shared(data: NDArray[Any], device: jax.Device) -> Any:
    """Return an array of JAX in the same memory; where there can be none, *data*, to be copied."""
    if device.platform != "cpu":
        return data
    try:
        view = jax.dlpack.from_dlpack(data)
    except (BufferError, TypeError, RuntimeError):  # types and alignments that either side lacks
        return data
    return view if view.unsafe_buffer_pointer() == data.ctypes.data else data
