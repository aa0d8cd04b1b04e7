"""A delegate node in an official interpreter."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateFlags
from delegraph.errors import DelegateError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.native.abi import NULL_BUFFER_HANDLE, TfLiteContext
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.shapes import check_shapes, widened_constants
from delegraph.native.litert.thunks import CalledDelegate
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

_TENSORS: int = TfLiteContext.tensors.offset


class LiteRtKernel:
    """Runs one delegate node in LiteRT, as ``Subgraph`` does in Delegraph's runtime.

    At each invoke, the kernel checks whether the runtime has moved the partition's input or output
    tensors. If so, it makes new arrays.

    Attributes:
        delegate: the delegate of the node; it is kept alive by the node.
        node: the node.
        error: error raised when the kernel was created; None if none was raised.
    """

    def __init__(
        self,
        delegate: CalledDelegate,
        context: LiteRtContext,
        registration: Registration,
        node: Node,
    ) -> None:
        self.delegate = delegate
        self.node = node
        self.error: BaseException | None = None
        self._context = context
        self._tensors = context.native_tensors
        self._registration = registration
        self._base = ctypes.c_size_t.from_address(context.address + _TENSORS)
        self._bound_base = 0
        self._generation = -1  # generation of the tensors when they were bound
        self._cells: list[ctypes.c_size_t] = []
        self._bound: list[int] = []
        self._open: list[Tensor] = []  # shape and place may change at each invoke
        self._texts: list[Tensor] = []  # string outputs
        self._step: Eval = _never_prepared
        self._constants: dict[int, NDArray[Any]] | None = None
        border = (*node.inputs, *node.outputs)
        self._border = [context.tensors[i] for i in dict.fromkeys(border) if i >= 0]
        replaced = [context.get_node_and_registration(i)[0] for i in node.options.nodes_to_replace]
        touched = (i for inner in replaced for i in (*inner.inputs, *inner.outputs))
        self._touched = [i for i in dict.fromkeys((*border, *touched)) if i >= 0]
        for index in node.outputs:
            context.tensors[index].delegate = delegate.delegate

    def init(self) -> None:
        """Create the delegate's kernel; store an exception in :attr:`error`."""
        try:
            if self._registration.init is not None:
                self.node.user_data = self._registration.init(self._context, self.node)
        except BaseException as error:  # noqa: BLE001 - raised again once C has returned
            self.error = error

    def free(self) -> None:
        """Free the result of the delegate's ``init``."""
        if self._registration.free is not None:
            self._registration.free(self.node.user_data)

    def prepare(self) -> None:
        """Prepare the delegate node for the present shapes."""
        if self.error is not None:
            raise self.error
        self._tensors.refresh(self._touched)
        self._place_constants()
        flags = self.delegate.delegate.flags
        propagates = DelegateFlags.REQUIRE_PROPAGATED_SHAPES in flags
        check_shapes(self._context, self.node, propagates=propagates)
        self._step = self._registration.prepare(self._context, self.node)
        self._tensors.write_types(i for i in self.node.outputs if i >= 0)
        self._context.prepared.update(self.node.outputs)

    def _place_constants(self) -> None:
        """Set the values of inputs that depend only on constants."""
        if self._constants is None:
            self._constants = widened_constants(self._context, self.node.inputs)
        for index, values in self._constants.items():
            tensor = self._context.tensors[index]
            tensor.shape, tensor.data = values.shape, values
            tensor.allocation_type = AllocationType.PERSISTENT_RO

    def eval(self) -> None:
        """Compute the outputs of the delegate node."""
        cancellation = self.delegate.cancellation
        if cancellation is not None:
            cancellation.raise_if_requested()
        if (
            self._tensors.generation != self._generation
            or self._base.value != self._bound_base
            or [cell.value for cell in self._cells] != self._bound
        ):
            self._bind()
        for tensor in self._open:
            self._tensors.bind(tensor)
        for tensor in self._texts:
            tensor.shape = self._tensors.shape(tensor.index)
            tensor.data = np.empty(tensor.shape, object)
        if self._context.has_buffer_handles:
            self._read_staleness()
        step, profile = self._step, self.delegate.profile
        if profile is not None:
            subgraph = self._context.subgraph_index
            node, nodes = self.node, self.node.options.nodes_to_replace
            step = profile.timed(step, node, self._registration, subgraph, nodes, is_forced=False)
        with np.errstate(all="ignore"):
            step()
        for tensor in self._texts:
            self._tensors.write_strings(tensor)
        if self._context.has_buffer_handles:
            self._write_staleness()

    def _bind(self) -> None:
        """Create arrays for the node's input and output tensors, and record their addresses."""
        fixed: list[Tensor] = []
        self._open, self._texts = [], []
        for tensor in self._border:
            if self._constants and tensor.index in self._constants:
                continue
            native = self._tensors.native(tensor.index)
            tensor.allocation_type = AllocationType(native.allocation_type)
            if tensor.type is TensorType.STRING and tensor.index in self.node.outputs:
                self._texts.append(tensor)
            elif tensor.is_dynamic or tensor.type in OBJECT_TYPES:
                self._open.append(tensor)
            elif not (tensor.is_constant and tensor.data is not None):
                self._tensors.bind(tensor)
                fixed.append(tensor)
        self._cells = [self._tensors.data_cell(tensor.index) for tensor in fixed]
        self._bound = [cell.value for cell in self._cells]
        self._bound_base = self._base.value
        self._generation = self._tensors.generation

    # -- buffers of the delegate ---------------------------------------------------------------

    def _read_staleness(self) -> None:
        for tensor in self._border:
            if tensor.buffer_handle != NULL_BUFFER_HANDLE:
                tensor.data_is_stale = bool(self._tensors.native(tensor.index).data_is_stale)

    def _write_staleness(self) -> None:
        for index in self.node.outputs:
            tensor = self._context.tensors[index]
            if tensor.buffer_handle != NULL_BUFFER_HANDLE:
                self._tensors.native(index).data_is_stale = tensor.data_is_stale


def _never_prepared() -> None:
    raise DelegateError("the runtime invoked a node that it never prepared")
