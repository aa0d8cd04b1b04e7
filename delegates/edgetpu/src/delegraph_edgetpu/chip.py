"""Published numbers of the Edge TPU, which the compiler and the time estimate use.

The size of the parameter cache is :data:`delegraph_edgetpu.devices.CACHE_BYTES`.
"""

from __future__ import annotations

LANES = 64
"""Side length of the array of multiply-accumulate units: 64 inputs times 64 outputs per cycle."""

CLOCK = 480e6
"""Cycles per second; 64 x 64 x 2 x 480 M are the published 4 tera-operations per second."""

LINK = 500e6
"""Bytes per second of USB 3 or one PCIe 2 lane: 5 Gbit/s, with 10 bits for each byte."""

OLDEST_RUNTIME = 10
NEWEST_RUNTIME = 14
"""Latest and default version of the Edge TPU runtime that the flag ``-m`` accepts."""
