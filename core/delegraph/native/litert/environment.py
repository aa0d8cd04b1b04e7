"""Accelerators in an official ``Environment``, which offer Python delegates to models.

LiteRT asks the accelerators of an environment in order, for each model that is compiled in it.
Accelerators that :func:`compiling` adds offer delegates only to the model that the present thread
is compiling. So an environment needs as many accelerators as a model has delegates.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_char_p, c_void_p, py_object
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from delegraph.errors import ArgumentTypeError, StateError, UnsupportedRuntimeError
from delegraph.locks import Lock
from delegraph.native.litert import guard
from delegraph.native.litert.accelerator_functions import (
    CalledAccelerator,
    accelerators_of,
    register_address,
)
from delegraph.native.litert.delegate import LiteRtDelegate

Side = Literal["before", "after"]
"""Position of an accelerator: before or after the runtime's own accelerators."""

_CAPSULE = b"LiteRtEnvironment"

_HANDLE = 72
"""Offset of the C environment in the C++ object of the capsule.

The object has two unique_ptrs of 40 bytes, each a ``std::function`` of libstdc++ and a pointer.
"""

_REGISTRY = 24
"""Offset of the vector of accelerators in the C environment."""


Addresses = dict[Side, Sequence[Callable[[], int]]]
"""Functions that return the addresses of delegates, in the order of application."""


class _Compiling(threading.local):
    """Delegates that accelerators offer to the model that the present thread is compiling."""

    now: Addresses | None = None


_compiling = _Compiling()


@dataclass(frozen=True, slots=True)
class _Offer:
    """An accelerator that offers LiteRT one delegate of the model that is being compiled.

    Attributes:
        side: whether the delegate is asked before or after the runtime's own accelerators.
        position: position of the delegate among the model's delegates on that side.
        name: name of the accelerator.
    """

    side: Side
    position: int
    name: str = "Delegraph"

    def delegate_address(self) -> int | None:
        """Return the address of this offer's delegate; None if the compiled model has none."""
        now = _compiling.now
        addresses = now[self.side] if now else ()
        return addresses[self.position]() if self.position < len(addresses) else None


class RegisteredAccelerator:
    """A delegate for all models that other code compiles in an environment.

    Attributes:
        delegate: the delegate, with its incidents and its last exception.
        name: name of the accelerator, equal to the delegate's name.
    """

    def __init__(self, delegate: LiteRtDelegate) -> None:
        self.delegate = delegate
        self.name = delegate.delegate_name
        self._is_open = True

    def delegate_address(self) -> int | None:
        """Return the delegate's address.

        The result is None if this is closed, or while a model with chosen delegates is compiled.
        """
        is_wanted = self._is_open and _compiling.now is None
        return self.delegate.address if is_wanted else None

    def close(self) -> None:
        """Stop offering the delegate; models that are compiled later do not get it."""
        self._is_open = False

    def __enter__(self) -> RegisteredAccelerator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(slots=True)
class _Registry:
    """Python's accelerators in one environment.

    Attributes:
        lock: lock that is held while a model is compiled, because LiteRT then reads the
            accelerators.
        offers: number of accelerators on each side, before and after the runtime's own.
        before: addresses of the accelerators before the runtime's own, in order.
        after: addresses of the accelerators after the runtime's own, in order.
        is_compiling: whether a model is being compiled now.
    """

    lock: Lock = field(default_factory=Lock)
    offers: Counter[Side] = field(default_factory=Counter)
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    is_compiling: bool = False

    def add(self, handle: int, side: Side, accelerator: CalledAccelerator) -> None:
        """Register *accelerator* in an environment, as the last one on its *side*.

        *handle* is the address of the C environment. *side* is ``"before"`` or ``"after"`` the
        runtime's own accelerators.
        """
        own: list[int] = getattr(self, side)
        own.append(register_address(handle, accelerator))
        _put_in_order(handle, self.before, self.after)


_registries: WeakKeyDictionary[Any, _Registry] = WeakKeyDictionary()


def register_accelerator(
    environment: Any, delegate: LiteRtDelegate, *, before: bool = True
) -> RegisteredAccelerator:
    """Offer a delegate to the models that other code compiles in an official environment.

    ::

        environment = Environment.create()
        register_accelerator(environment, litert_delegate("sin", model="model.tflite"))
        model = CompiledModel.from_file("model.tflite", environment=environment)

    The delegate suits a single model. If the delegate fails, the official call raises its own
    error; the delegate's ``last_exception`` has the cause. The model must not run in two threads at
    the same time. :func:`~delegraph.native.litert.compiled_model.compiled_model` has none of these
    limits, and ignores the accelerators registered here.

    Args:
        environment: the official environment.
        delegate: result of ``litert_delegate``.
        before: whether the delegate is asked before the runtime's own accelerators.

    Raises:
        ArgumentTypeError: *delegate* is not the result of ``litert_delegate``.
        UnsupportedRuntimeError: the runtime cannot use delegates in Python.
    """
    if not isinstance(delegate, LiteRtDelegate):
        raise ArgumentTypeError(
            f"register_accelerator takes litert_delegate(..., model=...), not {delegate!r}"
        )
    guard.require_known_compiled_model()
    delegate.needs_static_shapes = True
    accelerator, handle = RegisteredAccelerator(delegate), _handle(environment)
    registry = _registries.setdefault(environment, _Registry())
    with registry.lock:
        registry.add(handle, "before" if before else "after", accelerator)
    return accelerator


@contextmanager
def compiling(environment: Any, addresses: Addresses) -> Iterator[None]:
    """Context in which the model that this thread compiles in *environment* gets delegates.

    *addresses* has, for each side, functions that return the addresses of delegates.

    Raises:
        StateError: the thread is compiling another model in the environment.
        UnsupportedRuntimeError: the environment has an unknown layout.
    """
    handle = _handle(environment)
    registry = _registries.setdefault(environment, _Registry())
    with registry.lock:
        if registry.is_compiling:
            raise StateError(
                "a delegate compiles a model in the environment of the model that is being "
                "compiled; use another environment"
            )
        for side, wanted in addresses.items():
            while registry.offers[side] < len(wanted):
                registry.add(handle, side, _Offer(side, registry.offers[side]))
                registry.offers[side] += 1
        outer, _compiling.now, registry.is_compiling = _compiling.now, addresses, True
        try:
            yield
        finally:
            _compiling.now, registry.is_compiling = outer, False


def _handle(environment: Any) -> int:
    """Return the address of the C environment that belongs to a Python ``Environment``."""
    return c_void_p.from_address(capsule_address(environment) + _HANDLE).value or 0


def capsule_address(environment: Any) -> int:
    """Return the address of the C++ object inside a Python ``Environment``.

    Raises:
        ValueError: the environment is closed.
        UnsupportedRuntimeError: the environment has no capsule of the known kind.
    """
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    capsule = environment.capsule
    try:
        return int(get(capsule, _CAPSULE))
    except ValueError as error:
        raise UnsupportedRuntimeError(f"the environment's capsule is unknown: {error}") from error


def _put_in_order(handle: int, before: Sequence[int], after: Sequence[int]) -> None:
    """Sort an environment's accelerators: those in *before*, the runtime's own, those in *after*.

    *handle* is the address of the C environment, and accelerators are given by address. The library
    has no function for this, so the pointers in the environment's vector are reordered.

    Raises:
        UnsupportedRuntimeError: the vector is not at the expected offset.
    """
    order = accelerators_of(handle)
    begin = c_void_p.from_address(handle + _REGISTRY).value or 0
    end = c_void_p.from_address(handle + _REGISTRY + 8).value or 0
    count = len(order) if end - begin == 8 * len(order) else 0
    cells = (c_void_p * count).from_address(begin)
    if list(cells) != order:
        raise UnsupportedRuntimeError("this LiteRT keeps its accelerators in an unknown layout")
    rest = [address for address in order if address not in {*before, *after}]
    cells[:] = [*before, *rest, *after]
