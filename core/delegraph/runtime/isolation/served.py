"""Code that runs in the process of an isolated delegate: the delegate and its partitions."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags, DelegateOptions
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.graph_partition_helper import GraphPartitionHelper
from delegraph.delegation.rejections import NO_REASON, Rejection
from delegraph.errors import DelegateError, NodeError, in_words
from delegraph.json_records import to_json
from delegraph.operators.tensor import Tensor
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.delegate_file import delegate_from_file
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegates.compiled_partitions import compiled_delegate
from delegraph.runtime.delegates.requested_delegates import is_installed_name, load_delegate
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.isolation.claims import rejection_json
from delegraph.runtime.isolation.memory_file import MemoryFile, array_at, offsets
from delegraph.runtime.isolation.messages import KEPT_ERRORS, Channel, Kind
from delegraph.runtime.isolation.source import DelegateSource
from delegraph.runtime.options import Limits

Answer = tuple[Mapping[str, Any], Sequence[int]]
"""Text of an answer, and descriptors that are sent along and closed afterwards."""


def serve(channel: int) -> None:
    """Answer the host's requests until the host closes the socket.

    Args:
        channel: descriptor of the socket.
    """
    os.set_inheritable(channel, False)  # child processes of the delegate must not inherit it
    served = _Served()
    _converse(Channel(socket.socket(fileno=channel)), served)
    served.close()


def _converse(channel: Channel, served: _Served) -> None:
    partitions = served.partitions
    while True:
        try:
            message = channel.receive()
        except (EOFError, OSError):
            return
        try:
            if message.kind is Kind.RUN:
                answer = partitions[message.number].run()
            else:
                answer = _called(served, message.content, message.files)
        except BaseException as error:  # noqa: BLE001 - a plugin's, for the host; SystemExit too
            channel.send(Kind.FAILURE, _failure(error))
            continue
        if answer is None:
            channel.send_done()
        else:
            channel.send(Kind.ANSWER, *answer)
            _close(answer[1])


def _called(served: _Served, content: Mapping[str, Any], files: Sequence[int]) -> Answer:
    arguments = {name: value for name, value in content.items() if name != "method"}
    method: Callable[..., Answer | None] = getattr(served, content["method"])
    try:
        return method(*files, **arguments) or ({}, ())
    finally:
        _close(files)


def _close(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)


def _failure(error: BaseException) -> Mapping[str, Any]:
    """Return an error as JSON for the host, without the errors in which this process wrapped it."""
    node = getattr(error, "node_index", None)
    while isinstance(error, NodeError | DelegateError) and error.__cause__ is not None:
        if in_words(error.__cause__) not in str(error):
            break
        error = error.__cause__
    kind = type(error).__name__ if isinstance(error, KEPT_ERRORS) else ""
    return {"kind": kind, "text": in_words(error), "node": node}


class _Served:
    """The delegate in this process; its methods carry out the host's requests.

    Attributes:
        partitions: the accepted partitions, by number.
    """

    delegate: Delegate

    def __init__(self) -> None:
        self.partitions: dict[int, _Partition] = {}
        self._count = 0

    def load(self, source: Mapping[str, Any]) -> Answer:
        """Load the delegate that *source* describes; return its name, flags and other facts."""
        self.delegate = delegate = _delegate_of(DelegateSource.from_json(source))
        options = DelegateOptions()
        if isinstance(delegate, SimpleDelegate):
            options = delegate.simple.delegate_options()
        tolerance = delegate.capabilities().tolerance
        facts = {
            "name": delegate.name(),
            "rank": _rank(source),
            "flags": int(delegate.flags),
            "note": delegate.note(),
            "options": to_json(options),
            "tolerance": to_json(tolerance),
        }
        return facts, ()

    def claim(self, model: int, settings: Mapping[str, Any]) -> Answer:
        """Ask the delegate about all nodes of a model; return why it rejects some of them.

        *model* is the descriptor of the model file.
        """
        recorder = _Claims(self.delegate)
        is_simple = isinstance(self.delegate, SimpleDelegate)
        with _interpreter(model, recorder if is_simple else self.delegate, settings) as interpreter:
            found = recorder.found if is_simple else _left(interpreter, self.delegate)
        return {"rejections": [(i, rejection_json(why)) for i, why in found.items()]}, ()

    def take(self, model: int, settings: Mapping[str, Any]) -> Answer:
        """Load the partition in the model file *model*; return its number, or why it is rejected.

        *model* is the descriptor of the file.
        """
        interpreter = _interpreter(model, self.delegate, settings)
        left = _left(interpreter, self.delegate)
        if left:
            interpreter.close()
            why = next(iter(left.values()))
            return {"rejection": {"constraint": why.constraint, "message": str(why)}}, ()
        self._count += 1
        self.partitions[self._count] = _Partition(interpreter)
        return {"rejection": None, "number": self._count}, ()

    def prepare(self, number: int, shapes: Sequence[Sequence[int]], memory_limit: int) -> Answer:
        """Prepare partition *number* for input *shapes*; return output shapes, None if unknown.

        *memory_limit* is the number of bytes that its tensors may take.
        """
        return {"shapes": self.partitions[number].prepare(shapes, memory_limit)}, ()

    def share(
        self, memory: int, number: int, size: int, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Let partition *number* use the file *memory* of *size* bytes, shared with the host.

        *inputs* and *outputs* are byte offsets of the partition's tensors in the file.
        """
        self.partitions[number].share(mmap.mmap(memory, size), inputs, outputs)

    def drop(self, number: int) -> None:
        """Close and remove partition *number*."""
        self.partitions.pop(number).interpreter.close()

    def close(self) -> None:
        """Close and remove all partitions."""
        for number in list(self.partitions):
            with contextlib.suppress(Exception):
                self.drop(number)


def _delegate_of(source: DelegateSource) -> Delegate:
    if source.is_python_file:
        return delegate_from_file(source.name, source.options)
    if source.is_compiled:
        return compiled_delegate(DelegateAddress.parse(source.name))
    options: Any = source.options  # text is sufficient there
    return load_delegate(source.name, options, isolate="none")


def _rank(source: Mapping[str, Any]) -> int:
    if source["is_python_file"] or not is_installed_name(source["name"]):
        return 0
    return installed().find(source["name"]).spec.rank


def _interpreter(model: int, delegate: Delegate, settings: Mapping[str, Any]) -> Interpreter:
    interpreter = Interpreter(
        f"/dev/fd/{model}",  # mapped, so that both processes share the constants
        delegates=[],
        num_threads=settings["num_threads"],
        numerics=settings["numerics"],
        cache_dir=settings["cache_dir"],
        limits=Limits(memory=settings["memory_limit"]),
    )
    interpreter.modify_graph_with_delegate(delegate)
    return interpreter


def _left(interpreter: Interpreter, delegate: Delegate) -> dict[int, Rejection]:
    """Return the reasons why *delegate* rejected nodes of *interpreter*'s model, by node index."""
    return {
        node.index: next(iter(node.rejections.values()), NO_REASON)
        for node in interpreter.placement.nodes
        if node.delegate is None
    }


class _Claims(Delegate):
    """Asks a delegate of the simple interface about each node, and replaces no nodes."""

    def __init__(self, delegate: Delegate) -> None:
        self._delegate: Any = delegate
        self.found: dict[int, Rejection] = {}

    @property
    def flags(self) -> DelegateFlags:
        """Flags that allow all shapes, since only the host knows which shapes are unknown."""
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def name(self) -> str:
        """Return the name of the wrapped delegate."""
        return str(self._delegate.name())

    def prepare(self, context: DelegateContext) -> None:
        """Ask the wrapped delegate about every node of the plan."""
        simple = self._delegate.simple
        simple.initialize(context)
        helper = GraphPartitionHelper(
            context, simple.is_node_supported_by_delegate, delegate=self.name()
        )
        helper.partition()
        self.found = helper.rejections


class _Partition:
    """A partition and its interpreter, in which the delegate runs all nodes."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self._subgraph = interpreter.subgraph()
        tensors = self._subgraph.tensors
        self._inputs = [tensors[i] for i in self._subgraph.inputs]
        self._outputs = [tensors[i] for i in self._subgraph.outputs]
        self._lent: list[tuple[Tensor, NDArray[Any]]] = []  # memory that is lent to the outputs

    def prepare(
        self, shapes: Sequence[Sequence[int]], memory_limit: int
    ) -> list[Sequence[int] | None]:
        """Allocate the partition for input *shapes*; return output shapes, None if unknown.

        *memory_limit* is the number of bytes that the tensors may take.
        """
        self.interpreter.session.memory_limit.bytes = memory_limit
        for tensor, shape in zip(self._inputs, shapes, strict=True):
            if tensor.shape != tuple(shape):
                self._subgraph.resize_input(tensor.index, tuple(shape))
        self._subgraph.allocate()
        return [None if tensor.is_dynamic else tensor.shape for tensor in self._outputs]

    def share(self, memory: mmap.mmap, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Place inputs, and outputs of known shape, in the memory shared with the host."""
        fixed = [tensor for tensor in self._outputs if not tensor.is_dynamic]
        for offset, tensor in zip(inputs, self._inputs, strict=True):
            tensor.data = array_at(memory, offset, tensor)
        self._lent = [(t, array_at(memory, at, t)) for at, t in zip(outputs, fixed, strict=True)]
        for tensor, array in self._lent:
            tensor.data = array

    def run(self) -> Answer | None:
        """Compute the partition; return outputs whose shapes were unknown, as JSON and a file.

        The result is None if all shapes were known.
        """
        self._subgraph.invoke()
        for tensor, array in self._lent:
            self._subgraph.readable(tensor.index)
            if tensor.data is not array:  # the kernel's own array
                np.copyto(array, tensor.data)
                tensor.data = array
        opened = [tensor for tensor in self._outputs if tensor.is_dynamic]
        return _opened(opened) if opened else None


def _opened(tensors: Sequence[Tensor]) -> Answer:
    places, size = offsets([tensor.bytes for tensor in tensors])
    memory = MemoryFile.of_size(size)
    mapped = memory.mapped()
    for at, tensor in zip(places, tensors, strict=True):
        np.copyto(array_at(mapped, at, tensor), tensor.data)
    return {"shapes": [tensor.shape for tensor in tensors]}, [os.dup(memory.file)]
