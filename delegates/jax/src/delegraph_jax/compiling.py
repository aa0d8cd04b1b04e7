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
"""XLA option that lets YNNPACK compute only single products and convolutions, no fusions.

JAX 0.10.2 passes a convolution, the addition of a padded image and a reduce-window to that library
as one fusion. The results are wrong by more than rounding errors.
"""


def compile_safely(lowered: Lowered, platform: str) -> Compiled:
    """Compile the JAX function *lowered* for *platform*: ``cpu``, ``gpu`` or ``tpu``."""
    if platform != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=_NO_FUSIONS)
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return lowered.compile()  # this version lacks the library or the option


@cache
def version() -> str:
    """Return a text with the versions of JAX, this package and the processor.

    Executables depend on all of them.
    """
    made_by = hashlib.sha256(_processor().encode())
    package = Path(__file__).parent
    for file in sorted(package.rglob("*.py")):
        made_by.update(file.read_bytes())
    return f"{jax.__version__}-{made_by.hexdigest()[:16]}"


def _processor() -> str:
    """Return a text that identifies the processor's instruction set."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # the system is not Linux
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
