"""Roundings that match the official kernels."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


def rounded(product: Any) -> Any:
    """Return *product* rounded to its type before anything is added to it.

    Otherwise XLA may join product and addition to a fused multiply-add. Clamping to finite limits
    prevents this, so infinities become finite numbers. A single limit would not suffice: XLA drops
    the lower limit if it can prove that no product is negative. Products of constants by NumPy are
    already rounded, and returned unchanged.
    """
    if isinstance(product, np.ndarray | np.generic):
        return product
    limits = np.finfo(product.dtype)
    return lax.clamp(limits.min, product, limits.max)


def round_half_away(x: Any) -> Any:
    """Return *x* rounded to whole numbers, halves away from zero."""
    whole = jnp.trunc(x)
    return whole + jnp.where(jnp.abs(x - whole) >= 0.5, jnp.sign(x), 0)
