"""Plugins as JSON, and the program that tells of some of them in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from delegraph.errors import PluginLoadError
from delegraph.json_records import to_json
from delegraph.plugins.discovery import import_plugin
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.plugins.plugin_set import PluginSet
from delegraph.plugins.specs import CommandSpec, CompilerSpec, CustomOpSpec, DelegateSpec
from delegraph.plugins.standard_output import printed_to_stderr
from delegraph.tools.plugin_check import Finding, check_loads


def plugin_from_json(content: dict[str, Any]) -> Plugin:
    """Return the plugin of which ``Plugin.to_json`` told; what it offers cannot be loaded."""

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
        is_ready=lambda: bool(content["is_ready"]),
    )


def _is_elsewhere(*_: Any) -> Any:
    raise PluginLoadError(
        "this is the description of a plugin that another process imported; create_delegate() "
        "loads it"
    )


# -- the program -----------------------------------------------------------------------------------


def report_plugins() -> None:
    """Import plugins and tell of them; the process ends with it.

    Standard input has the question: ``plugins``, each as name, distribution, version and module;
    ``loads``, whether to load what they offer; ``builtin``, commands to leave out then;
    ``memory_limit``, bytes or null. Standard output
    gets a line of JSON after each import, and another after its loads; what the plugins print goes
    to standard error.
    """
    question = json.load(sys.stdin)  # to its end, so that no plugin can wait for more
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers, printed_to_stderr():
        if question["memory_limit"] is not None:
            _limit_memory(question["memory_limit"])
        for identity in question["plugins"]:
            plugin = import_plugin(Plugin(*identity))
            answer: dict[str, Any] = {"plugin": plugin.to_json()}
            findings: tuple[Finding, ...] = ()
            if question["loads"]:
                print(json.dumps(answer), file=answers, flush=True)
                answer = {}
                findings = check_loads(PluginSet(plugins=(plugin,)), question["builtin"])
            answer["findings"] = to_json(findings)
            print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)  # what plugins have registered for the end, or left running, is not asked for


def _limit_memory(limit: int) -> None:
    """Limit the memory that this process may write to; a system that cannot has none."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
