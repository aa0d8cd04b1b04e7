"""Calls between Python and ``libLiteRt`` for accelerators, in both directions.

An accelerator offers a delegate to each model that is compiled in its environment. LiteRT's Python
classes contain a second copy of ``libLiteRt``, of the same build and with the same heap. So the
library's functions work on environments that the Python classes created.

The functions that LiteRT calls are created once per process and never freed. An environment still
asks its accelerators for their names while it is destroyed, even at the end of the process. They
raise no exception, because C cannot handle it.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from delegraph.errors import UnsupportedRuntimeError, in_words
from delegraph.native.litert.installed_runtimes import compiled_model_module
from delegraph.native.litert.thunks import interned

logger = logging.getLogger(__name__)

OK, RUNTIME_FAILURE = 0, 3

CPU = 1
"""Hardware bit of the accelerators from which LiteRT requests a delegate for every model."""

_GET_NAME = CFUNCTYPE(c_int, c_void_p, POINTER(c_char_p))
_GET_VERSION = CFUNCTYPE(c_int, c_void_p, POINTER(c_int * 3))
_GET_HARDWARE = CFUNCTYPE(c_int, c_void_p, POINTER(c_int))
_CREATE_DELEGATE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p))
_IS_JIT = CFUNCTYPE(c_int, c_void_p, POINTER(c_bool))
_RELEASE = CFUNCTYPE(None, c_void_p)

_SETTERS = {
    "LiteRtSetAcceleratorGetName": _GET_NAME,
    "LiteRtSetAcceleratorGetVersion": _GET_VERSION,
    "LiteRtSetAcceleratorGetHardwareSupport": _GET_HARDWARE,
    "LiteRtSetDelegateFunction": _CREATE_DELEGATE,
    "LiteRtSetIsAcceleratorDelegateResponsibleForJitCompilation": _IS_JIT,
}

_FUNCTIONS: dict[str, list[Any]] = {
    "LiteRtCreateAccelerator": [POINTER(c_void_p)],
    **{name: [c_void_p, kind] for name, kind in _SETTERS.items()},
    "LiteRtRegisterAccelerator": [c_void_p, c_void_p, c_void_p, _RELEASE],
    "LiteRtGetNumAccelerators": [c_void_p, POINTER(c_size_t)],
    "LiteRtGetAccelerator": [c_void_p, c_size_t, POINTER(c_void_p)],
    "LiteRtWrapDelegate": [c_void_p, _RELEASE, POINTER(c_void_p)],
}


class CalledAccelerator(Protocol):
    """Interface of an accelerator written in Python, as the C callbacks use it."""

    @property
    def name(self) -> str:
        """Name of the accelerator, which LiteRT writes to its log."""

    def delegate_address(self) -> int | None:
        """Return the address of the delegate for the model being compiled; None if it has none."""


_accelerators: dict[int, CalledAccelerator] = {}
"""Mapping from the address of a C accelerator to its Python part, until LiteRT releases it."""


@cache
def _library() -> ctypes.PyDLL:
    """Return ``libLiteRt``, whose functions are called with the GIL held, as they call Python back.

    Raises:
        UnsupportedRuntimeError: the library or one of the functions is missing.
    """
    folder = Path(str(compiled_model_module().__file__)).parent
    try:
        library = ctypes.PyDLL(str(next(folder.glob("libLiteRt.*"), folder / "libLiteRt.so")))
        for name, types in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = c_int, types
    except (OSError, AttributeError) as error:
        raise UnsupportedRuntimeError(
            f"ai_edge_litert has no functions for accelerators ({error}), so its CompiledModel "
            "cannot use delegates in Python"
        ) from error
    return library


def exported_function(name: str) -> Any:
    """Return the function *name* of the library, which is called with the GIL held."""
    return getattr(_library(), name)


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), name)(*arguments)
    if status != OK:
        raise UnsupportedRuntimeError(f"{name} failed with status {status}")


def accelerators_of(environment: int) -> list[int]:
    """Return the addresses of the accelerators of an environment, in the order of application.

    *environment* is the address of the C environment.
    """
    count, found = c_size_t(), c_void_p()
    _call("LiteRtGetNumAccelerators", environment, byref(count))
    addresses = []
    for index in range(count.value):
        _call("LiteRtGetAccelerator", environment, index, byref(found))
        addresses.append(found.value or 0)
    return addresses


def register_address(environment: int, accelerator: CalledAccelerator) -> int:
    """Add an accelerator at the end of an environment's list; return the accelerator's address.

    *environment* is the address of the C environment.
    """
    made = c_void_p()
    _call("LiteRtCreateAccelerator", byref(made))
    address = made.value or 0
    _accelerators[address] = accelerator
    for setter, kind in _SETTERS.items():
        _call(setter, address, _THUNKS[kind])
    _call("LiteRtRegisterAccelerator", environment, address, address, _RELEASED)
    return address


# -- what C calls ------------------------------------------------------------------------------


def _answering(answer: Callable[[CalledAccelerator, Any], None]) -> Callable[..., int]:
    """Return a C callback that calls *answer* and turns its exception into an error status.

    The callback receives the number of an accelerator and an address for the result.

    Args:
        answer: function that is called with the accelerator and the address; it writes the result
            there.
    """

    def call(accelerator: int, out: Any) -> int:
        try:
            answer(_accelerators[accelerator], out)
            return OK
        except BaseException as error:  # noqa: BLE001 - C cannot see it
            logger.warning("an accelerator failed: %s", in_words(error))
            return RUNTIME_FAILURE

    return call


def _get_name(accelerator: CalledAccelerator, out: Any) -> None:
    out[0] = interned(accelerator.name)


def _get_version(accelerator: CalledAccelerator, out: Any) -> None:
    out[0][:] = [1, 0, 0]


def _get_hardware(accelerator: CalledAccelerator, out: Any) -> None:
    out[0] = CPU


def _is_jit(accelerator: CalledAccelerator, out: Any) -> None:
    out[0] = False  # True would exclude it from models that do not request the CPU


def _give_delegate(accelerator: CalledAccelerator, out: Any) -> None:
    address = accelerator.delegate_address()
    out[0] = None
    if address is not None:
        _call("LiteRtWrapDelegate", address, _THUNKS[_RELEASE], out)


_create = _answering(_give_delegate)


def _create_delegate(_context: int, _environment: int, own: int, _options: int, out: Any) -> int:
    return _create(own, out)


def _release_accelerator(address: int, known: dict[int, Any] = _accelerators) -> None:
    """Remove the accelerator at *address* from *known*, because LiteRT has destroyed it."""
    known.pop(address, None)


def _release_delegate(address: int) -> None:
    """Do nothing, because a delegate's C struct is never freed."""


_THUNKS: dict[Any, Any] = {
    _GET_NAME: _GET_NAME(_answering(_get_name)),
    _GET_VERSION: _GET_VERSION(_answering(_get_version)),
    _GET_HARDWARE: _GET_HARDWARE(_answering(_get_hardware)),
    _IS_JIT: _IS_JIT(_answering(_is_jit)),
    _CREATE_DELEGATE: _CREATE_DELEGATE(_create_delegate),
    _RELEASE: _RELEASE(_release_delegate),
}
_RELEASED = _RELEASE(_release_accelerator)
for _immortal in (*_THUNKS.values(), _RELEASED, _accelerators):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_immortal))  # it must outlive this module
