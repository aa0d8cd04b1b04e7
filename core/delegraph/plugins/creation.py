"""Running a provider's own code: making delegates, loading what it offers; errors name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delegraph.errors import ArgumentError, DelegraphError, PluginError, PluginLoadError
from delegraph.plugins.options import Given, make_options
from delegraph.plugins.plugin import one_line
from delegraph.plugins.specs import CommandSpec, CustomOpSpec, DelegateSpec

if TYPE_CHECKING:
    import click

    from delegraph.delegation.delegate import Delegate
    from delegraph.operators.registration import Registration


def make_delegate(spec: DelegateSpec, given: Given, provider: object) -> Delegate:
    """Return a new delegate.

    Args:
        spec: what to make.
        given: its options, see :func:`~delegraph.plugins.options.make_options`.
        provider: the plugin or file that offers it, as errors name it.

    Raises:
        PluginOptionError: the options do not fit.
        PluginLoadError: the provider's own code failed; the cause is chained.
    """
    made = _make(spec, make_options(spec, given), provider)
    from delegraph.delegation.delegate import Delegate
    from delegraph.delegation.driver import SimpleDelegate
    from delegraph.delegation.simple_delegate import SimpleDelegateInterface

    if isinstance(made, SimpleDelegateInterface):
        return SimpleDelegate(made)
    if isinstance(made, Delegate):
        return made
    raise PluginLoadError(
        f"delegate {spec.name!r}: load() of {provider} made a {type(made).__name__}, "
        "expected a SimpleDelegateInterface or a Delegate"
    )


def _make(spec: DelegateSpec, options: object, provider: object) -> object:
    try:
        factory = spec.load()
        return factory() if spec.options is None else factory(options)
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise PluginLoadError(
            f"delegate {spec.name!r} could not be made by {provider}: {one_line(error)}"
        ) from error


def load_custom_op(spec: CustomOpSpec, provider: object) -> Registration:
    """Return the implementation of a custom operator.

    Raises:
        PluginLoadError: the provider's own code failed, or returned something else.
    """
    from delegraph.operators.custom_op import as_registration

    loaded = _loaded("custom operator", spec, provider)
    try:
        return as_registration(loaded)
    except ArgumentError:
        raise PluginLoadError(
            f"custom operator {spec.name!r}: load() of {provider} returned a "
            f"{type(loaded).__name__}, expected a Registration or what custom_op makes"
        ) from None


def describe_custom_op(
    spec: CustomOpSpec, custom_options: bytes, provider: object
) -> dict[str, str]:
    """Return what a provider says of a custom operator with these options.

    Raises:
        DelegraphError: the options are damaged.
        PluginLoadError: the provider's own code failed, or returned something else.
    """
    if spec.describe is None:
        return {}
    try:
        facts: object = spec.describe(custom_options)
    except (KeyboardInterrupt, DelegraphError):
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise PluginLoadError(
            f"custom operator {spec.name!r} could not be described by {provider}: {one_line(error)}"
        ) from error
    if not isinstance(facts, Mapping):
        raise PluginLoadError(
            f"custom operator {spec.name!r}: describe() of {provider} returned a "
            f"{type(facts).__name__}, expected a dict of texts"
        )
    return {str(name): str(value) for name, value in facts.items()}


def load_command(spec: CommandSpec, provider: object) -> click.Command:
    """Return a subcommand of the command line.

    Raises:
        PluginLoadError: the provider's own code failed, or returned something else.
    """
    import click

    loaded = _loaded("command", spec, provider)
    if not isinstance(loaded, click.Command):
        raise PluginLoadError(
            f"command {spec.name!r}: load() of {provider} returned a {type(loaded).__name__}, "
            "expected a click.Command"
        )
    return loaded


def _loaded(what: str, spec: CustomOpSpec | CommandSpec, provider: object) -> Any:
    """Return what the provider's own code loads."""
    try:
        return spec.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise PluginLoadError(
            f"{what} {spec.name!r} could not be loaded from {provider}: {one_line(error)}"
        ) from error
