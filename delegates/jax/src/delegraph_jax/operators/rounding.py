"""Keeping roundings apart that a processor would otherwise do in one."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np


def rounded(product: Any) -> Any:
    """Return a product as its type has it: what is added to it is added after it was rounded.

    XLA may otherwise make a fused multiply-add of the two. Minus infinity becomes a number.
    """
    return jnp.maximum(product, np.finfo(product.dtype).min)
