"""Which delegates a model gets without anybody naming them, for ``delegraph plugins``."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.delegation.configuration import default_delegates
from delegraph.errors import PluginError, UnknownDelegateError
from delegraph.json_records import JsonRecord
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.plugin import is_ready
from delegraph.plugins.plugin_set import PluginSet
from delegraph.runtime.delegates.default_delegate import ADDRESS


@dataclass(frozen=True, slots=True)
class DefaultDelegates(JsonRecord):
    """What a model gets by default here.

    Attributes:
        delegates: their names, as users write them, in the order in which they are applied.
        why: who says so, or why there is none, in words.
    """

    delegates: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"By default: {', '.join(self.delegates) or 'no delegate'} ({self.why})"


def defaults_among(plugins: PluginSet) -> DefaultDelegates:
    """Delegates that a model gets by default where these plugins are installed.

    Raises:
        ConfigurationError: the user's configuration file has a mistake.
    """
    named, source = default_delegates()
    if named is not None:
        return DefaultDelegates(named, f"set by {source}")
    address = DelegateAddress.parse(ADDRESS)
    try:
        spec = plugins.find(address).spec
    except UnknownDelegateError:
        return DefaultDelegates((), f"{address.distribution} is not installed")
    except PluginError as error:
        return DefaultDelegates((), str(error))
    if not is_ready(spec):
        why = "would have to compile first, as 'delegraph numba info' explains"
        return DefaultDelegates((), f"{spec.name} {why}")
    return DefaultDelegates((spec.name,), "it is ready, and computes what other delegates leave")
