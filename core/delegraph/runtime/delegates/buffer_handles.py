"""Tensors whose value is in a delegate's own buffer.

The tensor holds the delegate and the delegate's handle for the buffer. While ``data_is_stale`` is
true, only the buffer is up to date, and the value is copied before any other reader reads the
tensor.

Source:
    SetBufferHandle and EnsureTensorDataIsReadable, tflite/core/subgraph.cc. Unlike there, a copy
    that failed leaves the tensor stale, and handles are released when a delegate is taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from delegraph.errors import DelegateError, DelegateNodeError, in_words
from delegraph.log import Logger

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate, DelegateContext
    from delegraph.operators.registration import Eval, Node
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.delegated_plan import DelegatedPlan

logger = Logger(__name__)

NO_HANDLE = -1


class BufferHandles:
    """Buffer handles of all tensors of one subgraph.

    Args:
        tensors: the tensors, by index; delegates may append tensors.
        context: the subgraph's ``DelegateContext``.
        plan: the nodes of the subgraph.
    """

    def __init__(
        self, tensors: Sequence[Tensor], context: DelegateContext, plan: DelegatedPlan
    ) -> None:
        self._tensors = tensors
        self._context = context
        self._plan = plan

    def set_handle(self, tensor: Tensor, handle: int, delegate: Delegate) -> None:
        """Record *handle* as the buffer of *delegate* for a tensor; release its old handle.

        Raises:
            DelegateError: the tensor belongs to another delegate.
        """
        if tensor.delegate not in (None, delegate):
            raise DelegateError(
                f"{tensor!r} belongs to another delegate", delegate=delegate.name(), phase="copy"
            )
        before = tensor.buffer_handle
        tensor.delegate, tensor.buffer_handle = delegate, handle
        if before not in (NO_HANDLE, handle):
            self._free(delegate, before)

    def make_readable(self, tensor: Tensor) -> None:
        """Copy a tensor's value from the delegate's buffer if only the buffer is up to date.

        Raises:
            DelegateNodeError: the delegate cannot copy the value; the tensor stays stale.
        """
        if tensor.data_is_stale:
            delegate: Any = tensor.delegate
            self._copy(tensor, delegate.copy_from_buffer_handle, "from")
            tensor.data_is_stale = False

    def write_through(self, tensor: Tensor) -> None:
        """Copy the value that the user has set in *tensor* to the delegate's buffer, if any.

        Raises:
            DelegateNodeError: the delegate cannot copy the value.
        """
        tensor.data_is_stale = False
        if tensor.buffer_handle != NO_HANDLE:
            delegate: Any = tensor.delegate
            self._copy(tensor, delegate.copy_to_buffer_handle, "to")

    def reading(self, step: Eval, node: Node) -> Eval:
        """Return *step*, preceded by copies of the inputs of *node* from delegates' buffers."""
        tensors = self._tensors
        foreign = [
            tensors[i]
            for i in node.inputs
            if i >= 0 and tensors[i].delegate not in (None, node.delegate)
        ]
        return self.reading_first(foreign, step)

    def reading_first(self, tensors: Sequence[Tensor], step: Eval) -> Eval:
        """Return *step*, preceded by copies of *tensors* from delegates' buffers.

        Only values that are up to date in a buffer alone are copied.
        """
        if not tensors:
            return step
        from delegraph.operators.asynchronous import (
            preceded_by,  # lazy import: only delegates have buffers
        )

        def make_readable() -> None:
            for tensor in tensors:
                self.make_readable(tensor)

        return preceded_by(make_readable, step)

    def owners(self) -> list[object | None]:
        """Return the delegate that owns each tensor, by index; None for tensors without one."""
        return [tensor.delegate for tensor in self._tensors]

    def restore(self, owners: Iterable[object | None]) -> None:
        """Set the owner of each tensor to *owners*; release handles that belong to other delegates.

        A delegate that remains the owner keeps its latest handle, since it may have released its
        earlier handles.
        """
        for tensor, owner in zip(self._tensors, owners, strict=True):
            if tensor.delegate is not owner:
                self.release([tensor])
                tensor.delegate = owner

    def release(self, tensors: Iterable[Tensor]) -> None:
        """Release the buffer handles of *tensors* and remove their owners."""
        for tensor in tensors:
            found = tensor.delegate, tensor.buffer_handle
            tensor.delegate, tensor.buffer_handle, tensor.data_is_stale = None, NO_HANDLE, False
            self._free(*found)

    def _free(self, delegate: Any, handle: int) -> None:
        if handle == NO_HANDLE or delegate is None:
            return
        try:
            delegate.free_buffer_handle(self._context, handle)
        except Exception as error:  # noqa: BLE001 - a plugin's method, and the rest must be released
            logger.warning(
                "delegate %r failed to free its buffer %d: %s",
                delegate.name(),
                handle,
                in_words(error),
            )

    def _copy(self, tensor: Tensor, copy: Any, direction: str) -> None:
        try:
            copy(self._context, tensor)
        except Exception as error:
            delegate: Any = tensor.delegate
            name = delegate.name()
            raise DelegateNodeError(
                f"delegate {name!r} failed to copy {tensor!r} {direction} its buffer "
                f"{tensor.buffer_handle}: {in_words(error)}",
                node_index=self._plan.producer(tensor.index),
                op=name,
                delegate=name,
                phase="copy",
            ) from error
