"""Simulated devices: each runs one inference at a time, and has a parameter cache.

The cache of a device has 8 MB for parameters of executables with the same caching token, which
models get when they are compiled together. An executable with another token evicts all cached
parameters. Parameters that do not fit are streamed from the host at each inference.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord

CACHE_BYTES = 8 << 20
"""Number of bytes on the chip for parameters."""

VARIABLE = "DELEGRAPH_EDGETPU_DEVICES"
"""Environment variable with the list of devices, ``usb,pci``, or their number, ``3``."""

_DEFAULT = "usb,pci"
_KINDS = ("usb", "pci")
_MOST = 64


@dataclass(frozen=True, slots=True)
class Parameters:
    """Sizes, key and caching token of one executable's parameters.

    Attributes:
        key: identifier, equal for equal executables.
        caching_token: token of the executable; executables with equal tokens share the cache.
        cached_bytes: bytes of parameters that the compiler assigns to the cache.
        streamed_bytes: bytes that the host sends at each inference.
    """

    key: bytes
    caching_token: int
    cached_bytes: int
    streamed_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceStatistics(JsonRecord):
    """Counters of a device since the start of the process.

    Attributes:
        device: name of the device, such as ``:0``.
        kind: kind of connection with a number, such as ``usb:0``.
        inferences: number of runs of executables.
        parameter_loads: number of loads of parameters into the cache.
        loaded_bytes: bytes of all loads.
        streamed_bytes: bytes of parameters that were sent because they were not in the cache.
        evictions: number of executables whose parameters were evicted for another token.
        caching_token: token of the cached parameters; 0 for an empty cache.
        cached_executables: number of executables with parameters in the cache.
        cached_bytes: bytes of these parameters.
    """

    device: str
    kind: str
    inferences: int = 0
    parameter_loads: int = 0
    loaded_bytes: int = 0
    streamed_bytes: int = 0
    evictions: int = 0
    caching_token: int = 0
    cached_executables: int = 0
    cached_bytes: int = 0


class Device:
    """One simulated device; any number of interpreters and threads may use it.

    Args:
        name: name of the device, such as ``:0``.
        kind: kind of connection with a number, such as ``usb:0``.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self._lock = threading.RLock()
        self._cached: dict[bytes, int] = {}  # bytes on the chip of each executable, by its key
        self._statistics = DeviceStatistics(name, kind)

    @property
    def statistics(self) -> DeviceStatistics:
        """Current counters of the device."""
        with self._lock:
            return self._statistics

    @contextmanager
    def running(self, parameters: Parameters) -> Iterator[None]:
        """Context of one inference: the device is locked, with *parameters* in its cache."""
        with self._lock:
            self._fetch(parameters)
            yield

    def reset(self) -> None:
        """Clear cache and counters, as unplugging the device would."""
        with self._lock:
            self._cached.clear()
            self._statistics = DeviceStatistics(self.name, self.kind)

    def _fetch(self, parameters: Parameters) -> None:
        """Load *parameters* into the cache if they are not there, and update the counters."""
        done = self._statistics
        if parameters.caching_token != done.caching_token:
            done = replace(done, evictions=done.evictions + len(self._cached))
            self._cached.clear()
        loads, loaded = 0, 0
        if parameters.key not in self._cached:
            free = CACHE_BYTES - sum(self._cached.values())
            self._cached[parameters.key] = loaded = min(parameters.cached_bytes, free)
            loads = int(loaded > 0)
        missing = parameters.cached_bytes - self._cached[parameters.key]
        self._statistics = replace(
            done,
            inferences=done.inferences + 1,
            parameter_loads=done.parameter_loads + loads,
            loaded_bytes=done.loaded_bytes + loaded,
            streamed_bytes=done.streamed_bytes + parameters.streamed_bytes + missing,
            caching_token=parameters.caching_token,
            cached_executables=len(self._cached),
            cached_bytes=sum(self._cached.values()),
        )


def devices() -> tuple[Device, ...]:
    """Return all simulated devices, ``:0`` first.

    Raises:
        ArgumentError: the environment variable ``DELEGRAPH_EDGETPU_DEVICES`` is invalid.
    """
    return _devices(os.environ.get(VARIABLE, "").strip() or _DEFAULT)


def device_named(name: str) -> Device:
    """Return the device with a name.

    Args:
        name: ``:1`` means the second of all devices, ``usb:0`` the first USB device, ``usb`` any
            USB device, and an empty text any device.

    Raises:
        ArgumentError: no device has this name; the message lists the devices.
    """
    there = devices()
    for device in there:
        if name in ("", device.name, device.kind, device.kind.partition(":")[0]):
            return device
    names = ", ".join(f"{device.name!r} or {device.kind!r}" for device in there)
    kinds = " or ".join(sorted({repr(device.kind.partition(":")[0]) for device in there}))
    raise ArgumentError(
        f"no Edge TPU {name!r} is simulated; there are {names}, and {kinds} for any of that kind "
        f"(the environment variable {VARIABLE}=usb,pci says which, {VARIABLE}=3 how many)"
    )


def statistics() -> tuple[DeviceStatistics, ...]:
    """Return the counters of each device since the process began; device ``:0`` is first."""
    return tuple(device.statistics for device in devices())


@functools.cache
def _devices(text: str) -> tuple[Device, ...]:
    kinds = ["usb"] * _count(text) if text.isdecimal() else [k.strip() for k in text.split(",")]
    unknown = sorted(set(kinds) - set(_KINDS))
    if unknown:
        raise ArgumentError(
            f"{VARIABLE} is {text!r}, expected a number of devices, or 'usb' and 'pci' with commas "
            f"between; {unknown[0]!r} is neither"
        )
    return tuple(Device(f":{i}", f"{kind}:{kinds[:i].count(kind)}") for i, kind in enumerate(kinds))


def _count(text: str) -> int:
    count = int(text[:9])
    if not 1 <= count <= _MOST:
        raise ArgumentError(f"{VARIABLE} is {text!r}, expected 1 to {_MOST} devices")
    return count
