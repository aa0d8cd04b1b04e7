"""Delegates that every model gets without being named, for ``delegraph plugins``."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.delegation.configuration import default_delegates
from delegraph.json_records import JsonRecord
from delegraph.plugins.plugin import is_ready
from delegraph.plugins.plugin_set import PluginSet


@dataclass(frozen=True, slots=True)
class DefaultDelegates(JsonRecord):
    """Delegates that a model gets by default on this machine.

    Attributes:
        delegates: names of the delegates, as users write them, in the order of application.
        why: text that names the source of the choice, or says why there are none.
    """

    delegates: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        names = ", ".join(self.delegates) or "Delegraph's own kernels"
        return f"By default: {names} ({self.why})"


def defaults_among(plugins: PluginSet) -> DefaultDelegates:
    """Return the delegates that a model gets by default when these plugins are installed.

    Raises:
        ConfigurationError: the user's configuration file has a mistake.
    """
    named, source = default_delegates()
    if named is not None:
        return DefaultDelegates(named, f"set by {source}")
    offers = plugins.defaults()
    ready = next((offer.spec.name for offer in offers if is_ready(offer.spec)), None)
    if ready is not None:
        return DefaultDelegates((ready,), "it is ready, and computes what other delegates leave")
    if offers:
        names = ", ".join(offer.spec.name for offer in offers)
        return DefaultDelegates((), f"{names}: not prebuilt, would have to compile first")
    unusable = [f"{p} is {p.state.value}: {p.error}" for p in plugins.plugins if p.error]
    why = "; ".join(["no installed delegate applies by default", *unusable])
    return DefaultDelegates((), why)
