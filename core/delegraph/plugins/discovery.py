"""Finds the installed plugins and asks each for its offers; a broken plugin is kept as data."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import importlib_metadata
import pluggy
from importlib_metadata import EntryPoint

from delegraph.plugins import hookspecs
from delegraph.plugins.address import canonical_name
from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.plugin import PLUGIN_NAME, Plugin, PluginState, one_line
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec
from delegraph.plugins.standard_output import printed_to_stderr

logger = logging.getLogger(__name__)

GROUP = "delegraph.plugins"
PATIENCE = 10.0
"""Seconds after which the log names a plugin that is still being imported."""

Distribution = Any  # importlib_metadata's classes for it differ by version
UNKNOWN = "(unknown distribution)"

Spec = TypeVar("Spec", DelegateSpec, CustomOpSpec, CommandSpec, CompilerSpec)


def discover(
    choice: PluginChoice, entry_points: Iterable[EntryPoint] | None = None
) -> tuple[Plugin, ...]:
    """Return every installed plugin in any state, sorted by name and distribution.

    Imports the plugins that *choice* lets through, which are light modules, and calls their hooks.
    An import that does not end cannot be ended from here; the log names it after :data:`PATIENCE`.

    Args:
        choice: which plugins may be used; the others are listed and not imported.
        entry_points: what to look at instead of the installed distributions.
    """
    found = []
    with printed_to_stderr():
        for plugin in declared_plugins(choice, entry_points):
            if plugin.state is PluginState.OK:
                with _named_when_slow(plugin):
                    plugin = import_plugin(plugin)
            _log(plugin)
            found.append(plugin)
    return tuple(found)


def _log(plugin: Plugin) -> None:
    offers = [f"delegate {spec.name}" for spec in plugin.delegates]
    offers += [f"operator {spec.name}" for spec in plugin.custom_ops]
    offers += [f"command {spec.name}" for spec in plugin.commands]
    offers += [f"compiler of {spec.name}" for spec in plugin.compilers]
    text = plugin.error or f"offers {', '.join(offers) or 'nothing'}"
    logger.info("%s: %s, %s", plugin, plugin.state.value, text)


@contextlib.contextmanager
def _named_when_slow(plugin: Plugin) -> Iterator[None]:
    """Log that *plugin* is still being imported, after :data:`PATIENCE`."""
    text = "%s is still being imported after %g s; DELEGRAPH_DISABLE_PLUGINS=%s leaves it out"
    timer = threading.Timer(PATIENCE, logger.warning, (text, plugin, PATIENCE, plugin.name))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def declared_plugins(
    choice: PluginChoice, entry_points: Iterable[EntryPoint] | None = None
) -> tuple[Plugin, ...]:
    """Return every installed plugin without importing any of them.

    Those that are ``OK`` are to be imported, and offer nothing yet.
    """
    plugins: list[Plugin] = []
    if entry_points is None:
        entry_points, plugins = installed_entry_points()
    plugins += [_declared(point, choice) for point in entry_points]
    return tuple(sorted(plugins, key=lambda p: (p.name, p.distribution, p.module)))


def installed_entry_points() -> tuple[list[EntryPoint], list[Plugin]]:
    """Return the entry points of our group, and a broken plugin for each unreadable list.

    Of several copies of a distribution the first on ``sys.path`` counts, as it does for imports.
    """
    points: list[EntryPoint] = []
    unreadable: list[Plugin] = []
    seen: set[str] = set()
    for dist in importlib_metadata.distributions():
        if not _mentions_our_group(dist):
            continue  # most distributions: neither parsed nor asked for their names
        name = _distribution_name(dist)
        if name != UNKNOWN:
            if canonical_name(name) in seen:
                continue
            seen.add(canonical_name(name))
            dist = _first_on_path(name, dist)
        try:
            points += dist.entry_points.select(group=GROUP)
        except Exception as error:  # noqa: BLE001 - one damaged file must not stop the others
            plugin = Plugin(name, name, _version(dist), "entry_points.txt")
            unreadable.append(_broken(plugin, error, "its entry_points.txt cannot be read: "))
    return points, unreadable


def _mentions_our_group(dist: Distribution) -> bool:
    try:
        return GROUP in (dist.read_text("entry_points.txt") or "")
    except (OSError, UnicodeDecodeError):
        return False


def _first_on_path(name: str, dist: Distribution) -> Distribution:
    """Return the first copy of a distribution on the path, which may have no entry points."""
    try:
        return importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        return dist  # its folder bears another name


def _declared(point: EntryPoint, choice: PluginChoice) -> Plugin:
    dist = point.dist
    plugin = Plugin(
        _printable(point.name[:100]),
        UNKNOWN if dist is None else _distribution_name(dist),
        "" if dist is None else _version(dist),
        _printable(point.value),
    )
    if not PLUGIN_NAME.fullmatch(point.name):
        text = (
            f"its entry point is named {point.name[:100]!r}, expected at most 100 letters, digits, "
            "'_', '-' or '.', the first a letter, digit or '_'"
        )
        return replace(plugin, state=PluginState.BROKEN, error=text)
    refusal = choice.refusal(plugin.name, plugin.distribution)
    if refusal is None:
        return plugin
    state, reason = refusal
    return replace(plugin, state=state, error=reason)


def import_plugin(plugin: Plugin) -> Plugin:
    """Import a declared plugin; return it with its offers, or with the error.

    What it prints goes to standard error.

    Raises:
        KeyboardInterrupt: the user's.
    """
    with warnings.catch_warnings(record=True) as caught, printed_to_stderr():
        # A warning is no reason to lose a plugin, not even under -W error.
        warnings.simplefilter("default")
        loaded = _import_and_ask(plugin)
    return replace(loaded, warnings=tuple(str(warning.message) for warning in caught))


def _import_and_ask(plugin: Plugin) -> Plugin:
    try:
        module = EntryPoint(plugin.name, plugin.module, GROUP).load()
        version = getattr(module, "DELEGRAPH_API", hookspecs.API_VERSION)
        if version != hookspecs.API_VERSION:
            return _incompatible(plugin, version)
        return _ask(module, plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        return _broken(plugin, error)


def _ask(module: object, plugin: Plugin) -> Plugin:
    """Return *plugin* with the specs that its hooks return.

    Raises:
        PluginValidationError: a hook has arguments that it is not given, or an unknown name.
        TypeError: a hook returned something else than it should.
        Exception: whatever the hooks raise.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)  # its own: no plugin can disturb another
    manager.add_hookspecs(hookspecs)
    manager.register(module, name=plugin.name)
    manager.check_pending()
    delegates = _answer(manager.hook.delegraph_delegates, DelegateSpec)
    custom_ops = _answer(manager.hook.delegraph_custom_ops, CustomOpSpec)
    commands = _answer(manager.hook.delegraph_commands, CommandSpec)
    compilers = _answer(manager.hook.delegraph_compilers, CompilerSpec)
    _require_offered(compilers, delegates)
    return replace(
        plugin,
        delegates=delegates,
        custom_ops=custom_ops,
        commands=commands,
        compilers=compilers,
    )


def _require_offered(
    compilers: tuple[CompilerSpec, ...], delegates: tuple[DelegateSpec, ...]
) -> None:
    """Raise unless every compiler is of a delegate that the plugin offers."""
    offered = {spec.name for spec in delegates}
    for spec in compilers:
        if spec.name not in offered:
            raise TypeError(
                f"delegraph_compilers returned a CompilerSpec for delegate {spec.name!r}, which "
                f"delegraph_delegates does not offer: {', '.join(sorted(offered)) or 'nothing'}"
            )


def _answer(hook: pluggy.HookCaller, kind: type[Spec]) -> tuple[Spec, ...]:
    """Call one hook of a plugin; return the checked specs in the plugin's order."""
    if not hook.get_hookimpls():
        return ()
    answers: list[Any] = hook()
    answer = answers[0] if answers else None  # pluggy drops None
    if not isinstance(answer, (list, tuple)):
        raise TypeError(
            f"{hook.name} returned {_shown(answer)}, expected a list of {kind.__name__}"
        )
    for spec in answer:
        if not isinstance(spec, kind):
            raise TypeError(
                f"{hook.name} returned a list with {_shown(spec)}, expected {kind.__name__}"
            )
    names = [spec.name for spec in answer]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TypeError(f"{hook.name} returned {', '.join(map(repr, twice))} more than once")
    return tuple(answer)


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r}"


def _broken(plugin: Plugin, error: BaseException, prefix: str = "") -> Plugin:
    text = prefix + one_line(error)
    return replace(plugin, state=PluginState.BROKEN, error=text, exception=error)


def _incompatible(plugin: Plugin, version: object) -> Plugin:
    text = f"made for plugin API {version!r}, this delegraph has {hookspecs.API_VERSION}"
    return replace(plugin, state=PluginState.INCOMPATIBLE, error=text)


def _distribution_name(dist: Distribution) -> str:
    return _header(dist, "Name") or UNKNOWN


def _version(dist: Distribution) -> str:
    return _header(dist, "Version")


def _header(dist: Distribution, name: str) -> str:
    """Return one header of a distribution's metadata; empty if it is missing or damaged.

    ``dist.name`` parses the whole file as an e-mail, a long description included: milliseconds for
    each plugin, at the start of every process.

    Source:
        Core metadata specifications, https://packaging.python.org/specifications/core-metadata/:
        headers come first, one to a line, and an empty line ends them.
    """
    try:
        text = dist.read_text("METADATA") or dist.read_text("PKG-INFO") or ""
    except (OSError, UnicodeDecodeError):
        return ""
    headers = text.partition("\n\n")[0].splitlines()
    named = (line.partition(":") for line in headers)
    value = next((value for key, _, value in named if key.lower() == name.lower()), "")
    return _printable(value.strip())


def _printable(text: str) -> str:
    """Escape *text* of a distribution unless it is printable, to protect the terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
