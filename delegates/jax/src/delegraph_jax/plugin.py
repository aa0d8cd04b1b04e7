"""What this distribution offers; Delegraph imports it to list plugins, so it stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph import DelegateSpec, hookimpl
from delegraph_jax.options import JaxOptions

if TYPE_CHECKING:
    from delegraph_jax.delegate import JaxDelegate

DELEGRAPH_API = 1


def _load() -> type[JaxDelegate]:
    from delegraph_jax.delegate import JaxDelegate

    return JaxDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return what this plugin offers."""
    return [
        DelegateSpec("jax", "any device of JAX, by functions that XLA compiles", _load, JaxOptions)
    ]
