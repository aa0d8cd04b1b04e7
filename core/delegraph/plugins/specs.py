"""Specs of a plugin's delegates, operators, commands and compilers, before their import."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from delegraph.errors import ArgumentError

if TYPE_CHECKING:
    import click

    from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateParams
    from delegraph.delegation.partition_model import PartitionModel
    from delegraph.delegation.simple_delegate import (
        SimpleDelegateInterface,
        SimpleDelegateKernelInterface,
    )
    from delegraph.operators.custom_op import CustomOp
    from delegraph.operators.registration import Registration

    DelegateFactory = Callable[..., SimpleDelegateInterface | Delegate]
    CompilePartition = Callable[[PartitionModel, Any], bytes]
    LoadCompiled = Callable[[bytes, DelegateContext, DelegateParams], SimpleDelegateKernelInterface]

DELEGATE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
"""No ``:``, ``=`` or ``,``: ``dist:name:key=value,key=value`` stays unambiguous."""

COMMAND_NAME = re.compile(r"[a-z][a-z0-9_-]*")

Isolate = Literal["process", "none"]
"""Where a delegate runs: in a process of its own, or in the one that asks for it."""

RESERVED_NAMES = frozenset({"all", "help", "none"})
"""What ``--delegate`` understands besides the names of delegates."""


@dataclass(frozen=True, slots=True)
class DelegateSpec:
    """A delegate that users ask for by name.

    Attributes:
        name: what users type; a letter, then letters, digits, ``_``, ``-`` or ``.``.
        summary: one line for ``delegraph plugins list``.
        load: imports the heavy part and returns the delegate's class (or any callable that makes
            the delegate): called with an instance of ``options``, without arguments when there are
            none. Called each time a user asks for the delegate.
        options: a dataclass whose fields are the options; None for a delegate without any. Fields
            may be bool, int, float, str, an enum, a ``Literal``, ``tuple[T, ...]`` of these, or
            one of them ``| None``. ``field(metadata={"help": "..."})`` documents a field.
        rank: where it stands when several delegates are asked for in no order of their own (a set,
            a mapping, ``--delegate all``): ascending, ties by name. A delegate for a few operators
            that it does best comes before (below 0) one that takes whatever is left (above 0).
        custom_ops: custom operators that the delegate is there for, by name or pattern
            (``"Flex*"``). A model that has one, which no kernel provides, gets the delegate
            without asking, before those that are asked for.
        isolate: ``"process"`` runs it in a process of its own, unless users say otherwise: for one
            whose engine may crash or hang.
        timeout: seconds that its kernels may take for an invoke there, unless users say otherwise;
            None for any.
        default_rank: its place among the delegates that may compute, without being named, the
            nodes that all others reject: the lowest that is ready is applied. It counts in the
            distributions of Delegraph alone; users make any other delegate a default by their
            configuration or environment. None: it is none of them.
        is_ready: whether it can work at once here, without compiling for seconds first; asked of a
            delegate that is applied without being named. It is quick. None: it always can.

    Raises:
        ArgumentError: a field that cannot be used.
    """

    name: str
    summary: str
    load: Callable[[], DelegateFactory]
    options: type | None = None
    rank: int = 0
    custom_ops: tuple[str, ...] = ()
    isolate: Isolate = "none"
    timeout: float | None = None
    default_rank: int | None = None
    is_ready: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not DELEGATE_NAME.fullmatch(self.name):
            raise ArgumentError(
                f"DelegateSpec name is {self.name!r}, expected a letter followed by letters, "
                "digits, '_', '-' or '.'"
            )
        if self.name in RESERVED_NAMES:
            raise ArgumentError(f"DelegateSpec name {self.name!r} means something else to users")
        _check_summary_and_load(self)
        if self.options is not None and not _is_dataclass_type(self.options):
            raise ArgumentError(
                f"DelegateSpec {self.name!r}: options is {self.options!r}, expected a dataclass"
            )
        _check_rank(self, "rank", self.rank)
        if self.default_rank is not None:
            _check_rank(self, "default_rank", self.default_rank)
        if not isinstance(self.custom_ops, tuple) or not all(
            isinstance(pattern, str) for pattern in self.custom_ops
        ):
            raise ArgumentError(
                f"DelegateSpec {self.name!r}: custom_ops is {self.custom_ops!r}, expected a tuple "
                "of names"
            )
        _check_isolation(self)
        if self.is_ready is not None and not callable(self.is_ready):
            raise ArgumentError(
                f"DelegateSpec {self.name!r}: is_ready is {self.is_ready!r}, expected a function"
            )


@dataclass(frozen=True, slots=True)
class CustomOpSpec:
    """A custom operator that runs as a kernel, without any delegate.

    Attributes:
        name: the custom code in the model file.
        summary: one line for ``delegraph plugins info``.
        load: imports and returns the operator: what ``custom_op`` made of a function, or a
            registration.
        describe: from the custom options of one such operator to what ``delegraph inspect`` shows
            of it, names to values as text; None shows nothing.

    Raises:
        ArgumentError: a field that cannot be used.
    """

    name: str
    summary: str
    load: Callable[[], CustomOp | Registration]
    describe: Callable[[bytes], Mapping[str, str]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"CustomOpSpec name is {self.name!r}, expected the custom code")
        _check_summary_and_load(self)
        if self.describe is not None and not callable(self.describe):
            raise ArgumentError(
                f"CustomOpSpec {self.name!r}: describe is {self.describe!r}, expected a function"
            )


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A subcommand of the command line: ``delegraph NAME``.

    Attributes:
        name: what users type; lower-case letters, digits, ``_`` and ``-``, a letter first.
        summary: one line for ``delegraph --help``.
        load: imports and returns the command, a ``click.Command``. What it returns when run is the
            exit code, None for 0; errors of :mod:`delegraph.errors` end in one line.

    Raises:
        ArgumentError: a field that cannot be used.
    """

    name: str
    summary: str
    load: Callable[[], click.Command]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not COMMAND_NAME.fullmatch(self.name):
            raise ArgumentError(
                f"CommandSpec name is {self.name!r}, expected a lower-case letter followed by "
                "lower-case letters, digits, '_' or '-'"
            )
        _check_summary_and_load(self)


_OPTIONAL = ("version", "load_claims")
"""Functions that a ``CompilerSpec`` need not have."""


@dataclass(frozen=True, slots=True)
class CompilerSpec:
    """Spec of functions that compile a delegate's partitions ahead of time and load them.

    ``delegraph compile`` has the delegate claim nodes as ever, or ``load_claims`` in its place, and
    calls ``compile_partition`` for each partition in place of a kernel's ``init``. What it returns,
    the blob, is stored in the model file. Where such a file runs, ``load_compiled`` makes the
    kernel of it. Both import what is heavy when they are called.

    Attributes:
        name: of the delegate, which the same plugin offers; it is a ``SimpleDelegateInterface``.
        compile_partition: from a ``PartitionModel`` and the delegate's options (None where it has
            none) to the blob. It raises ``PartitionRejected`` for a partition that stays as it is.
        load_compiled: from the blob, the ``DelegateContext`` and the ``DelegateParams`` of its node
            to a kernel, whose ``init`` is not called. ``params.input_tensors`` are what
            ``PartitionModel.inputs`` were, in that order, then the variables that the partition
            uses; ``params.output_tensors`` what its ``outputs`` were. The node that ``prepare`` and
            ``eval`` get has the same. Shapes are those that were compiled.
        version: returns the version of the blobs: one of another version is not loaded. None for
            the version of the plugin's distribution.
        load_claims: as ``DelegateSpec.load``: imports and returns the class of what claims nodes
            when a model is compiled, where that is not the delegate itself: one that runs nothing
            but what was compiled.

    Raises:
        ArgumentError: a field that cannot be used.
    """

    name: str
    compile_partition: CompilePartition
    load_compiled: LoadCompiled
    version: Callable[[], str] | None = None
    load_claims: Callable[[], DelegateFactory] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not DELEGATE_NAME.fullmatch(self.name):
            raise ArgumentError(
                f"CompilerSpec name is {self.name!r}, expected the name of a delegate"
            )
        for field in ("compile_partition", "load_compiled", "version", "load_claims"):
            value = getattr(self, field)
            if not callable(value) and (value is not None or field not in _OPTIONAL):
                raise ArgumentError(
                    f"CompilerSpec {self.name!r}: {field} is {value!r}, expected a function"
                )


def _check_rank(spec: DelegateSpec, field: str, rank: object) -> None:
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise ArgumentError(f"DelegateSpec {spec.name!r}: {field} is {rank!r}, expected an int")


def _check_isolation(spec: DelegateSpec) -> None:
    if spec.isolate not in get_args(Isolate):
        raise ArgumentError(
            f"DelegateSpec {spec.name!r}: isolate is {spec.isolate!r}, expected one of "
            + ", ".join(map(repr, get_args(Isolate)))
        )
    timeout: object = spec.timeout
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and timeout > 0):  # type: ignore[operator]  # a number
        raise ArgumentError(
            f"DelegateSpec {spec.name!r}: timeout is {timeout!r}, expected seconds or None"
        )
    if timeout is not None and spec.isolate != "process":
        raise ArgumentError(f"DelegateSpec {spec.name!r}: timeout needs isolate='process'")


def _check_summary_and_load(spec: DelegateSpec | CustomOpSpec | CommandSpec) -> None:
    what = f"{type(spec).__name__} {spec.name!r}"
    if not isinstance(spec.summary, str):
        raise ArgumentError(f"{what}: summary is {spec.summary!r}, expected one line of text")
    if not callable(spec.load):
        raise ArgumentError(f"{what}: load is {spec.load!r}, expected a function")


def _is_dataclass_type(value: object) -> bool:
    return isinstance(value, type) and dataclasses.is_dataclass(value)
