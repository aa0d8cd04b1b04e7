"""Roundings that match the official kernels."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


def rounded(product: Any) -> Any:
    """Return *product* rounded to its type before anything is added to it.

    XLA may otherwise make a fused multiply-add of the two. One limit would not prevent it: XLA
    drops the lower one where it can prove that no product is negative. Infinities become numbers.
    What NumPy has computed, of constants, is rounded.
    """
    if isinstance(product, np.ndarray | np.generic):
        return product
    limits = np.finfo(product.dtype)
    return lax.clamp(limits.min, product, limits.max)


def round_half_away(x: Any) -> Any:
    """Return whole numbers, halves away from zero."""
    whole = jnp.trunc(x)
    return whole + jnp.where(jnp.abs(x - whole) >= 0.5, jnp.sign(x), 0)
