"""``Environment``: state that several compiled models share."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from delegraph.compiled_model.failures import checked_text
from delegraph.errors import ArgumentError

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10


@dataclass(frozen=True)
class EnvironmentOptions:
    """Options of an environment; the paths have no effect, since this runtime uses no libraries.

    Attributes:
        runtime_path: folder of the runtime; None for the installed runtime.
        compiler_plugin_path: folder of vendors' compilers.
        dispatch_library_path: folder of vendors' libraries for compiled models.
    """

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""


class Environment:
    """Options that compiled models share.

    Several models may share an environment. No model can be created in a closed environment;
    existing models remain usable.

    Args:
        capsule: any object; None for a closed environment.
        options: the options.

    Source:
        Environment, ai_edge_litert/environment.py.
    """

    def __init__(self, capsule: Any, options: EnvironmentOptions) -> None:
        self._capsule = capsule
        self._options = options

    @classmethod
    def create(
        cls,
        *,
        options: EnvironmentOptions | str | None = None,
        runtime_path: str | None = None,
        compiler_plugin_path: str = "",
        dispatch_library_path: str = "",
    ) -> Self:
        """Return a new environment.

        Args:
            options: all options, or ``runtime_path`` as text; give this or the other arguments.
            runtime_path: folder of the runtime; without effect.
            compiler_plugin_path: folder of vendors' compilers; without effect.
            dispatch_library_path: folder of vendors' libraries; without effect.

        Raises:
            ArgumentError: both options and other arguments are given.
            ArgumentTypeError: a path is no text.
        """
        if isinstance(options, str):
            if runtime_path is not None:
                raise ArgumentError("runtime_path was provided twice.")
            runtime_path, options = options, None
        paths = compiler_plugin_path, dispatch_library_path
        if options is None:
            options = EnvironmentOptions(runtime_path, *paths)
        elif runtime_path is not None or any(paths):
            raise ArgumentError("Pass either options or environment path shortcuts.")
        checked_text("dispatch_library_path", options.dispatch_library_path)
        checked_text("compiler_plugin_path", options.compiler_plugin_path)
        folder = options.runtime_path or os.path.dirname(os.path.abspath(__file__))
        checked_text("runtime_path", folder)
        return cls(object(), replace(options, runtime_path=folder))

    def close(self) -> None:
        """Make the environment unusable for new models; a second call has no effect."""
        self._capsule = None

    @property
    def options(self) -> EnvironmentOptions:
        """Options with which the environment was created; ``runtime_path`` is always set."""
        return self._options

    @property
    def capsule(self) -> Any:
        """A Python capsule that represents the environment.

        Raises:
            ArgumentError: the environment is closed.
        """
        if self._capsule is None:
            raise ArgumentError("Environment is no longer valid")
        return self._capsule

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()
