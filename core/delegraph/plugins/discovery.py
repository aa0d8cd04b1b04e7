"""Finds the installed plugins and asks each for its offers; a broken plugin is recorded."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from delegraph.lazy_dataclass import replace
from delegraph.log import Logger
from delegraph.plugins import hookspecs
from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.kept_entry_points import LIST, DeclaredPlugin, PathState
from delegraph.plugins.plugin import PLUGIN_NAME, Plugin, PluginState, one_line
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec
from delegraph.plugins.standard_output import printed_to_stderr

if TYPE_CHECKING:
    import pluggy
    from importlib_metadata import EntryPoint

logger = Logger(__name__)

_MOST_SHOWN = 60
"""Largest number of characters of a hook's wrong result that an error shows."""

PATIENCE = 10.0
"""Seconds after which the log names a plugin that is still being imported."""

Spec = TypeVar("Spec", DelegateSpec, CustomOpSpec, CommandSpec, CompilerSpec)


def discover(
    choice: PluginChoice, entry_points: Iterable[EntryPoint] | None = None
) -> tuple[Plugin, ...]:
    """Return all installed plugins in any state, sorted by name and distribution.

    The plugins that *choice* allows are imported, and their hooks called. An import that hangs
    cannot be stopped here; the log names the plugin after :data:`PATIENCE` seconds.

    Args:
        choice: which plugins may be used; other plugins are listed but not imported.
        entry_points: entry points to use instead of those of the installed distributions.
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


def _named_when_slow(plugin: Plugin) -> AbstractContextManager[None]:
    """Log that *plugin* is still being imported if the block takes over :data:`PATIENCE` s."""
    text = "%s is still being imported after %g s; DELEGRAPH_DISABLE_PLUGINS=%s leaves it out"
    return logger.warning_when_slow(PATIENCE, text, plugin, PATIENCE, plugin.name)


def declared_plugins(
    choice: PluginChoice, entry_points: Iterable[EntryPoint] | None = None
) -> tuple[Plugin, ...]:
    """Return all installed plugins without importing any of them.

    Plugins with the status ``OK`` must still be imported, and offer nothing yet. The arguments are
    those of :func:`discover`.
    """
    plugins: list[Plugin] = []
    if entry_points is None:
        points, plugins = installed_entry_points()
    else:
        from delegraph.plugins import distributions

        points = distributions.described(entry_points)
    plugins += [_declared(point, choice) for point in points]
    return tuple(sorted(plugins, key=lambda p: (p.name, p.distribution, p.module)))


def installed_entry_points() -> tuple[list[DeclaredPlugin], list[Plugin]]:
    """Return all entry points of ``delegraph.plugins``, and a broken plugin for each bad list.

    A bad list is a distribution's file of entry points that cannot be read.
    """
    state = PathState()
    kept = state.kept()
    if kept is not None:
        return kept, []
    from delegraph.plugins import distributions  # lazy import: looking at all of them takes long

    points, unreadable = distributions.installed_entry_points()
    if not unreadable:
        state.keep(points)
    return points, [
        _broken(
            _printable(DeclaredPlugin(each.distribution, LIST, each.distribution, each.version)),
            each.error,
            f"its {LIST} cannot be read: ",
        )
        for each in unreadable
    ]


def _declared(point: DeclaredPlugin, choice: PluginChoice) -> Plugin:
    plugin = _printable(point)
    if not re.fullmatch(PLUGIN_NAME, point.name):
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

    Text that the plugin prints goes to standard error.

    Raises:
        KeyboardInterrupt: the user interrupts the import.
    """
    with warnings.catch_warnings(record=True) as caught, printed_to_stderr():
        # A warning must not disable a plugin, even with -W error.
        warnings.simplefilter("default")
        loaded = _import_and_ask(plugin)
    return replace(loaded, warnings=tuple(str(warning.message) for warning in caught))


def _import_and_ask(plugin: Plugin) -> Plugin:
    try:
        module = _loaded(plugin.module)
        version = getattr(module, "DELEGRAPH_API", hookspecs.API_VERSION)
        if version != hookspecs.API_VERSION:
            return _incompatible(plugin, version)
        return _ask(module, plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        return _broken(plugin, error)


def _loaded(value: str) -> Any:
    """Return the object of the entry point *value*, such as ``package.module:attribute``."""
    name, _, attribute = value.partition("[")[0].partition(":")
    found: Any = import_module(name.strip())
    for part in filter(None, attribute.strip().split(".")):
        found = getattr(found, part)
    return found


def _ask(module: object, plugin: Plugin) -> Plugin:
    """Call the hooks of a plugin's *module*; return *plugin* with its offers.

    Raises:
        PluginValidationError: a hook has an unknown name or unknown arguments.
        TypeError: a hook returned the wrong type, or is not marked as a hook.
        Exception: any error of the hooks.
    """
    import pluggy  # lazy import: the default delegate does without

    for name in hookspecs.NAMES:
        pluggy.HookspecMarker(hookspecs.PROJECT)(getattr(hookspecs, name))
    _mark_implementations(module)
    # A separate manager, so that plugins cannot affect each other.
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module, name=plugin.name)
    manager.check_pending()
    _require_marked(module, manager)
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


def _mark_implementations(module: object) -> None:
    """Mark functions of *module* for pluggy if ``hookimpl`` has marked them for Delegraph."""
    import pluggy

    marker = pluggy.HookimplMarker(hookspecs.PROJECT)
    for name in dir(module):
        function = getattr(module, name, None)
        options = getattr(function, "__dict__", {}).get("delegraph_hook_options")
        if isinstance(options, dict):
            marker(function, **options)


def _require_marked(module: object, manager: pluggy.PluginManager) -> None:
    """Raise an error if a function of *module* is named like a hook but not marked as one.

    *manager* knows the marked functions. Raises: TypeError: there is such a function.
    """
    for name in hookspecs.NAMES:
        is_hook = bool(getattr(manager.hook, name).get_hookimpls())
        if callable(getattr(module, name, None)) and not is_hook:
            raise TypeError(
                f"the function {name} is not marked as a hook: write @hookimpl above it, from "
                "delegraph import hookimpl"
            )


def _require_offered(
    compilers: tuple[CompilerSpec, ...], delegates: tuple[DelegateSpec, ...]
) -> None:
    """Raise an error unless *delegates* has the delegate of each of *compilers*, by name."""
    offered = {spec.name for spec in delegates}
    for spec in compilers:
        if spec.name not in offered:
            raise TypeError(
                f"delegraph_compilers returned a CompilerSpec for delegate {spec.name!r}, which "
                f"delegraph_delegates does not offer: {', '.join(sorted(offered)) or 'nothing'}"
            )


def _answer(hook: pluggy.HookCaller, kind: type[Spec]) -> tuple[Spec, ...]:
    """Call a hook of a plugin; return the specs that it returns, after a check of their type.

    *kind* is the type that they must have.
    """
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
    """Return the type of a hook's result, and its name or short content, for an error message."""
    if value is None:
        return "None"
    content = repr(getattr(value, "name", value))
    return type(value).__name__ + f" {content}" * (len(content) <= _MOST_SHOWN)


def _broken(plugin: Plugin, error: BaseException, prefix: str = "") -> Plugin:
    text = prefix + one_line(error)
    return replace(plugin, state=PluginState.BROKEN, error=text, exception=error)


def _incompatible(plugin: Plugin, version: object) -> Plugin:
    text = f"made for plugin API {version!r}, this delegraph has {hookspecs.API_VERSION}"
    return replace(plugin, state=PluginState.INCOMPATIBLE, error=text)


def _printable(point: DeclaredPlugin) -> Plugin:
    """Return the plugin of an entry point, with unprintable characters of its texts escaped."""
    return Plugin(
        _escaped(point.name[:100]),
        _escaped(point.distribution),
        _escaped(point.version),
        _escaped(point.value),
    )


def _escaped(text: str) -> str:
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
