"""Installed plugins: what a plugin offers, how it is found, how a delegate is made by name.

A plugin's entry-point module needs ``hookimpl`` and the specs of what it offers, which
``delegraph`` itself also has; everybody else starts at :func:`installed`. Importing this package
discovers nothing and imports neither NumPy nor any plugin.

Open first: ``hookspecs.py`` and ``specs.py`` for what a plugin writes; ``plugin_set.py`` for how a
delegate is found by name; ``discovery.py`` for how plugins are found; ``options.py`` for how
options are read; ``choice.py`` for the lists that allow and disable plugins.
"""

from delegraph.plugins.engine_compiler import engine_compiler
from delegraph.plugins.hookspecs import API_VERSION, hookimpl
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.plugins.plugin_set import PluginSet, installed
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec

__all__ = [
    "API_VERSION",
    "CommandSpec",
    "CompilerSpec",
    "CustomOpSpec",
    "DelegateSpec",
    "Plugin",
    "PluginSet",
    "PluginState",
    "engine_compiler",
    "hookimpl",
    "installed",
]
