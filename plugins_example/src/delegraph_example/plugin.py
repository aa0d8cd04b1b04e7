"""Delegates of this distribution; the entry point in ``pyproject.toml`` names this module.

Delegraph imports it to list plugins, so it stays light: each delegate's own module is imported by
its ``load`` function, when a user asks for that delegate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph import DelegateSpec, hookimpl
from delegraph_example.options import AddSubOptions

if TYPE_CHECKING:
    from delegraph_example.add_sub import AddSubDelegate
    from delegraph_example.sin import SinDelegate

DELEGRAPH_API = 1  # the version of the hooks that this module was written for


def _load_sin() -> type[SinDelegate]:
    from delegraph_example.sin import SinDelegate

    return SinDelegate


def _load_add_sub() -> type[AddSubDelegate]:
    from delegraph_example.add_sub import AddSubDelegate

    return AddSubDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Specs of the plugin's delegates: name, summary, and how to load each."""
    return [
        DelegateSpec("sin", "SIN on float32", _load_sin),
        DelegateSpec("add_sub", "ADD and SUB on float32", _load_add_sub, AddSubOptions),
    ]
