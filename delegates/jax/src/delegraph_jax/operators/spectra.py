"""Fourier transforms, and operators on complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph_jax.operators.registry import FLOATS, Call, function_of_inputs, operator


@operator("RFFT2D", FLOATS, output="COMPLEX64", fft_length="INT32", constants=(1,))
def rfft2d(call: Call) -> Any:
    """Return the spectrum over the last two axes, cut or zero-padded, computed in float64."""
    height, width = call.integers(1)
    image = call.input(0)[..., :height, :width].astype(np.float64)
    return jnp.fft.rfft2(image, (height, width))


_OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "COMPLEX_ABS": jnp.abs,
    "IMAG": lambda x: x.imag,
    "REAL": lambda x: x.real,
}

for _name, _function in _OF_COMPLEX.items():
    function_of_inputs(_name, ("COMPLEX64",), _function, output="FLOAT32")
