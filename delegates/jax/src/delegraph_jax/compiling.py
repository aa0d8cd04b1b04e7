"""Compiling for a device, without what is known to compute wrong numbers there."""

from __future__ import annotations

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
