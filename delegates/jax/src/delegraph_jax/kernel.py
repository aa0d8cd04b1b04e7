"""Delegate kernel: runs one partition as an XLA executable on the host's arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from delegraph import (
    DelegateContext,
    DelegateParams,
    Node,
    PartitionModel,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError, OperatorError
from delegraph_jax.compiling import version
from delegraph_jax.executable import compiled, contents_of, loaded
from delegraph_jax.graphs import calls
from delegraph_jax.open_shapes import OpenPartition, has_open_shapes
from delegraph_jax.traced import TracedPartition


class ExecutableKernel(SimpleDelegateKernelInterface):
    """Kernel that runs its partition's compiled executable on the tensors of the runtime.

    Args:
        device: device that runs the executable.
    """

    def __init__(self, device: jax.Device) -> None:
        self._device = device
        self._arguments: list[Any] = []
        self._memory: list[Any] = []
        self._run: Any = None

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        read = (context.tensors[i] for i in params.input_tensors)
        self._inputs = [tensor for tensor in read if not tensor.is_constant]
        self._outputs = [context.tensors[i] for i in params.output_tensors]

    def load(self, content: bytes) -> None:
        """Load the executable in *content*, for use from the next call on."""
        self._contents = contents_of(content)
        self._run = loaded(content, len(self._inputs), len(self._outputs), self._device)
        self._memory = []

    def prepare(self, context: DelegateContext, node: Node) -> None:
        for tensor, shape in zip(self._outputs, self._contents.shapes, strict=True):
            if tensor.shape != tuple(shape):
                context.resize_tensor(tensor, shape)

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        with jax.enable_x64(True):
            self._arguments = [shared(tensor.data, self._device) for tensor in self._inputs]

    def eval(self, context: DelegateContext, node: Node) -> None:
        with jax.enable_x64(True):
            # The memory is donated to XLA, which then overwrites the last results. The host's own
            # memory cannot be donated: XLA frees donated memory, so it would copy the host's.
            memory, self._memory = self._memory or self._new_memory(), []
            *results, is_wrong = self._run(self._arguments, memory)
        if is_wrong.size and np.asarray(is_wrong).any():
            raise OperatorError(self._contents.doubts[int(np.argmax(is_wrong))])
        for tensor, result in zip(self._outputs, results, strict=True):
            np.copyto(tensor.data, np.asarray(result))
        self._memory = results

    def _new_memory(self) -> list[Any]:
        """Return JAX arrays of the outputs' shapes, as memory for the first results."""
        zeros = [np.zeros(tensor.shape, tensor.dtype) for tensor in self._outputs]
        found: list[Any] = jax.device_put(zeros, self._device, may_alias=False)
        return found

    def close(self) -> None:
        self._run = None
        self._arguments, self._memory = [], []


class JaxKernel(ExecutableKernel):
    """Delegate kernel that compiles its partition for the input shapes, again for new shapes.

    A partition with loops or branches may have open shapes (known only during invoke) for some
    input shapes. For these, Delegraph's kernels run the partition.

    Args:
        device: device that computes.
        partitions: collection that contains the partition while it is open.
    """

    def __init__(self, device: jax.Device, partitions: list[TracedPartition]) -> None:
        super().__init__(device)
        self._partitions = partitions
        self._shapes: list[tuple[int, ...]] | None = None
        self._open: OpenPartition | None = None

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        super().init(context, params)
        self._params = params
        self._traced = TracedPartition(params, context.numerics)
        self._partitions.append(self._traced)
        nodes = [context.get_node_and_registration(i)[0] for i in params.nodes_to_replace]
        self._calls = any(map(calls, nodes))
        if self._calls:
            for index in params.partition_model().called:
                # LiteRT cannot do this, and never prepares such partitions.
                with suppress(DelegateError):
                    context.mark_subgraph_as_delegation_skippable(index)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        shapes = [tensor.shape for tensor in self._inputs]
        if shapes != self._shapes:
            self._take_shapes(context)
            self._shapes = shapes
        if self._open is None:
            super().prepare(context, node)
        else:
            for tensor in self._outputs:
                context.set_dynamic(tensor)

    def eval(self, context: DelegateContext, node: Node) -> None:
        if self._open is None:
            super().eval(context, node)
            return
        results = self._open.run([tensor.data for tensor in self._inputs])
        for tensor, result in zip(self._outputs, results, strict=True):
            context.resize_tensor(tensor, result.shape)
            np.copyto(tensor.data, result)

    def close(self) -> None:
        super().close()
        self._close_open()
        if self._traced in self._partitions:
            self._partitions.remove(self._traced)

    def _close_open(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _take_shapes(self, context: DelegateContext) -> None:
        """Compile for the current shapes, or prepare Delegraph's kernels if shapes are open."""
        self._close_open()
        model = self._params.partition_model()
        if self._calls and has_open_shapes(model):
            self._open = OpenPartition(model, context.numerics)
        else:
            self._compile(model, context)

    def _compile(self, model: PartitionModel, context: DelegateContext) -> None:
        """Load the executable of *model* for the current shapes, from the cache if possible."""
        device, numerics = self._device, context.numerics
        key = f"{model.digest} {numerics} {device.platform} {device.device_kind}"
        cache = context.cache("jax", version())
        self.load(cache.read_or_make(key, lambda: compiled(model, device, numerics)))
        traced = TracedPartition(self._params, numerics)  # a function for the present shapes
        self._partitions[self._partitions.index(self._traced)] = traced
        self._traced = traced


def shared(data: NDArray[Any], device: jax.Device) -> Any:
    """Return *data* as a JAX array of *device* in the same memory.

    The result is *data* itself if sharing is impossible.
    """
    if device.platform != "cpu":
        return data
    try:
        view = jax.dlpack.from_dlpack(data)
    except (BufferError, TypeError, RuntimeError):  # for example a type that XLA lacks
        return data
    return view if view.unsafe_buffer_pointer() == data.ctypes.data else data
