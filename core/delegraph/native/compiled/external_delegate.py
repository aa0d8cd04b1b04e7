"""Runs compiled TFLite external delegates unchanged in Delegraph's interpreter.

A library exports ``tflite_plugin_create_delegate`` and ``tflite_plugin_destroy_delegate``. The
created delegate gets a ``TfLiteContext`` of Delegraph's subgraph. Libraries that need more of
TFLite than this struct do not work, for example libraries that call TFLite's functions, such as
``TfLiteOpaque...``, or cast ``impl_``.

Source:
    tflite/delegates/external/external_delegate_interface.h; TfLiteDelegate, tflite/core/c/common.h.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import re
import sys
from collections.abc import Mapping
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags
from delegraph.errors import (
    DelegateError,
    DelegateLibraryError,
    DelegateLoadError,
    NotADelegateError,
)
from delegraph.native.abi import DELEGATE_FUNCTIONS, TfLiteDelegate, callback, is_known_platform
from delegraph.native.compiled.context import NativeContext
from delegraph.native.compiled.context_functions import Contexts, context_of
from delegraph.operators.tensor import Tensor

logger = logging.getLogger(__name__)

CREATE, DESTROY = "tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"

_FLAGS = sum(DelegateFlags) & ~DelegateFlags.PER_OPERATOR_PROFILING
"""Delegate flags that have an effect here; PER_OPERATOR_PROFILING has none."""

_ReportError = CFUNCTYPE(None, c_char_p)


class NativeDelegate(Delegate):
    """A compiled delegate at a C address, which its creator keeps alive.

    Args:
        address: address of the ``TfLiteDelegate``.
        path: path of its library, for messages.

    Attributes:
        address: address of the ``TfLiteDelegate``.
        path: path of its library.

    Raises:
        DelegateError: the address is 0.
        DelegateLoadError: the struct has no function to claim nodes.
    """

    def __init__(self, address: int, path: str = "the process") -> None:
        require_right_platform(library_name(path))
        if not address:
            raise DelegateError("Null delegate.")
        self.path = path
        self.address = address
        self._struct: Any = TfLiteDelegate.from_address(address)
        self._contexts = Contexts()
        self._require_prepare()

    def _require_prepare(self) -> None:
        if self._struct.Prepare:  # older libraries lack the fields after Prepare
            return
        reason = "has no Prepare function, so it can claim nothing"
        if self._struct.opaque_delegate_builder:
            reason = (
                "is made by the opaque API (TfLiteOpaqueDelegateBuilder), which needs functions of "
                "TFLite that Delegraph does not have"
            )
        raise DelegateLoadError(f"{self._what()} {reason}", delegate=self.name())

    def _what(self) -> str:
        return f"the delegate of {self.path!r}"

    # -- the Delegate interface ----------------------------------------------------------------

    @property
    def flags(self) -> DelegateFlags:
        """Flags of the C struct, except flags that have no effect in Delegraph."""
        return DelegateFlags(self._struct.flags & _FLAGS)

    def name(self) -> str:
        """Return the library's file name without extension."""
        return library_name(self.path)

    def prepare(self, context: DelegateContext) -> None:
        """Call the C function ``Prepare`` of the delegate."""
        native = self.native_context(context)
        with native.called(context):
            status = self._function("Prepare")(native.address, self.address)
            native.check(status, "Prepare")

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Call the C function ``CopyFromBufferHandle`` of the delegate."""
        self._copy("CopyFromBufferHandle", context, tensor)

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Call the C function ``CopyToBufferHandle`` of the delegate."""
        self._copy("CopyToBufferHandle", context, tensor)

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
        """Call the delegate's C function ``FreeBufferHandle`` with *handle*, if there is one."""
        if not self._struct.FreeBufferHandle:
            return
        native = self.native_context(context)
        native.begin(context)
        try:
            self._function("FreeBufferHandle")(native.address, self.address, byref(c_int(handle)))
        finally:
            native.end()

    def _copy(self, function: str, context: DelegateContext, tensor: Tensor) -> None:
        if not getattr(self._struct, function):
            raise DelegateError(f"{self._what()} has no {function}", delegate=self.name())
        native = self.native_context(context)
        with native.called(context):
            struct = native.tensors[tensor.index]
            struct.write_data()
            address = native.tensors.address_of(tensor.index)
            call = self._function(function)
            status = call(native.address, self.address, tensor.buffer_handle, address)
            native.check(status, function)

    def _function(self, name: str) -> Any:
        """Return the function *name* of the C struct, which the delegate may replace any time."""
        return callback(DELEGATE_FUNCTIONS[name])(getattr(self._struct, name))

    # -- for its contexts and kernels ----------------------------------------------------------

    def native_context(self, context: DelegateContext) -> NativeContext:
        """Return the native context of a subgraph, created once per subgraph."""
        return context_of(self, self._contexts, context)

    def _get_native_delegate_pointer(self) -> int:
        """Return the delegate's C address, as the official class does under this name."""
        return self.address

    @staticmethod
    def address_of_owner(delegate: object | None) -> int:
        """Return the C address that represents the owner of a tensor or node; 0 for none."""
        return address_of_owner(delegate)

    def retain(self) -> None:
        """Do nothing: the native delegate's creator keeps it alive."""

    def release(self) -> None:
        """Do nothing: the native delegate's creator keeps it alive."""


class ExternalDelegate(NativeDelegate):
    """A delegate in a compiled library, loaded by the library's path.

    Args:
        library: path of the library; without a folder, the system's loader searches for it.
        options: options of the delegate; keys and values are converted to text.

    Raises:
        DelegateLibraryError: the library does not exist, or cannot be loaded.
        NotADelegateError: the library lacks the functions of a delegate.
        DelegateLoadError: the library does not create the delegate.
    """

    def __init__(self, library: str, options: Mapping[str, Any] | None = None) -> None:
        self._plugin: _Plugin | None = None
        self._plugin = _Plugin(library, dict(options or {}))
        super().__init__(self._plugin.address, library)

    def __del__(self) -> None:
        if self._plugin is not None:
            self._plugin.release()

    def retain(self) -> None:
        """Add one to the number of kernels that use the native delegate."""
        assert self._plugin is not None
        self._plugin.retain()

    def release(self) -> None:
        """Subtract one from the number of kernels that use the native delegate."""
        assert self._plugin is not None
        self._plugin.release()

    @property
    def _library(self) -> Any:
        """The loaded library, for programs that call its other functions."""
        assert self._plugin is not None
        return self._plugin.loaded


def address_of_owner(delegate: object | None) -> int:
    """Return the address that represents a Python or compiled delegate; 0 for none."""
    if delegate is None:
        return 0
    return delegate.address if isinstance(delegate, NativeDelegate) else _some_other_delegate()


@cache
def _some_other_delegate() -> int:
    """Return the address that represents all delegates written in Python."""
    _IMMORTAL.append(TfLiteDelegate())
    return ctypes.addressof(_IMMORTAL[-1])


_IMMORTAL: list[Any] = []


def library_name(library: str) -> str:
    """Return a library's file name without extension.

    >>> library_name("/usr/lib/libedgetpu.so.1")
    'libedgetpu'
    """
    name = os.path.basename(library)
    return re.sub(r"(\.so(\.\d+)*|\.dylib|\.dll)$", "", name) or name


class _Plugin:
    """A loaded native delegate, destroyed when no Python object or kernel uses it any more."""

    def __init__(self, library: str, options: Mapping[str, Any]) -> None:
        self.loaded = _open(library)
        self._destroy = _symbol(self.loaded, library, DESTROY)
        self._destroy.argtypes, self._destroy.restype = [c_void_p], None
        self._said: list[str] = []
        self._report = _ReportError(self._hear)  # the delegate may keep it
        self.address = self._create(library, options)
        self._users = 1

    def _hear(self, message: bytes | None) -> None:
        self._said.append((message or b"").decode(errors="replace"))

    def _create(self, library: str, options: Mapping[str, Any]) -> int:
        create = _symbol(self.loaded, library, CREATE)
        create.argtypes = [POINTER(c_char_p), POINTER(c_char_p), c_size_t, _ReportError]
        create.restype = c_void_p
        texts = [(str(key).encode(), str(value).encode()) for key, value in options.items()]
        keys = (c_char_p * len(texts))(*(key for key, _ in texts))
        values = (c_char_p * len(texts))(*(value for _, value in texts))
        address: int | None = create(keys, values, len(texts), self._report)
        if address is None:
            given = ", ".join(f"{key}={value}" for key, value in options.items()) or "none"
            reason = "".join(self._said).strip() or "it reported no reason"
            raise DelegateLoadError(
                _failed(library, f"{CREATE} made no delegate: {reason} (options: {given})"),
                delegate=library_name(library),
            )
        for message in self._said:
            logger.warning("delegate %r reports: %s", library_name(library), message)
        return address

    def retain(self) -> None:
        """Increase the number of users by one."""
        self._users += 1

    def release(self) -> None:
        """Decrease the number of users by one; destroy the delegate after the last one."""
        self._users -= 1
        if self._users == 0:
            self._destroy(self.address)


def _open(library: str) -> Any:
    name = library_name(library)
    require_right_platform(name)
    try:
        return ctypes.CDLL(library)
    except OSError as error:
        raise DelegateLibraryError(
            _failed(library, f"{error}{_advice(library, str(error))}"), delegate=name
        ) from error


def _failed(library: str, reason: str) -> str:
    return f"Failed to load delegate from {library}\n{reason}"


def require_right_platform(name: str) -> None:
    """Raise an error on a platform whose C struct layouts are not known.

    Raises:
        DelegateLoadError: the layouts are not known; the text names the delegate *name*.
    """
    if not is_known_platform():
        raise DelegateLoadError(
            "compiled delegates and operators need 64-bit little-endian CPython on Linux or macOS; "
            f"this is {sys.implementation.name} on {sys.platform} {platform.machine()}",
            delegate=name,
        )


def _advice(library: str, error: str) -> str:
    """Advice for the system loader's *error* about *library*; empty if there is none."""
    if "undefined symbol" in error and re.search(r"TfLite|tflite|LiteRt", error):
        return (
            "; it needs functions of TFLite's own library, which Delegraph does not have: build it "
            "with those linked in, or run it in stock LiteRT"
        )
    if not os.path.dirname(library):
        here = f", although there is ./{library}" if os.path.exists(library) else ""
        return f"; a name without a folder is looked for in the system's library folders{here}"
    return ""


def _symbol(loaded: Any, library: str, symbol: str) -> Any:
    try:
        return getattr(loaded, symbol)
    except AttributeError:
        reason = (
            f"it was loaded, and has no function {symbol}: it is not an external delegate "
            f"(expected {CREATE} and {DESTROY})"
        )
        raise NotADelegateError(_failed(library, reason), delegate=library_name(library)) from None
