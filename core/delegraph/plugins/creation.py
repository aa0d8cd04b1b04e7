"""Calls plugins' code that makes delegates and loads objects; errors name the plugin."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from delegraph.errors import (
    ArgumentError,
    CallCancelledError,
    DelegraphError,
    PartitionRejected,
    PluginError,
    PluginLoadError,
)
from delegraph.plugins.plugin import Plugin, one_line
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec

if TYPE_CHECKING:
    import click

    from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateParams
    from delegraph.delegation.partition_model import PartitionModel
    from delegraph.delegation.simple_delegate import SimpleDelegateKernelInterface
    from delegraph.operators.registration import Registration
    from delegraph.plugins.options import Given


def make_delegate(spec: DelegateSpec, given: Given, provider: object) -> Delegate:
    """Make a new delegate from its spec and options.

    Args:
        spec: spec of the delegate.
        given: options of the delegate, see :func:`~delegraph.plugins.options.make_options`.
        provider: the plugin or file that offers the delegate, as errors name it.

    Raises:
        PluginOptionError: the options do not fit.
        PluginLoadError: the provider's own code failed; the cause is chained.
    """
    made = _make(spec, _options(spec, given), provider)
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


def _options(spec: DelegateSpec, given: Given) -> object:
    """Return the options object of a delegate.

    *given* is text, a mapping or an object; types are checked only then.
    """
    if given is None:
        with suppress(TypeError, ValueError):  # a required option is missing
            return None if spec.options is None else spec.options()
    from delegraph.plugins.options import make_options

    return make_options(spec, given)


def _make(spec: DelegateSpec, options: object, provider: object) -> object:
    try:
        factory = spec.load()
        if not callable(factory):
            raise PluginLoadError(
                f"delegate {spec.name!r}: load() of {provider} returned a "
                f"{type(factory).__name__}, expected the class of the delegate, or a function "
                "that makes one"
            )
        return factory() if spec.options is None else factory(options)
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise PluginLoadError(
            f"delegate {spec.name!r} could not be made by {provider}: {one_line(error)}"
            f"{_options_advice(spec, error)}"
        ) from error


def _options_advice(spec: DelegateSpec, error: BaseException) -> str:
    """Return advice if *error* is that only one of delegate and spec has options; else empty."""
    if not isinstance(error, TypeError):
        return ""
    if spec.options is None and "missing 1 required" in str(error):
        return "; it is given options if its DelegateSpec has them: options=CLASS"
    if spec.options is not None and str(error).endswith(" given"):
        return f"; it is given the options, a {spec.options.__name__}"
    return ""


def load_custom_op(spec: CustomOpSpec, provider: object) -> Registration:
    """Return the implementation of the custom operator *spec*.

    Raises:
        PluginLoadError: the provider's own code failed, or returned the wrong type.
    """
    from delegraph.operators.custom_op import as_registration

    loaded = _loaded("custom operator", spec, provider)
    try:
        return as_registration(loaded, spec.name)
    except ArgumentError:
        raise PluginLoadError(
            f"custom operator {spec.name!r}: load() of {provider} returned a "
            f"{type(loaded).__name__}, expected a Registration or what custom_op makes"
        ) from None


def describe_custom_op(
    spec: CustomOpSpec, custom_options: bytes, provider: object
) -> dict[str, str]:
    """Return a description of an operator with *custom_options*: a mapping from titles to texts.

    *spec* describes the operator, and *provider* is the plugin that offers it. The result is empty
    if the spec has no ``describe``.

    Raises:
        DelegraphError: the options are damaged.
        PluginLoadError: the provider's own code failed, or returned the wrong type.
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
    """Return the subcommand *spec* of the command line.

    Raises:
        PluginLoadError: the provider's own code failed, or returned the wrong type.
    """
    import click

    loaded = _loaded("command", spec, provider)
    if not isinstance(loaded, click.Command):
        raise PluginLoadError(
            f"command {spec.name!r}: load() of {provider} returned a {type(loaded).__name__}, "
            "expected a click.Command"
        )
    return loaded


def compile_partition(
    spec: CompilerSpec, model: PartitionModel, options: object, provider: object
) -> bytes:
    """Return the blob into which a provider's compiler *spec* compiles the partition *model*.

    *options* are the delegate's.

    Raises:
        PartitionRejected: the compiler does not compile this partition.
        PluginLoadError: the provider's own code failed, or returned the wrong type.
    """
    blob: object = _called(spec, "compile_partition", provider, model, options)
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise _wrong_answer(spec, "compile_partition", provider, blob, "bytes")
    return bytes(blob)


def load_compiled(
    spec: CompilerSpec,
    blob: bytes,
    context: DelegateContext,
    params: DelegateParams,
    provider: object,
) -> SimpleDelegateKernelInterface:
    """Return the kernel that a provider's compiler *spec* makes from *blob*.

    Raises:
        PartitionRejected: the kernel cannot run the partition on this machine.
        PluginLoadError: the provider's own code failed, or returned the wrong type.
    """
    from delegraph.delegation.simple_delegate import SimpleDelegateKernelInterface

    kernel: object = _called(spec, "load_compiled", provider, blob, context, params)
    if not isinstance(kernel, SimpleDelegateKernelInterface):
        expected = "a SimpleDelegateKernelInterface"
        raise _wrong_answer(spec, "load_compiled", provider, kernel, expected)
    return kernel


def compiler_version(spec: CompilerSpec, plugin: Plugin) -> str:
    """Version of the blobs that a plugin's compiler *spec* makes and loads.

    Raises:
        PluginLoadError: the plugin's own code failed, or returned the wrong type.
    """
    if spec.version is None:
        return plugin.version
    version: object = _called(spec, "version", plugin)
    if not isinstance(version, str):
        raise _wrong_answer(spec, "version", plugin, version, "a text")
    return version


def _called(spec: CompilerSpec, name: str, provider: object, *arguments: object) -> object:
    try:
        return getattr(spec, name)(*arguments)
    except (KeyboardInterrupt, PluginError, PartitionRejected, CallCancelledError):
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise PluginLoadError(
            f"delegate {spec.name!r}: {name}() of {provider} failed: {one_line(error)}"
        ) from error


def _wrong_answer(
    spec: CompilerSpec, name: str, provider: object, answer: object, expected: str
) -> PluginLoadError:
    return PluginLoadError(
        f"delegate {spec.name!r}: {name}() of {provider} returned a {type(answer).__name__}, "
        f"expected {expected}"
    )


def _loaded(what: str, spec: CustomOpSpec | CommandSpec, provider: object) -> Any:
    """Return the object of a plugin's spec by calling its ``load``.

    *what* is the kind of object, for errors.
    """
    try:
        return spec.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise PluginLoadError(
            f"{what} {spec.name!r} could not be loaded from {provider}: {one_line(error)}"
        ) from error
