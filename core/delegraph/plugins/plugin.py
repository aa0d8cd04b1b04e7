"""Record of one installed plugin, in any state."""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import Any

from delegraph.errors import PluginOptionError
from delegraph.lazy_dataclass import dataclass, field
from delegraph.log import Logger
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec

logger = Logger(__name__)

ALLOW_VARIABLE = "DELEGRAPH_PLUGINS"
DISABLE_VARIABLE = "DELEGRAPH_DISABLE_PLUGINS"

PLUGIN_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
"""Pattern for the name of a usable plugin, which is safe in a path and on a terminal."""


class PluginState(Enum):
    """State of a plugin: usable, or the kind of reason why it cannot be used.

    The last two states occur only if plugins are imported in separate processes: the import hung,
    or the process crashed.
    """

    OK = "ok"
    BROKEN = "broken"
    INCOMPATIBLE = "incompatible"
    DISABLED = "disabled"
    NOT_ALLOWED = "not allowed"
    TIMED_OUT = "timed out"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of group ``delegraph.plugins``, with its state and offers.

    Attributes:
        name: name of the entry point.
        distribution: name of the distribution that declares it.
        version: version of that distribution; empty when unknown.
        module: module to which the entry point refers, perhaps with an attribute.
        state: whether the plugin can be used.
        error: the reason why the plugin cannot be used, in one line; empty if it can.
        delegates: specs of the delegates that the plugin offers, by name; empty unless usable.
        custom_ops: specs of its custom operators, by name.
        commands: specs of its subcommands of the command line, by name.
        compilers: specs of its ahead-of-time compilers, by the name of their delegate.
        warnings: texts of the warnings of its import.
        exception: error of its import or of its hooks.
    """

    name: str
    distribution: str
    version: str
    module: str
    state: PluginState = PluginState.OK
    error: str = ""
    delegates: tuple[DelegateSpec, ...] = ()
    custom_ops: tuple[CustomOpSpec, ...] = ()
    commands: tuple[CommandSpec, ...] = ()
    compilers: tuple[CompilerSpec, ...] = ()
    warnings: tuple[str, ...] = ()
    exception: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def is_faulty(self) -> bool:
        """Whether the plugin is allowed but cannot be used, so that the user must repair it."""
        is_right = (PluginState.OK, PluginState.DISABLED, PluginState.NOT_ALLOWED)
        return self.state not in is_right

    @property
    def remedy(self) -> str:
        """Advice on how the user can repair the plugin; empty for a usable plugin."""
        if self.state is PluginState.DISABLED:
            return (
                self._change_of(DISABLE_VARIABLE) or f"take {self.name!r} off that list to use it"
            )
        if self.state is PluginState.NOT_ALLOWED:
            return self._change_of(ALLOW_VARIABLE) or f"add {self.name!r} to that list to use it"
        if self.is_faulty:
            from delegraph.plugins.sources import installed_from  # lazy: most plugins are right

            without = f"leave it out with {DISABLE_VARIABLE}={self.name}"
            if not re.fullmatch(PLUGIN_NAME, self.name):  # a list of plugins cannot contain it
                without = f"remove it with 'pip uninstall {self.distribution}'"
            if self.state is PluginState.TIMED_OUT:
                return f"give it longer with --time-limit, mend its code, or {without}"
            folder = installed_from(self.distribution, is_editable=True)
            if folder is not None:
                return f"mend its code in {folder}, or {without}"
            return f"repair it with 'pip install --upgrade {self.distribution}', or {without}"
        return ""

    def _change_of(self, variable: str) -> str:
        """Value of an environment variable that allows the plugin; empty if a file excludes it."""
        if variable not in self.error:
            return ""
        listed = (name.strip() for name in os.environ.get(variable, "").split(","))
        names = [name for name in listed if name and name.rpartition(":")[2] != self.name]
        if variable == ALLOW_VARIABLE:
            names.append(self.name)
        return f"{variable}={','.join(names)} allows it"

    @property
    def missing_hook(self) -> str:
        """Advice for a usable plugin that offers nothing, as if without ``hookimpl``; else ""."""
        offers = self.delegates or self.custom_ops or self.commands or self.compilers
        if offers or self.state is not PluginState.OK:
            return ""
        module, _, inside = self.module.partition(":")
        named = f"name the module {module} in its entry point, without :{inside}, and " * bool(
            inside
        )
        return f"{named}define hooks in {module}, as delegraph_delegates, with @delegraph.hookimpl"

    def to_json(self) -> dict[str, Any]:
        """Return the plugin, its offers and its delegates' options in JSON form.

        For each delegate, ``options`` describes the options to people, as ``plugins info`` does;
        ``options_schema`` is a JSON Schema for programs.
        """
        return {
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "module": self.module,
            "state": self.state.value,
            "error": self.error,
            "remedy": self.remedy,
            "warnings": list(self.warnings),
            "delegates": [_delegate_json(spec) for spec in self.delegates],
            "custom_ops": [{"name": s.name, "summary": s.summary} for s in self.custom_ops],
            "commands": [{"name": s.name, "summary": s.summary} for s in self.commands],
            "compilers": [spec.name for spec in self.compilers],
        }

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"plugin {self.name!r} of {self.distribution}{version}"


def is_ready(spec: DelegateSpec) -> bool:
    """Whether the delegate *spec* can run here now; False if its own check raises an error."""
    if spec.is_ready is None:
        return True
    try:
        return spec.is_ready()
    except Exception as error:  # noqa: BLE001  # whatever the plugin's own code raises
        logger.warning("delegate %r: is_ready() failed: %s", spec.name, one_line(error))
        return False


def _delegate_json(spec: DelegateSpec) -> dict[str, Any]:
    from dataclasses import asdict  # lazy import: few programs ask, and these imports take long

    from delegraph.plugins.options import describe_options
    from delegraph.plugins.options_schema import options_schema

    ready = is_ready(spec)
    try:
        options, schema = describe_options(spec), options_schema(spec)
    except PluginOptionError as error:
        error_json = {"name": spec.name, "summary": spec.summary, "error": str(error)}
        limits = {"isolate": spec.isolate, "timeout": spec.timeout}
        return {**error_json, **limits, "is_ready": ready}
    return {
        "name": spec.name,
        "summary": spec.summary,
        "rank": spec.rank,
        "default_rank": spec.default_rank,
        "isolate": spec.isolate,
        "timeout": spec.timeout,
        "is_ready": ready,
        "options": [asdict(option) for option in options],
        "options_schema": schema,
    }


def one_line(error: BaseException, limit: int = 400) -> str:
    r"""Return an exception's type and message on one line, cut at about *limit* characters.

    >>> one_line(OSError("no driver\nis it plugged in?"))
    'OSError: no driver; is it plugged in?'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = "; ".join(lines)
    if len(text) > limit:
        text = text[:limit] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
