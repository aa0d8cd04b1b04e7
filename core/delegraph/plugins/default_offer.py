"""Finds the default delegate without importing any other plugin."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from delegraph.plugins import hookspecs
from delegraph.plugins.address import canonical_name
from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.kept_entry_points import PathState
from delegraph.plugins.plugin import Plugin, is_ready
from delegraph.plugins.specs import DelegateSpec

if TYPE_CHECKING:
    from delegraph.plugins.plugin_set import Offer


WITH_DEFAULT = frozenset({"delegraph-numba-cpu"})
"""Distributions of this project that have a default delegate at present."""


def default_offer() -> tuple[DelegateSpec, Plugin] | None:
    """Return spec and plugin of the best ready default delegate; None if none is ready.

    The quick way imports only plugins of this project. If it finds none, or if all plugins are
    imported already, the offers of all plugins are used; a failing plugin is then recorded as
    broken.

    Raises:
        ConfigurationError: the configuration file has a mistake.
    """
    plugin_set = sys.modules.get("delegraph.plugins.plugin_set")
    found = None
    if plugin_set is None or plugin_set.found_plugins is None:
        found = _quickly_found(PluginChoice.of())
    if found is None:
        from delegraph.plugins.plugin_set import installed

        offers: tuple[Offer, ...] = installed().defaults()
        found = next(((each.spec, each.plugin) for each in offers if is_ready(each.spec)), None)
    return found


def _quickly_found(choice: PluginChoice) -> tuple[DelegateSpec, Plugin] | None:
    for point in PathState().kept() or ():
        is_refused = choice.refusal(point.name, point.distribution) is not None
        if canonical_name(point.distribution) not in WITH_DEFAULT or is_refused:
            continue
        try:
            module = import_module(point.value)
            if module.DELEGRAPH_API == hookspecs.API_VERSION:
                specs: Any = module.delegraph_delegates()
                spec = next(spec for spec in specs if spec.default_rank is not None)
                if is_ready(spec):
                    return spec, Plugin(point.name, point.distribution, point.version, point.value)
        except Exception:  # noqa: BLE001 - looking at all plugins says what is wrong
            return None
    return None
