"""Functions of a ``TfLiteContext`` as Python methods that raise errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_int, c_void_p
from typing import Any

from delegraph.errors import ArgumentError, DelegateError
from delegraph.native.abi import (
    CALLED,
    TfLiteContext,
    TfLiteDelegateParams,
    TfLiteNode,
    TfLiteRegistration,
    TfLiteStatus,
    int_array,
    ints_at,
    malloc_int_array,
)


class LiteRtSubgraph:
    """One subgraph of an official interpreter, accessed through its C context.

    Most methods work only while a delegate is being applied, because the runtime disables its
    functions afterwards. A method raises DelegateError if the runtime lacks the function, or if the
    function fails.

    Attributes:
        address: address of the ``TfLiteContext``.
    """

    def __init__(self, address: int) -> None:
        self.address = address
        self._native = TfLiteContext.from_address(address)

    def _call(self, function: str, *arguments: object) -> None:
        pointer = getattr(self._native, function)
        if not pointer:
            raise DelegateError(f"this runtime gives delegates no {function}")
        status = CALLED[function](pointer)(self.address, *arguments)
        if status != TfLiteStatus.OK:
            raise DelegateError(f"the runtime's {function} failed with status {status}")

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 if the user has set none."""
        return int(self._native.recommended_num_threads)

    # -- subgraphs -----------------------------------------------------------------------------

    def acquire(self, index: int) -> int:
        """Return the address of subgraph *index*'s context, valid until :meth:`release`."""
        found = c_void_p()
        self._call("AcquireSubgraphContext", index, byref(found))
        return found.value or 0

    def release(self, index: int) -> None:
        """Release the context of subgraph *index*, which :meth:`acquire` returned."""
        self._call("ReleaseSubgraphContext", index)

    def position(self, count: int) -> tuple[int, int]:
        """Return this subgraph's index among *count* subgraphs, and the context of the first one.

        Raises:
            DelegateError: this context belongs to none of the subgraphs.
        """
        primary = 0
        for index in range(count):
            found = self.acquire(index)
            primary = primary or found
            if found == self.address:
                return index, primary  # not released, because the delegate would lose its rights
            self.release(index)
        raise DelegateError(
            f"the interpreter runs a model with more than the {count} subgraphs of the one given"
        )

    # -- nodes ---------------------------------------------------------------------------------

    def plan(self) -> tuple[int, ...]:
        """Return the node indices in execution order."""
        plan = c_void_p()
        self._call("GetExecutionPlan", byref(plan))
        return ints_at(plan.value)

    def node(self, index: int) -> tuple[Any, Any]:
        """Return the structs of a node and its registration, valid until nodes are added.

        Old runtimes crash if the index does not exist.
        """
        node, registration = c_void_p(), c_void_p()
        self._call("GetNodeAndRegistration", index, byref(node), byref(registration))
        if not node.value or not registration.value:
            raise DelegateError(f"the runtime has no node {index}")
        kind = TfLiteRegistration.from_address(registration.value)
        return TfLiteNode.from_address(node.value), kind

    def write_inputs(self, index: int, inputs: Sequence[int]) -> None:
        """Set the tensors that node *index* reads to *inputs*; their number must not change.

        Raises:
            ArgumentError: the number of inputs differs.
        """
        native, _ = self.node(index)
        before = ints_at(native.inputs)
        if before == tuple(inputs):
            return
        if len(before) != len(inputs):
            raise ArgumentError(f"node {index} has {len(before)} inputs, and keeps that many")
        (c_int * len(before)).from_address(native.inputs + 4)[:] = list(inputs)

    @contextmanager
    def previewed(self, nodes: Sequence[int]) -> Iterator[list[Any]]:
        """Context that yields a ``TfLiteDelegateParams`` for each partition of *nodes*."""
        yield self._preview(nodes)
        self._preview([])  # frees the last preview, which the runtime would never free

    def _preview(self, nodes: Sequence[int]) -> list[Any]:
        array, found, count = int_array(nodes), c_void_p(), c_int()
        self._call(
            "PreviewDelegatePartitioning", ctypes.addressof(array), byref(found), byref(count)
        )
        first, size = found.value or 0, ctypes.sizeof(TfLiteDelegateParams)
        return [TfLiteDelegateParams.from_address(first + i * size) for i in range(count.value)]

    def replace(self, registration: Any, nodes: Sequence[int], delegate: int) -> None:
        """Replace *nodes*, by index, by delegate nodes with the C struct *registration*.

        The runtime calls ``registration.init`` for each new node. *delegate* is the address of the
        ``TfLiteDelegate``.
        """
        array = int_array(nodes)
        address = ctypes.addressof(array)
        self._call("ReplaceNodeSubsetsWithDelegateKernels", registration, address, delegate)

    # -- tensors -------------------------------------------------------------------------------

    def resize(self, tensor: int, shape: Sequence[int]) -> None:
        """Set the shape of the tensor struct at address *tensor*."""
        # The runtime always frees the array.
        self._call("ResizeTensor", tensor, malloc_int_array(shape))

    def add_tensors(self, count: int) -> int:
        """Append *count* tensors without a type; return the index of the first."""
        first = c_int()
        self._call("AddTensors", count, byref(first))
        return first.value
