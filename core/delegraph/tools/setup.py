"""Set-ups: a model file with runtime, delegates and threads, which tools measure and compare."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from delegraph.delegation.delegate import PartitionPolicy
from delegraph.delegation.rules_file import Rules
from delegraph.errors import ArgumentError
from delegraph.graph.loader import load_model
from delegraph.operators.numerics import Numerics
from delegraph.plugins.specs import DELEGATE_WORDS, Isolate
from delegraph.quantities import plural
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.delegates.requested_delegates import (
    AnyDelegate,
    as_delegates,
    delegate_of_file,
    is_installed_name,
)
from delegraph.runtime.isolation.isolation import Isolation
from delegraph.runtime.options import OWN_RUNTIME_ONLY, PLACES, OnFailure, Requirement, in_groups

if TYPE_CHECKING:
    from delegraph.graph.model import Model
    from delegraph.native import LiteRtInterpreter
    from delegraph.runtime.interpreter import Interpreter
    from delegraph.tools.litert2 import LiteRt2Interpreter

    AnyInterpreter: TypeAlias = Interpreter | LiteRtInterpreter | LiteRt2Interpreter

Runtime = Literal["delegraph", "litert", "litert2"]
"""Name of the host: Delegraph's interpreter, the official one, or the official ``CompiledModel``.

All hosts take the same delegates.
"""


@dataclass(frozen=True, slots=True)
class Setup:
    """A model with runtime and delegates; :meth:`interpreter` creates a new interpreter.

    If the runtime lacks an option that is set, :meth:`interpreter` raises an error.

    >>> print(Setup("mobilenet.tflite", delegates=("numba_cpu",), threads=2))
    mobilenet.tflite, numba_cpu, 2 threads

    Attributes:
        model: path of the model's file, or ``FILE#SECTION`` of a bundle, kept as text.
        runtime: name of the runtime.
        delegates: delegates as for ``Interpreter(delegates=...)``; None means the default
            delegates; ``["none"]`` or ``[]`` means no delegates, not even the runtime's own. A
            set-up that is sent to another process may only have names.
        delegate_files: further delegates, each ``FILE.py[:KEY=VALUE,...]``, applied after
            *delegates*.
        use_default_delegates: whether delegates may be applied without being named: LiteRT's
            XNNPACK, and Delegraph's default delegates.
        threads: number of threads; None lets the runtime choose.
        numerics: ``builtin`` or ``reference``: the official kernels whose rounding is followed.
        rules, require, partition_policy: as in ``PlacementPolicy``.
        time_limit, memory_limit, table_limit, depth_limit, weights_dir: as in ``Limits``.
        on_failure, validate, isolate, timeout: as in ``FailurePolicy``.
    """

    model: str
    runtime: Runtime = "delegraph"
    delegates: Sequence[AnyDelegate] | None = None
    delegate_files: tuple[str, ...] = ()
    use_default_delegates: bool = True
    threads: int | None = None
    numerics: Numerics = "builtin"
    rules: Rules | None = None
    require: Requirement | None = None
    partition_policy: PartitionPolicy = "largest"
    on_failure: OnFailure | None = None
    validate: bool = False
    time_limit: float | None = None
    memory_limit: int | None = None
    table_limit: int | None = None
    depth_limit: int | None = None
    isolate: Isolate | None = None
    timeout: float | None = None
    weights_dir: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", os.fspath(self.model))

    def interpreter(self, **arguments: Any) -> AnyInterpreter:
        """Return a new interpreter with its delegates, before allocation.

        Args:
            arguments: further keyword arguments of the interpreter's constructor, which every
                runtime's constructor must accept.

        Raises:
            ArgumentError: the runtime lacks an option, the file does not exist, or a value is
                wrong.
            PluginError: a delegate is missing or broken.
            DelegraphError: the model cannot be used, or a delegate failed.
        """
        if self.runtime != "delegraph":
            return self._litert(arguments)
        from delegraph.runtime.interpreter import Interpreter

        return Interpreter(
            model_path=self.model,
            delegates=self.requested_delegates(),
            num_threads=self.threads,
            numerics=self.numerics,
            experimental_op_resolver_type=self._resolver(),
            **self._groups(),
            **arguments,
        )

    def loaded_model(self) -> Model:
        """Return the content of the model's file.

        Raises:
            ArgumentError: the file cannot be opened.
            ModelError: the file cannot be loaded.
        """
        return load_model(self.model, self.table_limit, self.memory_limit, self.weights_dir)

    @property
    def isolation(self) -> Isolation:
        """Isolation of delegates, from the attributes ``isolate`` and ``timeout``."""
        return Isolation(self.isolate, self.timeout)

    def _litert(self, arguments: dict[str, Any]) -> LiteRtInterpreter | LiteRt2Interpreter:
        for name in self.own_runtime_only():
            raise ArgumentError(f"{name} needs runtime='delegraph': the official one has none")
        self.keep_runtime_quiet()
        host: type[LiteRtInterpreter | LiteRt2Interpreter]
        if self.runtime == "litert":
            from delegraph.native import LiteRtInterpreter as host
        else:
            from delegraph.tools.litert2 import LiteRt2Interpreter as host
        return host(
            model_path=self.model,
            delegates=self.requested_delegates(),
            num_threads=self.threads,
            experimental_op_resolver_type=self._resolver(),
            **self._groups(),
            **arguments,
        )

    def keep_runtime_quiet(self) -> None:
        """Keep XNNPACK in the official runtime, if it is used, from printing that it is created."""
        if self.runtime != "delegraph" and self._resolver() is OpResolverType.AUTO:
            from delegraph.native.litert.quiet import keep_xnnpack_quiet

            keep_xnnpack_quiet()

    def _groups(self) -> dict[str, Any]:
        """Return the interpreter's grouped options: ``placement``, ``limits``, ``failures``."""
        names = [spec.name for spec in fields(self) if spec.name in PLACES]
        return in_groups({name: getattr(self, name) for name in names})

    def _resolver(self) -> OpResolverType:
        if self.numerics == "reference":
            return OpResolverType.BUILTIN_REF
        if not self.use_default_delegates or self.has_no_delegates:
            return OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return OpResolverType.AUTO

    @property
    def has_no_delegates(self) -> bool:
        """Whether no delegate at all shall be applied, not even the runtime's own."""
        is_empty = self.delegates is not None and all(each == "none" for each in self.delegates)
        return is_empty and not self.delegate_files

    def requested_delegates(self) -> list[AnyDelegate] | None:
        """Return ``delegates`` and the delegates of ``delegate_files``, in order of application.

        The name ``all`` means every installed delegate, ordered by rank; ``none`` means no
        delegate; ``default`` means the default delegates. The result is None if only default
        delegates are requested.

        Raises:
            ArgumentError: a file does not exist, or has no delegate.
            PluginError: the options of a file do not fit, or its code failed.
        """
        from delegraph.plugins import installed

        asked = self.delegates
        if (asked is None or list(asked) == ["default"]) and not self.delegate_files:
            return None
        requested: list[AnyDelegate] = []
        for delegate in asked or ():
            if delegate == "all":
                requested += [offer.address for offer in installed().by_rank()]
            elif delegate not in DELEGATE_WORDS:
                requested.append(delegate)
        written = map(file_and_options, self.delegate_files)
        return requested + [
            delegate_of_file(path, options, self.isolation) for path, options in written
        ]

    def with_objects(self) -> Setup:
        """Return the set-up with its delegates as objects, which later interpreters share.

        Raises:
            ArgumentError: a file of a delegate does not exist, or has no delegate.
            PluginError: a delegate is missing or broken.
        """
        requested = self.requested_delegates()
        objects = None if requested is None else as_delegates(requested, self.isolation)
        return replace(self, delegates=objects, delegate_files=())

    def require_installed_delegates(self) -> None:
        """Check that an installed plugin provides each delegate that is given by its name.

        Raises:
            PluginError: no plugin provides it, or several do.
        """
        from delegraph.plugins import installed

        for delegate in self.delegates or ():
            is_name = isinstance(delegate, str) and is_installed_name(delegate)
            if is_name and delegate not in DELEGATE_WORDS:
                installed().find(str(delegate))

    def own_runtime_only(self) -> list[str]:
        """Return the names of set options that only Delegraph's own runtime supports."""
        return [name for name in self._not_default() if name in OWN_RUNTIME_ONLY]

    def __str__(self) -> str:
        words = [Path(self.model).name, *([self.runtime] * (self.runtime != "delegraph"))]
        named = [name for name in self._delegate_names() or () if name != "none"]
        is_bare = not self.use_default_delegates and not (named or self.delegate_files)
        has_none = self.has_no_delegates or is_bare
        words += ["no delegates"] if has_none else [*named, *self.delegate_files]
        for name, value in self._not_default().items():
            if name == "threads":
                words.append(plural(value, "thread"))
            elif name == "use_default_delegates":
                words += ["no default delegates"] * (not has_none)
            elif name != "delegate_files":
                words.append(f"{name.replace('_', ' ')} {_plain(value)}")
        return ", ".join(words)

    def _delegate_names(self) -> list[str] | None:
        if self.delegates is None:
            return None
        return [d if isinstance(d, str) else type(d).__name__ for d in self.delegates]

    def _not_default(self) -> dict[str, Any]:
        """Return the attributes that are not defaults, except model, runtime and delegates."""
        values = {spec.name: (getattr(self, spec.name), spec.default) for spec in fields(self)[3:]}
        return {name: value for name, (value, default) in values.items() if value != default}

    def to_json(self) -> dict[str, Any]:
        """Return model, runtime and delegates, and all other options that are not defaults."""
        given = {name: _plain(value) for name, value in self._not_default().items()}
        return {
            "model": self.model,
            "runtime": self.runtime,
            "delegates": self._delegate_names(),
            **given,
        }


def _plain(value: Any) -> Any:
    """Return a value in a form that JSON can represent."""
    if isinstance(value, str | int | float | None):
        return value
    return [str(item) for item in value] if isinstance(value, Sequence) else str(value)


def file_and_options(text: str) -> tuple[str, str]:
    """Split *text*, ``FILE[:KEY=VALUE,...]``; a colon separates only if an option follows it.

    >>> file_and_options("my.py:threads=2"), file_and_options("C:/my.py")
    (('my.py', 'threads=2'), ('C:/my.py', ''))
    """
    match = re.fullmatch(r"(.+?):(\w+=.*)", text, re.DOTALL)
    return (match[1], match[2]) if match else (text, "")
