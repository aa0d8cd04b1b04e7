"""The hooks that a plugin may implement, and the version number of these hooks.

A plugin is a module, named by an entry point of group ``delegraph.plugins``, that imports only
``delegraph`` and other light modules. ``DELEGRAPH_API = 1`` in the module gives the version of the
hooks for which the plugin was written; without this line, the plugin is assumed to fit. A plugin
for another version is listed as incompatible, and none of its hooks is called.

::

    from delegraph import DelegateSpec, hookimpl

    DELEGRAPH_API = 1

    @hookimpl
    def delegraph_delegates():
        return [DelegateSpec("sin", "SIN on float32", load=_load_sin)]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec

PROJECT = "delegraph"
"""Name of the project in pluggy; the name of every hook starts with it."""

API_VERSION = 1
"""Version of the hooks and specs; it is raised when plugins for the last version would break."""

NAMES = ("delegraph_delegates", "delegraph_custom_ops", "delegraph_commands", "delegraph_compilers")
"""Names of all hooks, in the order in which they are called."""

F = TypeVar("F", bound=Callable[..., object])


class _Marker:
    """Marks functions as hooks, as pluggy's ``HookimplMarker`` does, without importing pluggy."""

    @overload
    def __call__(self, function: F) -> F: ...

    @overload
    def __call__(self, function: None = None, **options: bool | str | None) -> Callable[[F], F]: ...

    def __call__(self, function: Any = None, **options: Any) -> Any:
        """Return *function* with the mark, or a decorator if only options are given."""
        if function is None:
            return partial(self._marked, options)
        return self._marked(options, function)

    @staticmethod
    def _marked(options: dict[str, Any], function: Any) -> Any:
        function.delegraph_hook_options = options
        return function


hookimpl = _Marker()
"""Marks a plugin's function as the implementation of the hook with the function's name.

Options are those of ``pluggy.HookimplMarker``; pluggy applies them when the plugin is registered.
"""


def delegraph_delegates() -> list[DelegateSpec]:  # type: ignore[empty-body]  # pluggy only reads it
    """Return the specs of the delegates that this plugin offers.

    When called:
        Once per process, when a delegate or the list of plugins is first requested. ``import
        delegraph`` does not call it.

    Arguments: none.

    What the return value does:
        Each :class:`~delegraph.plugins.DelegateSpec` makes a delegate known by its name. Its
        ``load`` is called when a user asks for that delegate, so heavy imports belong there.
        Anything but a list of specs with distinct names marks the plugin as broken.
    """


def delegraph_custom_ops() -> list[CustomOpSpec]:  # type: ignore[empty-body]  # pluggy only reads it
    """Offer custom operators that run without a delegate.

    When called:
        Directly after :func:`delegraph_delegates`.

    Arguments: none.

    What the return value does:
        Each :class:`~delegraph.plugins.CustomOpSpec` makes the custom operator of that name run.
        Its ``load`` is called for the first model that contains the operator. Anything but a list
        of specs with distinct names marks the plugin as broken.
    """


def delegraph_commands() -> list[CommandSpec]:  # type: ignore[empty-body]  # pluggy only reads it
    """Offer subcommands of the command line.

    When called:
        Directly after :func:`delegraph_custom_ops`.

    Arguments: none.

    What the return value does:
        Each :class:`~delegraph.plugins.CommandSpec` becomes ``delegraph NAME``, unless Delegraph
        itself has a command of that name. Its ``load`` is called when a user runs the command.
        Anything but a list of specs with distinct names marks the plugin as broken.
    """


def delegraph_compilers() -> list[CompilerSpec]:  # type: ignore[empty-body]  # pluggy only reads it
    """Offer to compile the partitions of delegates ahead of time.

    When called:
        Directly after :func:`delegraph_commands`.

    Arguments: none.

    What the return value does:
        Each :class:`~delegraph.plugins.CompilerSpec` belongs to the plugin's delegate of the same
        name. ``delegraph compile`` then stores that delegate's compiled partitions in the model
        file, and such files can run. Anything but a list of specs with distinct names, each of a
        delegate that the plugin offers, marks the plugin as broken.
    """
