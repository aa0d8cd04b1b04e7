"""The plugins of a process: finds their offers by name, or explains why there is none."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from delegraph.errors import (
    AmbiguousDelegateError,
    PluginError,
    PluginLoadError,
    PluginOptionError,
    UnknownDelegateError,
    did_you_mean,
)
from delegraph.lazy_dataclass import dataclass, replace
from delegraph.locks import Lock
from delegraph.log import Logger
from delegraph.plugins import known_packages
from delegraph.plugins.address import DelegateAddress, canonical_name
from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.creation import load_command, load_custom_op, make_delegate
from delegraph.plugins.discovery import discover
from delegraph.plugins.options import Given, option_without_value
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec

if TYPE_CHECKING:
    import click
    from importlib_metadata import EntryPoint

    from delegraph.delegation.delegate import Delegate

logger = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """A delegate that an installed, usable plugin offers: its spec and the plugin."""

    plugin: Plugin
    spec: DelegateSpec

    @property
    def address(self) -> str:
        """Address ``dist:name``, which is unique among all installed plugins."""
        return f"{self.plugin.distribution}:{self.spec.name}"

    @property
    def compiler(self) -> CompilerSpec | None:
        """Spec that compiles the delegate's partitions ahead of time; None if there is none."""
        named = (spec for spec in self.plugin.compilers if spec.name == self.spec.name)
        return next(named, None)


class PluginSet:
    """The plugins found at one time; a set does not change afterwards.

    Creating a set imports the plugins' light modules, but nothing that ``load`` imports. Most
    callers should use :func:`installed`.

    Args:
        allow: the only plugins to use, ``name`` or ``dist:name``; ``["*"]`` means all. None means
            the list in ``DELEGRAPH_PLUGINS``, or else in the user's configuration.
        disable: plugins not to use; None means the list in ``DELEGRAPH_DISABLE_PLUGINS``, or else
            in the user's configuration.
        entry_points: entry points to use instead of those of the installed distributions.
        plugins: plugins to use unchanged, without discovery.

    Attributes:
        is_of_environment: whether the plugins are those of the installed distributions.
        choice: the allow and disable lists in force.
        plugins: every plugin, in any state, sorted by name and distribution.
    """

    def __init__(
        self,
        allow: Iterable[str] | None = None,
        disable: Iterable[str] | None = None,
        entry_points: Iterable[EntryPoint] | None = None,
        plugins: tuple[Plugin, ...] | None = None,
    ) -> None:
        self.is_of_environment = entry_points is None
        self.choice = PluginChoice.of(allow, disable)
        self.plugins = discover(self.choice, entry_points) if plugins is None else plugins

    def to_json(self) -> dict[str, Any]:
        """Return every plugin, in any state, with its offers and options in JSON form.

        Each plugin has the form of :meth:`Plugin.to_json <delegraph.plugins.Plugin.to_json>`.
        """
        return {"plugins": [plugin.to_json() for plugin in self.plugins]}

    def offers(self) -> tuple[Offer, ...]:
        """Return every delegate of every usable plugin, sorted by name and distribution."""
        found = [Offer(plugin, spec) for plugin in self.plugins for spec in plugin.delegates]
        return tuple(sorted(found, key=lambda o: (o.spec.name, o.plugin.distribution)))

    def by_rank(self) -> tuple[Offer, ...]:
        """Return all delegate offers in the order in which a set of delegates is applied.

        They are sorted by rank, then by name and distribution.
        """
        return tuple(sorted(self.offers(), key=lambda offer: offer.spec.rank))

    def defaults(self) -> tuple[Offer, ...]:
        """Return the delegates that may become the default delegate, best first.

        These delegates have a ``default_rank`` and come from a distribution of this project.
        """
        found = [
            (offer.spec.default_rank, offer)
            for offer in self.offers()
            if offer.spec.default_rank is not None
            and canonical_name(offer.plugin.distribution) in known_packages.OUR_DISTRIBUTIONS
        ]
        return tuple(offer for _, offer in sorted(found, key=lambda each: each[0]))

    def for_custom_ops(self, names: Iterable[str]) -> tuple[Offer, ...]:
        """Return the delegates offered for any of the custom operators *names*, by rank."""
        import fnmatch  # lazy import: few models have any

        wanted = set(names)
        return tuple(
            offer
            for offer in self.by_rank()
            if any(fnmatch.filter(wanted, pattern) for pattern in offer.spec.custom_ops)
        )

    def find(self, address: DelegateAddress | str) -> Offer:
        """Return the installed delegate that *address* names; ``my-chip`` finds ``my_chip``.

        Raises:
            PluginOptionError: the text is no address.
            AmbiguousDelegateError: several plugins offer the delegate.
            PluginLoadError: the plugin of that name is broken, disabled or incompatible.
            UnknownDelegateError: no installed plugin offers the delegate.
        """
        if isinstance(address, str):
            address = DelegateAddress.parse(address)
        offers = [o for o in self.offers() if _is_from(o.plugin, address.distribution)]
        found = [offer for offer in offers if offer.spec.name == address.name]
        if not found:  # package indexes treat - and _ as equal
            name = canonical_name(address.name)
            found = [offer for offer in offers if canonical_name(offer.spec.name) == name]
        if len(found) > 1:
            raise _ambiguous(address, found)
        if not found:
            raise self._not_found(address)
        return found[0]

    def create_delegate(self, address: str, options: Given = None) -> Delegate:
        """Make a new delegate for an address and options.

        Args:
            address: ``name`` or ``dist:name``, perhaps followed by ``:key=value,key=value``.
            options: a mapping, or an instance of the delegate's options class; None means the
                options in *address*, or the defaults.

        Raises:
            PluginError: the delegate cannot be found (see :meth:`find`), its options do not fit
                (:class:`~delegraph.errors.PluginOptionError`), or its own code failed
                (:class:`~delegraph.errors.PluginLoadError`, with the cause chained).
        """
        parsed = DelegateAddress.parse(address)
        offer = self.find(parsed)
        merged = only_one(parsed, options)
        return make_delegate(offer.spec, merged, offer.plugin)

    def custom_ops(self) -> dict[str, CustomOpSpec]:
        """Return the custom operators of all usable plugins, by name.

        Any error in their ``load`` becomes a :class:`~delegraph.errors.PluginLoadError` that names
        the plugin. If two plugins offer the same operator, the first by plugin and distribution
        name is used. The log and ``delegraph plugins doctor`` report this.
        """
        found: dict[str, CustomOpSpec] = {}
        for name, plugins in self.custom_op_providers().items():
            plugin = plugins[0]
            if len(plugins) > 1:
                others = ", ".join(map(str, plugins[1:]))
                logger.warning("custom operator %r: %s is used, not %s", name, plugin, others)
            spec = next(spec for spec in plugin.custom_ops if spec.name == name)
            found[name] = replace(spec, load=functools.partial(load_custom_op, spec, plugin))
        return found

    def custom_op_providers(self) -> dict[str, list[Plugin]]:
        """Return, for each custom operator, the plugins that offer it, sorted."""
        providers: dict[str, list[Plugin]] = {}
        for plugin in self.plugins:
            for spec in plugin.custom_ops:
                providers.setdefault(spec.name, []).append(plugin)
        return dict(sorted(providers.items()))

    def commands(self) -> dict[str, list[tuple[Plugin, CommandSpec]]]:
        """Return the commands of all usable plugins, by name, each with its plugin."""
        found: dict[str, list[tuple[Plugin, CommandSpec]]] = {}
        for plugin in self.plugins:
            for spec in plugin.commands:
                found.setdefault(spec.name, []).append((plugin, spec))
        return dict(sorted(found.items()))

    def load_command(self, name: str) -> click.Command | None:
        """Return the command that a plugin offers under *name*; None if no plugin does.

        Raises:
            PluginError: several plugins offer the command.
            PluginLoadError: the plugin's own code failed, or returned the wrong type.
        """
        providers = self.commands().get(name, [])
        if not providers:
            return None
        if len(providers) > 1:
            who = ", ".join(str(plugin) for plugin, _ in providers)
            raise PluginError(
                f"command {name!r} is provided by {len(providers)} plugins: {who}; leave one out "
                "with DELEGRAPH_DISABLE_PLUGINS"
            )
        plugin, spec = providers[0]
        return load_command(spec, plugin)

    def misspelled_groups(self) -> list[str]:
        """Texts about distributions with entry points in a misspelled ``delegraph.plugins``."""
        if not self.is_of_environment:
            return []
        # Reads the metadata of all distributions.
        from delegraph.plugins.distributions import misspelled_groups

        return misspelled_groups()

    def _not_found(self, address: DelegateAddress) -> PluginError:
        """Return the error for the delegate *address*, which no usable plugin offers.

        The offers of an unusable plugin are unknown, so the plugin's own names are compared with
        *address*.
        """
        from delegraph.plugins.sources import pip_install  # lazy import: most names are found

        unusable = [p for p in self.plugins if p.state is not PluginState.OK]
        for offer in self.offers():
            if offer.spec.name == address.distribution and not address.options:
                return option_without_value(offer.spec, address.name)
        for plugin in unusable:
            if _would_offer(plugin, address):
                return _unusable(address, plugin)
        names = sorted({offer.spec.name for offer in self.offers()} - {address.name})
        close = did_you_mean(address.name, names)
        lines = [f"no installed plugin provides delegate {_shown(address)}{close}"]
        package = known_packages.package_for_delegate(address.name)
        files = f"{address.name}.py", f"{address.name.replace('-', '_')}.py"
        file = next(filter(os.path.isfile, files), None)
        if address.name.endswith(".tflite"):
            lines.append("this is a model's file name, where a delegate's name is expected")
        if file is not None:
            lines.append(f"delegates=[MyDelegate()] applies a class, such as one of {file} here")
        if package is not None and not any(_is_from(p, package) for p in self.plugins):
            lines.append(f"{package} has one of this name: {pip_install(package)}")
        empty = [p for p in self.plugins if p.missing_hook and _is_from(p, address.distribution)]
        lines += [f"{plugin} offers nothing: {plugin.missing_hook}" for plugin in empty]
        lines += self.misspelled_groups()
        if address.name.lower() == "xnnpack":
            lines.append("XNNPACK is LiteRT's: the official Interpreter applies it by itself")
        elif address.name.lower() == "none":
            lines.append("delegates=[] applies none")
        elif not close and not address.distribution and len(lines) == 1:
            lines.append("pip installs delegates, delegates=[MyDelegate()] applies a class")
        lines.append(f"available: {', '.join(o.address for o in self.offers()) or 'none'}")
        if unusable:
            reasons = "; ".join(f"{plugin}: {plugin.error}" for plugin in unusable)
            lines.append(f"installed but not usable, it may be among these: {reasons}")
        return UnknownDelegateError("; ".join(lines))


_lock = Lock()
found_plugins: PluginSet | None = None
_is_discovering = False


def installed() -> PluginSet:
    """Return the plugins of this process, which are found at the first call.

    The environment and the user's ``delegraph.toml`` decide which plugins may be used. Plugins'
    light modules are imported now, delegates only when they are requested.

    ::

        for offer in installed().offers():
            print(offer.address, offer.spec.summary)
        delegate = installed().create_delegate("numba_cpu", {"num_threads": 2})

    Raises:
        ConfigurationError: ``delegraph.toml`` has a mistake, or others may write it.
        PluginError: a plugin's module called this function while it was being imported.
    """
    global found_plugins, _is_discovering
    with _lock:
        if _is_discovering:
            raise PluginError("a plugin's module asks for plugins when it is imported")
        if found_plugins is None:
            _is_discovering = True
            try:
                found_plugins = PluginSet()
            finally:
                _is_discovering = False
        return found_plugins


def _is_from(plugin: Plugin, distribution: str | None) -> bool:
    """Whether *plugin* comes from the distribution *distribution*; None means any."""
    if distribution is None:
        return True
    return canonical_name(plugin.distribution) == canonical_name(distribution)


def _would_offer(plugin: Plugin, address: DelegateAddress) -> bool:
    """Whether an unusable plugin probably has the delegate that the user asks for."""
    if address.distribution is not None:
        return _is_from(plugin, address.distribution)
    package = known_packages.package_for_delegate(address.name)
    if package is not None and _is_from(plugin, package):
        return True
    return canonical_name(plugin.name) == canonical_name(address.name)


def _shown(address: DelegateAddress) -> str:
    if address.distribution is None:
        return repr(address.name)
    return f"{address.name!r} of {address.distribution!r}"


def _ambiguous(address: DelegateAddress, found: list[Offer]) -> AmbiguousDelegateError:
    who = ", ".join(str(offer.plugin) for offer in found)
    choices = sorted({offer.address for offer in found})
    if len(choices) > 1:
        advice = f"write {' or '.join(map(repr, choices))}"
    else:
        advice = "leave one out with DELEGRAPH_DISABLE_PLUGINS"
    return AmbiguousDelegateError(
        f"delegate {_shown(address)} is provided by {len(found)} plugins: {who}; {advice}"
    )


def _unusable(address: DelegateAddress, plugin: Plugin) -> PluginLoadError:
    error = PluginLoadError(
        f"delegate {_shown(address)} cannot be used: {plugin} is {plugin.state.value}: "
        f"{plugin.error}; {plugin.remedy}"
    )
    error.__cause__ = plugin.exception
    return error


def only_one(address: DelegateAddress, options: Given) -> Given:
    """Return the options in the address or else the argument; raise an error if both exist.

    Args:
        address: name of the delegate, perhaps with options.
        options: options from an argument; None if not given.
    """
    if options is None:
        return address.options or None
    if address.options:
        raise PluginOptionError(
            f"options of delegate {address.name!r} are given twice: {address.options!r} with the "
            f"name, and {options!r}"
        )
    return options
