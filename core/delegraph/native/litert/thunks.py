"""Functions that official interpreters call from C, created once for the whole process.

An interpreter may call a delegate's functions long after the Python delegate was deleted, because a
view of a tensor keeps the native interpreter alive. So the functions belong to no object. C stores
numbers, which this module maps to objects: an outdated number is not found, while an outdated
pointer would crash. The functions raise no exceptions, because C cannot handle them.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import threading
from collections.abc import Callable
from ctypes import c_size_t, c_void_p
from typing import Any, Protocol
from weakref import WeakValueDictionary

from delegraph.delegation.delegate import Delegate, StopRequest
from delegraph.errors import blame, in_words
from delegraph.native.abi import (
    CALLED,
    DELEGATE_FUNCTIONS,
    REGISTRATION_FUNCTIONS,
    TfLiteContext,
    TfLiteDelegate,
    TfLiteDelegateParams,
    TfLiteNode,
    TfLiteStatus,
    callback,
)
from delegraph.runtime.execution.profile import Profile

logger = logging.getLogger(__name__)


class CalledDelegate(Protocol):
    """Methods of a delegate that the C callbacks call."""

    delegate: Delegate
    last_exception: BaseException | None
    profile: Profile | None
    cancellation: StopRequest | None

    @property
    def delegate_name(self) -> str:
        """Name of the delegate, for error messages."""

    def apply(self, context: int) -> None:
        """Claim nodes of the subgraph whose ``TfLiteContext`` has the address *context*."""

    def new_kernel(self, context: int, params: int) -> CalledKernel:
        """Return the kernel of the partition whose TfLiteDelegateParams are at address *params*.

        If the delegate fails, the kernel's :meth:`~CalledKernel.prepare` raises the error.
        """

    def copy(self, direction: str, context: int, handle: int, tensor: int) -> None:
        """Copy a tensor ``"from"`` the delegate's buffer *handle*, or ``"to"`` that buffer.

        *context* and *tensor* are the addresses of the C structs.
        """

    def free_buffer_handle(self, context: int, handle: int) -> None:
        """Free the delegate's buffer *handle*; *context* is the address of the C context."""


class CalledKernel(Protocol):
    """Methods of a delegate node that the C callbacks call."""

    @property
    def delegate(self) -> CalledDelegate:
        """The delegate to which the node belongs."""

    def prepare(self) -> None:
        """Prepare the node for the present shapes."""

    def eval(self) -> None:
        """Compute the outputs of the node."""

    def free(self) -> None:
        """Free the kernel's resources; called once, as the last function."""


_handles = itertools.count(1)
_delegates: WeakValueDictionary[int, CalledDelegate] = WeakValueDictionary()
_kernels: dict[int, CalledKernel] = {}


class _Raised(threading.local):
    """Exceptions of this thread's C callbacks, stored until the surrounding Python call ends."""

    def __init__(self) -> None:
        self.waiting: list[BaseException | None] = []

    def keep(self, error: BaseException) -> None:
        """Store *error* for the waiting call, unless an error is already stored."""
        if self.waiting and self.waiting[-1] is None:
            self.waiting[-1] = error


_raised = _Raised()


def await_raised() -> None:
    """Begin to store the first exception that a C callback of this thread raises."""
    _raised.waiting.append(None)


def take_raised() -> BaseException | None:
    """Stop storing; return the exception stored since :func:`await_raised`, or None."""
    return _raised.waiting.pop()


def register(delegate: CalledDelegate) -> int:
    """Add a delegate to the table of existing delegates; return its number, which C code passes."""
    handle = next(_handles)
    _delegates[handle] = delegate
    return handle


def living() -> tuple[int, int]:
    """Return the numbers of existing delegates and kernels, for tests of memory leaks."""
    return len(_delegates), len(_kernels)


_LONGEST_TEXT = 250  # in characters; runtimes truncate at 1024 bytes, even inside a character


def report(context: int, text: str) -> None:
    """Append *text*, escaped, to the error message of the runtime with *context*."""
    pointer = TfLiteContext.from_address(context).ReportError
    if pointer:
        line = text[:_LONGEST_TEXT].replace("\0", " ").replace("%", "%%")
        CALLED["ReportError"](pointer)(context, line.encode("utf-8", "replace"))


def _fail(context: int, delegate: CalledDelegate, what: str, error: BaseException) -> int:
    delegate.last_exception = error
    blame(error, delegate.delegate_name, what)
    _raised.keep(error)
    try:
        report(context, f"delegate {delegate.delegate_name!r}: {what}: {in_words(error)}")
    except BaseException:  # noqa: BLE001 - an exception whose text cannot be made
        report(context, f"a delegate: {what} failed")
    return TfLiteStatus.ERROR


# -- what C calls ------------------------------------------------------------------------------

_DELEGATE_DATA: int = TfLiteDelegate.data_.offset
_USER_DATA: int = TfLiteNode.user_data.offset
_GONE = "a Python delegate has been closed or collected, and cannot be applied again"


def _delegate_at(address: int) -> CalledDelegate | None:
    return _delegates.get(c_size_t.from_address(address + _DELEGATE_DATA).value)


def _apply(context: int, delegate_address: int) -> int:
    delegate = None
    try:
        delegate = _delegate_at(delegate_address)
        if delegate is None:
            report(context, _GONE)
            return TfLiteStatus.ERROR
        delegate.apply(context)
        return TfLiteStatus.OK
    except BaseException as error:  # noqa: BLE001 - C cannot see it
        if delegate is None:
            return TfLiteStatus.ERROR
        return _fail(context, delegate, "apply", error)


def _init(context: int, buffer: int, length: int) -> int:
    try:
        delegate = _delegate_at(TfLiteDelegateParams.from_address(buffer).delegate)
        if delegate is None:
            return 0
        handle = next(_handles)
        _kernels[handle] = delegate.new_kernel(context, buffer)
        return handle
    except BaseException as error:  # noqa: BLE001 - C cannot see it
        _raised.keep(error)
        return 0


def _free(context: int, handle: int | None) -> None:
    try:
        kernel = _kernels.pop(handle or 0, None)
        if kernel is not None:
            kernel.free()
    except BaseException as error:  # noqa: BLE001 - C cannot see it
        logger.warning("a delegate's node failed to free: %s", in_words(error))


def _prepare(context: int, node: int) -> int:
    kernel = None
    try:
        kernel = _kernels[c_size_t.from_address(node + _USER_DATA).value]
        kernel.prepare()
        return 0
    except BaseException as error:  # noqa: BLE001 - C cannot see it
        return (
            TfLiteStatus.ERROR
            if kernel is None
            else _fail(context, kernel.delegate, "prepare", error)
        )


def _invoke(context: int, node: int) -> int:
    kernel = None
    try:
        kernel = _kernels[c_size_t.from_address(node + _USER_DATA).value]
        kernel.eval()
        return 0
    except BaseException as error:  # noqa: BLE001 - C cannot see it
        return (
            TfLiteStatus.ERROR if kernel is None else _fail(context, kernel.delegate, "eval", error)
        )


def _copier(direction: str) -> Callable[[int, int, int, int], int]:
    def copy(context: int, delegate_address: int, handle: int, tensor: int) -> int:
        delegate = None
        try:
            delegate = _delegate_at(delegate_address)
            if delegate is None:
                return TfLiteStatus.ERROR
            delegate.copy(direction, context, handle, tensor)
            return TfLiteStatus.OK
        except BaseException as error:  # noqa: BLE001 - C cannot see it
            if delegate is None:
                return TfLiteStatus.ERROR
            return _fail(context, delegate, f"copy {direction} buffer {handle}", error)

    return copy


def _free_buffer(context: int, delegate_address: int, handle: Any) -> None:
    try:
        delegate = _delegate_at(delegate_address)
        if delegate is not None:
            delegate.free_buffer_handle(context, handle[0])
    except BaseException as error:  # noqa: BLE001 - C cannot see it
        _raised.keep(error)


_THUNKS = {
    "init": callback(REGISTRATION_FUNCTIONS["init"])(_init),
    "free": callback(REGISTRATION_FUNCTIONS["free"])(_free),
    "prepare": callback(REGISTRATION_FUNCTIONS["prepare"])(_prepare),
    "invoke": callback(REGISTRATION_FUNCTIONS["invoke"])(_invoke),
    "Prepare": callback(DELEGATE_FUNCTIONS["Prepare"])(_apply),
    "CopyFromBufferHandle": callback(DELEGATE_FUNCTIONS["CopyFromBufferHandle"])(_copier("from")),
    "CopyToBufferHandle": callback(DELEGATE_FUNCTIONS["CopyToBufferHandle"])(_copier("to")),
    "FreeBufferHandle": callback(DELEGATE_FUNCTIONS["FreeBufferHandle"])(_free_buffer),
}
for _thunk in _THUNKS.values():
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_thunk))  # it must outlive this module

ADDRESSES: dict[str, int] = {
    name: ctypes.cast(thunk, c_void_p).value or 0 for name, thunk in _THUNKS.items()
}
"""Mapping from a function's name in the C structs to its address."""

_names: dict[str, bytes] = {}


def interned(name: str) -> bytes:
    """Return *name* as a C string at a permanent address, since the runtime keeps the pointer."""
    return _names.setdefault(name, name.encode().replace(b"\0", b" "))
