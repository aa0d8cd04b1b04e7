"""Published numbers of the Edge TPU that the compiler and the estimate use.

The size of the parameter cache is :data:`delegraph_edgetpu.devices.CACHE_BYTES`.
"""

from __future__ import annotations

LANES = 64
"""The array has 64 x 64 multiply-accumulate units: 64 inputs times 64 outputs a cycle."""

CLOCK = 480e6
"""Cycles a second; 64 x 64 x 2 x 480 M are the published 4 tera-operations a second."""

LINK = 500e6
"""Bytes a second of USB 3 (5 Gbit/s) or one PCIe 2 lane (5 GT/s), which code 8 bits in 10."""

OLDEST_RUNTIME = 10
NEWEST_RUNTIME = 14
"""Versions of the Edge TPU runtime that ``-m`` may name; what is compiled needs the newest one."""
