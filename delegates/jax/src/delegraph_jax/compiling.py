"""Compiles for a device, without XLA options that are known to give wrong results."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import jax
from jax.stages import Compiled, Lowered

_NO_FUSIONS = {
    "xla_cpu_experimental_ynn_fusion_type": (
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"
    )
}
"""Has YNNPACK compute single products and convolutions, and nothing together with them.

What JAX 0.10.2 makes of a convolution, the addition of a padded image and a reduce-window, given
to that library as one, has wrong numbers, far from rounding.
"""


def compile_safely(lowered: Lowered, platform: str) -> Compiled:
    """Return the executable of a function for a platform."""
    if platform != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=_NO_FUSIONS)
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return lowered.compile()  # a version without that library, or without the choice


@cache
def version() -> str:
    """Versions of JAX, this package and the processor, on which executables depend."""
    made_by = hashlib.sha256(_processor().encode())
    package = Path(__file__).parent
    for file in sorted(package.rglob("*.py")):
        made_by.update(file.read_bytes())
    return f"{jax.__version__}-{made_by.hexdigest()[:16]}"


def _processor() -> str:
    """Text that identifies the processor's instruction set."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
