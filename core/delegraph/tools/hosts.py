"""The hosts that can run delegates in this environment, with reasons for the hosts that cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from importlib_metadata import version

from delegraph.errors import UnsupportedRuntimeError
from delegraph.native.litert import guard
from delegraph.native.litert.installed_runtimes import (
    OfficialRuntime,
    compiled_model_module,
    compiled_model_runtime,
    interpreter_module,
    runtime_of,
)
from delegraph.tools.setup import Runtime


@dataclass(frozen=True, slots=True)
class Host:
    """A runtime in which delegates can run.

    Attributes:
        runtime: name of the runtime for ``--runtime``.
        package: package and version; empty if unknown.
        api: name of the class that runs models.
        refusal: text that says why delegates cannot run in it; empty if they can.
        is_tested: whether Delegraph was tested with this version on this platform.
    """

    runtime: Runtime
    package: str
    api: str
    refusal: str = ""
    is_tested: bool = True


def hosts() -> tuple[Host, ...]:
    """Return the three hosts with versions, and the reason if a host cannot run delegates.

    A runtime of an untested version is tried once, to see whether it works.
    """
    return (
        Host("delegraph", f"delegraph {version('delegraph')}", "Interpreter"),
        _official("litert", "Interpreter", _interpreter),
        _official("litert2", "CompiledModel", _compiled_model),
    )


def _official(runtime: Runtime, api: str, find: Callable[[], OfficialRuntime]) -> Host:
    try:
        found = find()
    except (UnsupportedRuntimeError, ImportError, OSError) as error:
        return Host(runtime, "", api, str(error))
    is_tested = guard.is_known(found)
    return Host(runtime, f"{found.package} {found.version}", api, is_tested=is_tested)


def _interpreter() -> OfficialRuntime:
    module = interpreter_module()
    guard.require_known(vars(module))
    return runtime_of(vars(module))


def _compiled_model() -> OfficialRuntime:
    module = compiled_model_module()
    guard.require_known_compiled_model()
    return compiled_model_runtime(module)
