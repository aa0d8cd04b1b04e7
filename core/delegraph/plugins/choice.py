"""Allow and disable lists, which decide which installed plugins may be used."""

from __future__ import annotations

import os
from collections.abc import Iterable

from delegraph.delegation.configuration import configuration
from delegraph.lazy_dataclass import dataclass
from delegraph.plugins.address import canonical_name
from delegraph.plugins.plugin import ALLOW_VARIABLE, DISABLE_VARIABLE, PluginState


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """Allow list and disable list of plugins; a plugin is written ``plugin`` or ``dist:plugin``.

    Attributes:
        allow: the only plugins that may be used; None means all.
        disable: plugins that may not be used, even if *allow* lists them.
        allow_source: text that names the origin of the allow list, for messages.
        disable_source: text that names the origin of the disable list.
    """

    allow: frozenset[str] | None = None
    disable: frozenset[str] = frozenset()
    allow_source: str = "the allow list"
    disable_source: str = "the disable list"

    @classmethod
    def of(
        cls, allow: Iterable[str] | None = None, disable: Iterable[str] | None = None
    ) -> PluginChoice:
        """Return the lists in the arguments, else in the environment, else in the user's file.

        Each list comes from one of these sources; they are not merged. ``*`` in an allow list means
        every plugin. An empty ``DELEGRAPH_PLUGINS`` allows no plugin. If no source has an allow
        list, all plugins are allowed.

        Raises:
            ConfigurationError: the configuration file has a mistake.
        """
        allow_source, disable_source = cls().allow_source, cls().disable_source
        if allow is None:
            allow, allow_source = _given(ALLOW_VARIABLE, "allow")
        if disable is None:
            disable, disable_source = _given(DISABLE_VARIABLE, "disable")
        allowed = None if allow is None or "*" in (names := frozenset(allow)) else names
        return cls(allowed, frozenset(disable or ()), allow_source, disable_source)

    def refusal(self, name: str, distribution: str) -> tuple[PluginState, str] | None:
        """Return state and reason of a plugin that the lists exclude; None if it may be used."""
        names = self.names_of(name, distribution)
        if names & self.canonical(self.disable):
            return PluginState.DISABLED, f"disabled by {self.disable_source}"
        if self.allow is not None and not names & self.canonical(self.allow):
            listed = ",".join(sorted(self.allow))
            shown = f"only {listed!r}" if self.allow else "none"
            return PluginState.NOT_ALLOWED, f"{self.allow_source} allows {shown}"
        return None

    @staticmethod
    def names_of(name: str, distribution: str) -> frozenset[str]:
        """Return the spellings by which lists may refer to a plugin: ``name`` and ``dist:name``."""
        return PluginChoice.canonical((name, f"{distribution}:{name}"))

    @staticmethod
    def canonical(names: Iterable[str]) -> frozenset[str]:
        """Return *names* with distribution names, if any, in the spelling of package indexes."""
        split = (name.rpartition(":") for name in names)
        return frozenset(
            f"{canonical_name(dist)}:{name}" if dist else name for dist, _, name in split
        )


def _given(variable: str, setting: str) -> tuple[Iterable[str] | None, str]:
    """Return the plugin names that the user gave, and text that names the source.

    Names are None if neither is set.

    Args:
        variable: environment variable, which is used if it is set.
        setting: key of the configuration file, which is used otherwise.
    """
    text = os.environ.get(variable)
    if text is not None:
        return [name.strip() for name in text.split(",") if name.strip()], variable
    found = configuration()
    names: tuple[str, ...] | None = getattr(found, setting)
    return names, variable if names is None else f"plugins.{setting} of {found.path}"
