"""Effects of the user's configuration file, for ``delegraph plugins doctor``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from delegraph.delegation.blob_cache import LIMIT
from delegraph.delegation.cache_files import user_cache_folder
from delegraph.delegation.configuration import (
    CACHE_VARIABLE,
    CONFIG_VARIABLE,
    Configuration,
    configuration,
    configuration_path,
    default_delegates,
)
from delegraph.errors import ConfigurationError, PluginError
from delegraph.json_records import JsonRecord
from delegraph.plugins.plugin import ALLOW_VARIABLE, DISABLE_VARIABLE, PluginState
from delegraph.plugins.plugin_set import PluginSet
from delegraph.tools.plugin_check import Finding, Level


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the configuration file, with its value and effect.

    Attributes:
        key: name of the key, as ``table.key``.
        value: value in the file, as text.
        effect: text about the value's effect on this machine, or about a variable that overrides
            it.
    """

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class ConfigurationReport(JsonRecord):
    """The configuration file that was read, and the effect of each key.

    Attributes:
        file: path of the file; None if none was read.
        why_not: text that says why no file was read.
        settings: settings in the file.
    """

    file: str | None
    why_not: str
    settings: tuple[Setting, ...]


def configuration_report(plugins: PluginSet) -> ConfigurationReport:
    """Return the configuration file that was read, and its effects on the plugin set.

    Raises:
        ConfigurationError: the file cannot be read, or has a mistake.
    """
    user = configuration()
    if user.path is None:
        place = configuration_path(os.environ.get(CONFIG_VARIABLE))
        why_not = f"{CONFIG_VARIABLE} is empty" if place is None else f"{place} does not exist"
        return ConfigurationReport(None, why_not, ())
    return ConfigurationReport(str(user.path), "", tuple(_settings(user, plugins)))


@contextmanager
def usable_configuration() -> Iterator[tuple[Finding, ...]]:
    """Block in which a broken configuration file is not read; its value is the finding about it.

    Processes that start within the block do not read the file either.
    """
    given = os.environ.get(CONFIG_VARIABLE)
    try:
        configuration()
    except ConfigurationError as error:
        path = configuration_path(given) or ""
        subject = f"configuration file {path!r}"
        there = os.path.lexists(path)
        remedy = "correct the file" if there else f"correct {CONFIG_VARIABLE}, or unset it"
        remedy += "; the other findings are as if there were no file"
        finding = Finding(Level.ERROR, subject, str(error).removeprefix(f"{subject}: "), remedy)
    else:
        yield ()
        return
    os.environ[CONFIG_VARIABLE] = ""
    try:
        yield (finding,)
    finally:
        if given is None:
            del os.environ[CONFIG_VARIABLE]
        else:
            os.environ[CONFIG_VARIABLE] = given


def check_configuration(plugins: PluginSet) -> Iterator[Finding]:
    """Yield an error for each chosen default delegate that no usable plugin offers."""
    named, source = default_delegates()
    for name in named or ():
        try:
            plugins.find(name)
        except PluginError as error:
            remedy = f"install it, or take {name!r} off that list"
            if name == "none":
                remedy = "leave that list empty: then no delegate is applied by default"
            elif "," in name and ":" not in name:
                remedy = f"separate the names: {name.replace(',', ' ')!r}"
            yield Finding(Level.ERROR, source, f"models cannot be loaded: {error}", remedy)


def _settings(user: Configuration, plugins: PluginSet) -> Iterator[Setting]:
    if user.delegates is not None:
        effect = "applied where neither arguments nor options name delegates"
        yield Setting("delegates", _listed(user.delegates), effect)
    if user.allow is not None:
        left = _left_out(plugins, PluginState.NOT_ALLOWED)
        yield Setting("plugins.allow", _listed(user.allow), _beaten_by(ALLOW_VARIABLE) or left)
    if user.disable is not None:
        left = _left_out(plugins, PluginState.DISABLED)
        yield Setting(
            "plugins.disable", _listed(user.disable), _beaten_by(DISABLE_VARIABLE) or left
        )
    if user.cache_folder is not None:
        effect = f"compiled partitions are kept there, not in {_usual_cache()}"
        beaten = _beaten_by(CACHE_VARIABLE) if os.environ.get(CACHE_VARIABLE) else ""
        yield Setting("cache.folder", str(user.cache_folder), beaten or effect)
    if user.cache_size is not None:
        effect = f"bytes that compiled partitions may take, not {LIMIT}"
        yield Setting("cache.size", str(user.cache_size), effect)


def _beaten_by(variable: str) -> str:
    """Text that says that the environment *variable* overrides a setting; empty if unset."""
    return f"none: {variable} is set, and wins" if variable in os.environ else ""


def _left_out(plugins: PluginSet, state: PluginState) -> str:
    names = [plugin.name for plugin in plugins.plugins if plugin.state is state]
    return f"leaves out {_listed(names)}"


def _usual_cache() -> str:
    try:
        return os.path.join(user_cache_folder(), "compiled")
    except FileNotFoundError:  # the user has no home folder
        return "a folder of the process"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
