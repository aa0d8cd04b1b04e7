"""Plugins as JSON, and reports on plugins from a separate process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delegraph.errors import PluginLoadError
from delegraph.json_records import to_json
from delegraph.plugins.discovery import import_plugin
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.plugins.plugin_set import PluginSet
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec
from delegraph.plugins.standard_output import printed_to_stderr
from delegraph.processes.worker import tell
from delegraph.tools.plugin_check import Finding, check_loads


def plugin_from_json(content: dict[str, Any]) -> Plugin:
    """Return the plugin from *content*, made by ``Plugin.to_json``; its offers cannot be loaded."""

    def offered(kind: str) -> list[tuple[str, str]]:
        return [(each["name"], each["summary"]) for each in content[kind]]

    return Plugin(
        content["name"],
        content["distribution"],
        content["version"],
        content["module"],
        PluginState(content["state"]),
        content["error"],
        tuple(map(_delegate_from_json, content["delegates"])),
        tuple(CustomOpSpec(name, text, _is_elsewhere) for name, text in offered("custom_ops")),
        tuple(CommandSpec(name, text, _is_elsewhere) for name, text in offered("commands")),
        tuple(CompilerSpec(n, _is_elsewhere, _is_elsewhere) for n in content["compilers"]),
        tuple(content["warnings"]),
    )


def _delegate_from_json(content: dict[str, Any]) -> DelegateSpec:
    return DelegateSpec(
        content["name"],
        content["summary"],
        _is_elsewhere,
        isolate=content["isolate"],
        timeout=content["timeout"],
        default_rank=content.get("default_rank"),
        is_ready=lambda: bool(content["is_ready"]),
    )


def _is_elsewhere(*_: Any) -> Any:
    raise PluginLoadError(
        "this is the description of a plugin that another process imported; create_delegate() "
        "loads it"
    )


# -- in the child process --------------------------------------------------------------------------


@dataclass(frozen=True)
class PluginReport:
    """Imports plugins and reports on them, in a separate process.

    Attributes:
        plugins: name, distribution, version and module of each plugin.
        loads: whether to load the objects that the plugins offer.
        builtin: names of Delegraph's own commands, which are not loaded.
        memory_limit: maximal number of bytes of the process's writable memory; None means no limit.
    """

    plugins: Sequence[tuple[str, str, str, str]]
    loads: bool
    builtin: Sequence[str]
    memory_limit: int | None

    def send(self) -> None:
        """Send a report on each plugin after its import, and another after its objects are loaded.

        Text that the plugins print goes to standard error.
        """
        with printed_to_stderr():
            if self.memory_limit is not None:
                _limit_memory(self.memory_limit)
            for identity in self.plugins:
                plugin = import_plugin(Plugin(*identity))
                tell({"plugin": plugin.to_json()})
                findings: tuple[Finding, ...] = ()
                if self.loads:
                    findings = check_loads(PluginSet(plugins=(plugin,)), self.builtin)
                tell({"findings": to_json(findings)})


def _limit_memory(limit: int) -> None:
    """Limit this process's writable memory, if the system supports it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
