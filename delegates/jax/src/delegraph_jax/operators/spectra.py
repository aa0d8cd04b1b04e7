"""Fourier transforms, and operators on complex numbers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph_jax.operators.registry import FLOATS, Call, operator


@operator("RFFT2D", FLOATS, output="COMPLEX64", fft_length="INT32", constants=(1,))
def rfft2d(call: Call) -> Any:
    """Return the spectrum over the last two axes, cut or zero-padded, computed in float64.

    Args:
        call: the node, with the values of its inputs and its options.
    """
    height, width = call.integers(1)
    image = call.input(0)[..., :height, :width].astype(np.float64)
    return jnp.fft.rfft2(image, (height, width))


@operator("COMPLEX_ABS", ("COMPLEX64",), output="FLOAT32")
def complex_abs(call: Call) -> Any:
    """Return the magnitudes of complex numbers.

    Args:
        call: the node, with the values of its inputs and its options.
    """
    return jnp.abs(call.input(0))


@operator("REAL", ("COMPLEX64",), output="FLOAT32")
def real(call: Call) -> Any:
    """Return the real parts of complex numbers.

    Args:
        call: the node, with the values of its inputs and its options.
    """
    return call.input(0).real


@operator("IMAG", ("COMPLEX64",), output="FLOAT32")
def imag(call: Call) -> Any:
    """Return the imaginary parts of complex numbers.

    Args:
        call: the node, with the values of its inputs and its options.
    """
    return call.input(0).imag
