"""A ``TfLiteContext`` for one of Delegraph's subgraphs, passed to compiled delegates.

Each subgraph has one struct as long as it exists. The struct's functions work while Delegraph calls
the delegate, and return an error at other times. C code never gets their exceptions: the function
returns an error and stores the exception, which the delegate's caller raises.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import addressof
from typing import Any, Protocol

from delegraph.delegation.delegate import DelegateContext
from delegraph.errors import ArgumentError, DelegateError, OperatorError, in_words
from delegraph.native.abi import TfLiteContext, TfLiteStatus, int_array
from delegraph.native.compiled.nodes import NativeNode
from delegraph.native.compiled.tensors import TensorStructs

logger = logging.getLogger(__name__)


class Owner(Protocol):
    """Interface of the owner of compiled kernels: a compiled delegate or a custom operator."""

    address: int
    """Address of the ``TfLiteDelegate``."""

    def name(self) -> str:
        """Return the name of the delegate or operator, for logs."""

    def native_context(self, context: DelegateContext) -> NativeContext:
        """Return the native context of another subgraph, created once per subgraph."""

    def address_of_owner(self, delegate: object | None) -> int:
        """Return the address of the C delegate that owns a tensor or node; 0 for no delegate."""

    def retain(self) -> None:
        """Add one to the number of kernels that use the native delegate."""

    def release(self) -> None:
        """Subtract one from the number of kernels that use the native delegate."""


class NativeContext:
    """C struct of one subgraph for one delegate, with the Python objects of its functions.

    ``context_of`` in :mod:`delegraph.native.compiled.context_functions` creates this object and
    sets the struct's functions.

    Attributes:
        delegate: the delegate whose code uses the struct.
        struct: the ``TfLiteContext``.
        address: address of the struct.
        tensors: structs of the subgraph's tensors.
        external_contexts: pointers that the delegate has stored by ``SetExternalContext``.
        messages: error messages reported during the call in progress.
        kept: memory that the delegate uses as long as the subgraph exists.
    """

    def __init__(self, delegate: Owner, context: DelegateContext) -> None:
        self.delegate = delegate
        self.tensors = TensorStructs(context.tensors, delegate.address_of_owner)
        self.external_contexts: dict[int, int] = {}
        self.kept: list[Any] = []
        self._nodes: dict[int, NativeNode] = {}
        self._calls: list[DelegateContext] = []  # calls in progress, the latest last
        self._lent: list[Any] = []  # memory given out until the outermost call ends
        self._acquired: dict[int, NativeContext] = {}  # contexts of other subgraphs, by index
        self.messages: list[str] = []
        self._failure: BaseException | None = None
        self.struct: Any = TfLiteContext()
        self.struct.tensors = self.tensors.address
        self.struct.recommended_num_threads = context.recommended_num_threads
        self.address = addressof(self.struct)

    # -- calls ---------------------------------------------------------------------------------

    def begin(self, context: DelegateContext) -> None:
        """Let the struct's functions read and change *context*, until :meth:`end` is called."""
        if not self._calls:
            self.messages.clear()
            self._failure = None
        self._calls.append(context)

    def end(self) -> None:
        """End the call that began with the last :meth:`begin`."""
        self._calls.pop()
        if not self._calls:
            self._lent.clear()
            while self._acquired:
                self._acquired.popitem()[1].end()

    @contextmanager
    def called(self, context: DelegateContext) -> Iterator[None]:
        """Context in which the functions work on *context*, and all structs are up to date."""
        self.begin(context)
        try:
            self.write()
            if len(self._calls) == 1:  # in an inner call the delegate may have changed inputs
                for native in self._nodes.values():
                    native.write_inputs()
            yield
        finally:
            self.end()

    def write(self) -> None:
        """Write the present state of the tensors to their structs."""
        tensors = self.current.tensors
        self.tensors.write(tensors)
        self.struct.tensors_size = len(tensors)

    @property
    def current(self) -> DelegateContext:
        """The context of the call in progress.

        Raises:
            DelegateError: no call is in progress.
        """
        if not self._calls:
            raise DelegateError("a function of the context was called outside of the delegate")
        return self._calls[-1]

    def lend(self, memory: Any) -> int:
        """Keep the ctypes object *memory* until the outermost call ends; return its address."""
        self._lent.append(memory)
        return addressof(memory)

    def lend_ints(self, values: Sequence[int]) -> int:
        """Return the address of a ``TfLiteIntArray`` of *values*, which :meth:`lend` keeps."""
        return self.lend(int_array(values))

    # -- nodes ---------------------------------------------------------------------------------

    def node(self, index: int) -> NativeNode:
        """Return the C structs of the node with *index*.

        Raises:
            ArgumentError: the node does not exist.
        """
        node, registration = self.current.get_node_and_registration(index)
        found = self._nodes.get(index)
        if found is None or found.node is not node:
            owner = self.delegate.address_of_owner(node.delegate)
            found = self._nodes[index] = NativeNode(node, registration, owner)
        return found

    def add_node(self, native: NativeNode) -> None:
        """Use *native*, existing C structs, for a node that the delegate has added."""
        self._nodes[native.node.index] = native

    def drop_node(self, native: NativeNode) -> None:
        """Stop using *native*, the C structs of a delegate node that was removed."""
        if self._nodes.get(native.node.index) is native:
            del self._nodes[native.node.index]

    def read_nodes(self) -> None:
        """Copy input indices that the delegate wrote to node structs back to the nodes."""
        for index, native in list(self._nodes.items()):
            if self._is_current(native):
                native.read_inputs()
            else:
                del self._nodes[index]

    def _is_current(self, native: NativeNode) -> bool:
        """Whether the node of *native* is still in the graph; undoing a delegate removes nodes."""
        try:
            return self.current.get_node_and_registration(native.node.index)[0] is native.node
        except ArgumentError:
            return False

    # -- other subgraphs -----------------------------------------------------------------------

    def acquire(self, index: int) -> NativeContext:
        """Return the context of subgraph *index*, valid until released or the outermost call ends.

        Raises:
            ArgumentError: the subgraph does not exist.
        """
        context = self.current.acquire_subgraph_context(index)
        other = self.delegate.native_context(context)
        if other is not self and index not in self._acquired:
            other.begin(context)
            self._acquired[index] = other
            other.messages = self.messages
            other.write()
        return other

    def release(self, index: int) -> None:
        """Release the context of subgraph *index*, which :meth:`acquire` returned."""
        other = self._acquired.pop(index, None)
        if other is not None:
            other.end()

    # -- errors --------------------------------------------------------------------------------

    def report(self, message: str) -> None:
        """Store an error message for the delegate's caller; outside a call, log the message."""
        if self._calls:
            self.messages.append(message)
        else:
            self._log(message)

    def _log(self, message: str) -> None:
        logger.warning("delegate %r reports: %s", self.delegate.name(), message)

    def fail(self, error: BaseException) -> None:
        """Store *error*, which a function of the context raised, for the delegate's caller."""
        self._failure = error
        self.report(in_words(error))

    def check(self, status: int, function: str, said_before: Sequence[str] = ()) -> None:
        """Raise an error if the status that a function of the delegate returned is not OK.

        The messages that a successful call has reported are only logged.

        Args:
            status: status that the delegate's function returned.
            function: name of the function.
            said_before: earlier error messages that may be the reason.

        Raises:
            OperatorError: the status is not OK; the text has the reported messages.
            BaseException: a KeyboardInterrupt or similar was raised while C called Python back.
        """
        failure = self._failure
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        if status == TfLiteStatus.OK:
            for message in self.messages:
                self._log(message)
            return
        said = "; ".join(dict.fromkeys([*said_before, *self.messages]))
        raise OperatorError(
            f"{function} returned {_status_name(status)}: {said or 'it reported no reason'}"
        ) from failure


def _status_name(status: int) -> str:
    return next((member.name for member in TfLiteStatus if member == status), str(status))
