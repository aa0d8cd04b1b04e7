"""The host's kernel for a partition that another process computes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateContext, DelegateParams
from delegraph.delegation.simple_delegate import SimpleDelegateKernelInterface
from delegraph.errors import DelegateError, PartitionRejected
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.runtime.isolation.memory_file import MemoryFile, array_at, offsets
from delegraph.runtime.isolation.process import Child, IsolatedProcess

_Pairs = list[tuple[NDArray[Any], Tensor]]
"""Pairs of shared memory and the tensor whose values are copied to it or from it."""


class IsolatedKernel(SimpleDelegateKernelInterface):
    """Sends inputs to the delegate's process and receives outputs from it.

    A new child process that replaces a lost one does not have the partition. So the next eval first
    sends the partition, as a model, and the shapes.

    Args:
        process: process of the delegate.
    """

    _child: Child | None = None  # the process that has the partition
    _number = -1  # number of the partition in that process
    _has_shapes = False

    def __init__(self, process: IsolatedProcess) -> None:
        self._process = process
        self._shapes: list[list[int]] = []
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._given: _Pairs = []
        self._taken: _Pairs = []
        self._open: list[Tensor] = []

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Send the partition *params* to the delegate's process."""
        model = params.partition_model()
        self._model = MemoryFile.with_content(model.content)
        self._inputs = [context.tensors[i] for i in model.inputs]
        self._outputs = [context.tensors[i] for i in model.outputs]
        self._child = self._given_to(self._process.living(context.cancellation), context)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Prepare the partition in the delegate's process; share memory for its tensors."""
        self._shapes = [list(tensor.shape) for tensor in self._inputs]
        self._has_shapes = False
        shapes = self._prepared(self._revived(context), context)
        for tensor, shape in zip(self._outputs, shapes, strict=True):
            if shape is None:
                context.set_dynamic(tensor)
            else:
                context.resize_tensor(tensor, shape)
        self._share(context, shapes)

    def eval(self, context: DelegateContext, node: Node) -> None:
        """Compute the partition in the delegate's process."""
        child = self._child
        if child is None or child is not self._process.child:
            child = self._revived(context)
        if not self._has_shapes:
            self._share(context, self._prepared(child, context))
        for memory, tensor in self._given:
            np.copyto(memory, tensor.data)
        answer = self._process.run(child, self._number, context.cancellation)
        for memory, tensor in self._taken:
            np.copyto(tensor.data, memory)
        if answer is not None:
            self._take_open(context, answer.content["shapes"], answer.files)

    def close(self) -> None:
        """Close the kernels in the delegate's process."""
        if self._child is not None:
            self._process.drop(self._child, self._number)
            self._child = None

    # -- the other process ---------------------------------------------------------------------

    def _revived(self, context: DelegateContext) -> Child:
        """Return the process that has the partition; send the partition if the process is new."""
        child = self._process.living(context.cancellation)
        if child is not self._child:
            self._has_shapes = False
            self._child = self._given_to(child, context)
        return child

    def _given_to(self, child: Child, context: DelegateContext) -> Child:
        """Send the partition to the process *child*, and return *child*.

        Raises:
            PartitionRejected: the delegate rejects the partition.
        """
        answer = self._process.call(
            child,
            "init",
            "take",
            [self._model.file],
            context.cancellation,
            settings=settings_of(context),
        )
        rejection = answer["rejection"]
        if rejection is not None:
            raise PartitionRejected(rejection["message"], constraint=rejection["constraint"])
        self._number = answer["number"]
        return child

    def _prepared(self, child: Child, context: DelegateContext) -> list[tuple[int, ...] | None]:
        """Prepare the partition in *child*; return each output's shape, None if it is unknown."""
        answer = self._process.call(
            child,
            "prepare",
            "prepare",
            stop=context.cancellation,
            number=self._number,
            shapes=self._shapes,
            memory_limit=context.memory_limit.bytes,
        )
        return [None if shape is None else tuple(shape) for shape in answer["shapes"]]

    def _share(self, context: DelegateContext, shapes: Sequence[tuple[int, ...] | None]) -> None:
        """Allocate shared memory for the inputs and the outputs, and let the child process map it.

        *shapes* has the shape of each output; an output whose shape is None gets no memory.
        """
        assert self._child is not None  # the caller has just used it
        pairs = list(zip(self._outputs, shapes, strict=True))
        outputs = [tensor for tensor, shape in pairs if shape is not None]
        tensors = [*self._inputs, *outputs]
        places, size = offsets([tensor.bytes for tensor in tensors])
        memory = MemoryFile.of_size(size)
        mapped = memory.mapped()
        self._process.call(
            self._child,
            "prepare",
            "share",
            [memory.file],
            context.cancellation,
            number=self._number,
            size=memory.size,
            inputs=places[: len(self._inputs)],
            outputs=places[len(self._inputs) :],
        )
        arrays = [array_at(mapped, at, t) for at, t in zip(places, tensors, strict=True)]
        both = list(zip(arrays, tensors, strict=True))
        self._given, self._taken = both[: len(self._inputs)], both[len(self._inputs) :]
        self._open = [tensor for tensor, shape in pairs if shape is None]
        self._has_shapes = True

    def _take_open(
        self, context: DelegateContext, shapes: Sequence[Sequence[int]], files: Sequence[int]
    ) -> None:
        """Set the shapes of outputs that were unknown before, and read their values.

        The file is read, not mapped, since the child process may shorten it. *files* are
        descriptors; the first file has the values.
        """
        content = MemoryFile(files[0], 0)
        for tensor, shape in zip(self._open, shapes, strict=True):
            context.resize_tensor(tensor, shape)
        places, _ = offsets([tensor.bytes for tensor in self._open])
        for at, tensor in zip(places, self._open, strict=True):
            whole = os.pread(content.file, tensor.bytes, at)
            if len(whole) < tensor.bytes:
                raise DelegateError(f"the delegate's process gave too little of {tensor!r}")
            np.copyto(tensor.data, array_at(whole, 0, tensor))


def settings_of(context: DelegateContext) -> Mapping[str, Any]:
    """Return the host's interpreter settings, for interpreters in the delegate's process."""
    threads = context.recommended_num_threads
    folder = context.cache("isolated", "1").root
    return {
        "num_threads": threads if threads > 0 else None,
        "numerics": context.numerics,
        "cache_dir": None if folder is None else str(folder),
        "memory_limit": context.memory_limit.bytes,
    }
