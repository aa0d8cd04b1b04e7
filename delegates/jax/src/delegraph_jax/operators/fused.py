"""Fused activations, applied to float and integer results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph import Node, Rejection, Tensor
from delegraph.arithmetic import finite_activation_range, float_activation_range
from delegraph.schema.enums import ActivationFunctionType as Activation

CLAMPS = (Activation.NONE, Activation.RELU, Activation.RELU_N1_TO_1, Activation.RELU6)


def check_clamp(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    """Return a rejection unless the fused activation is a clamp or none."""
    activation = options.fused_activation_function
    if activation in CLAMPS:
        return None
    expected = " or ".join(clamp.name for clamp in CLAMPS)
    return Rejection("activation", actual=Activation(activation).name, expected=expected)


def clamp(options: Any, x: Any) -> Any:
    """Return *x* after the fused activation in a node's options."""
    low, high = float_activation_range(options.fused_activation_function)
    if low == -np.inf:
        return x
    return jnp.clip(x, low, None if high == np.inf else high).astype(x.dtype)


def clamp_to_finite(options: Any, x: Any) -> Any:
    """Return *x* after the fused activation in *options*.

    Infinities become the largest finite floats.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return clamp(options, x)
    low, high = finite_activation_range(options.fused_activation_function, np.dtype(x.dtype))
    return jnp.clip(x, low, high).astype(x.dtype)
