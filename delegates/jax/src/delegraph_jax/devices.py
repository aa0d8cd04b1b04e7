"""Finds JAX's devices by the names that the options use."""

from __future__ import annotations

import jax

from delegraph.errors import PluginOptionError


def device_named(name: str) -> jax.Device:
    """Return a device by its name: ``cpu``, ``gpu:1``; ``gpu`` means the first GPU.

    Raises:
        PluginOptionError: JAX finds no device of this name.
    """
    platform, _, number = name.partition(":")
    try:
        devices = jax.devices(platform)
        return devices[int(number or 0)]
    except (RuntimeError, IndexError) as error:
        found = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
        raise PluginOptionError(f"device {name!r} is not there; JAX finds {found}") from error


def name_of(device: jax.Device) -> str:
    """Return the name by which :func:`device_named` finds a device."""
    return f"{device.platform}:{jax.devices(device.platform).index(device)}"
