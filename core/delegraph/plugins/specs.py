"""Specs of a plugin's delegates, operators, commands and compilers, before their import."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from delegraph.errors import ArgumentError
from delegraph.lazy_dataclass import dataclass

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

DELEGATE_NAME = r"[A-Za-z][A-Za-z0-9_.-]*"
"""Pattern of a delegate's name; without ``:``, ``=`` and ``,`` an address is unambiguous."""

COMMAND_NAME = r"[a-z][a-z0-9_-]*"

Isolate = Literal["process", "none"]
"""Place where a delegate runs: a process of its own, or the process that asks for it."""

RESERVED_NAMES = frozenset({"all", "default", "help", "none"})
"""Words for ``--delegate`` that are no names of delegates."""


@dataclass(frozen=True, slots=True)
class DelegateSpec:
    """A delegate that users ask for by name.

    Attributes:
        name: what users type; a letter, then letters, digits, ``_``, ``-`` or ``.``.
        summary: one line for ``delegraph plugins list``.
        load: function that imports the heavy part and returns the delegate's class, or another
            callable that makes the delegate. The callable gets an instance of ``options``, or
            nothing if there are none. ``load`` is called each time a user asks for the delegate.
        options: a dataclass whose fields are the options; None for a delegate without any. Fields
            may be bool, int, float, str, an enum, a ``Literal``, ``tuple[T, ...]`` of these, or
            one of them ``| None``. ``field(metadata={"help": "..."})`` documents a field.
        rank: place among several delegates that are requested without an order (a set, a mapping,
            ``--delegate all``): ascending, ties by name. A delegate that is best at a few operators
            has a rank below 0, one that takes all other operators a rank above 0.
        custom_ops: custom operators that the delegate is there for, by name or pattern
            (``"Flex*"``). A model that has one, which no kernel provides, gets the delegate
            without asking, before those that are asked for.
        isolate: ``"process"`` runs it in a process of its own, unless users say otherwise: for one
            whose engine may crash or hang.
        timeout: seconds that its kernels may take for an invoke in such a process, unless users say
            otherwise; None for no limit.
        default_rank: place among the delegates that may be the default delegate, which computes the
            nodes that all others reject; of those that are ready, the lowest is applied. It counts
            only in Delegraph's own distributions; users make another delegate a default by their
            configuration or environment. None means that it cannot be the default.
        is_ready: quick function that tells whether the delegate can work here at once, without
            compiling for seconds; asked of default delegates. None means that it always can.
        load_compiling: function like ``load`` for a delegate that keeps something in model files:
            ``delegraph compile`` applies and prepares the delegate that it returns, which gives
            what it keeps to ``DelegateContext.model_entries``. It need not be able to run. None for
            a delegate that keeps nothing there.
        advice: quick function that returns what slows the delegate down on this machine, as pairs
            of a text and a command that helps, for ``delegraph doctor``. None means nothing.

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
    load_compiling: Callable[[], DelegateFactory] | None = None
    advice: Callable[[], Sequence[tuple[str, str]]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(DELEGATE_NAME, self.name):
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
        for field in ("is_ready", "load_compiling", "advice"):
            value = getattr(self, field)
            if value is not None and not callable(value):
                raise ArgumentError(
                    f"DelegateSpec {self.name!r}: {field} is {value!r}, expected a function"
                )


@dataclass(frozen=True, slots=True)
class CustomOpSpec:
    """A custom operator that runs as a kernel, without any delegate.

    Attributes:
        name: the custom code in the model file.
        summary: one line for ``delegraph plugins info``.
        load: function that imports and returns the operator: a result of ``custom_op``, or a
            registration.
        describe: function from an operator's custom options to a mapping of names to texts, which
            ``delegraph inspect`` shows; None shows nothing.

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
        load: function that imports and returns the command, a ``click.Command``. The command's
            result is the exit code, None for 0; errors of :mod:`delegraph.errors` are shown in one
            line.

    Raises:
        ArgumentError: a field that cannot be used.
    """

    name: str
    summary: str
    load: Callable[[], click.Command]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(COMMAND_NAME, self.name):
            raise ArgumentError(
                f"CommandSpec name is {self.name!r}, expected a lower-case letter followed by "
                "lower-case letters, digits, '_' or '-'"
            )
        _check_summary_and_load(self)


_OPTIONAL = ("version", "load_claims")
"""Functions that a ``CompilerSpec`` may leave out."""


@dataclass(frozen=True, slots=True)
class CompilerSpec:
    """Spec of functions that compile a delegate's partitions ahead of time and load them.

    ``delegraph compile`` lets the delegate, or the class of ``load_claims``, claim nodes. Then it
    calls ``compile_partition`` for each partition, and stores the result, the blob, in the model
    file. When the file runs, ``load_compiled`` makes a kernel from the blob. Both functions import
    heavy modules only when they are called.

    Attributes:
        name: of the delegate, which the same plugin offers; it is a ``SimpleDelegateInterface``.
        compile_partition: function from a ``PartitionModel`` and the delegate's options (None if it
            has none) to the blob. It raises ``PartitionRejected`` for a partition that is not to be
            compiled.
        load_compiled: function from the blob, the ``DelegateContext`` and the ``DelegateParams`` of
            its node to a kernel, whose ``init`` is not called. ``params.input_tensors`` are what
            ``PartitionModel.inputs`` were, in that order, then the variables that the partition
            uses; ``params.output_tensors`` what its ``outputs`` were. The node that ``prepare`` and
            ``eval`` get has the same. Shapes are those that were compiled.
        version: function that returns the version of the blobs; blobs of other versions are not
            loaded. None means the version of the plugin's distribution.
        load_claims: function like ``DelegateSpec.load`` for the class that claims nodes when a
            model is compiled; needed if the delegate itself only runs compiled partitions.

    Raises:
        ArgumentError: a field that cannot be used.
    """

    name: str
    compile_partition: CompilePartition
    load_compiled: LoadCompiled
    version: Callable[[], str] | None = None
    load_claims: Callable[[], DelegateFactory] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(DELEGATE_NAME, self.name):
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
    if isinstance(spec.load, type):
        name = spec.load.__name__
        raise ArgumentError(
            f"{what}: load is the class {name}, expected a function that imports and returns it, "
            "without parentheses after its name"
        )


def _is_dataclass_type(value: object) -> bool:
    if not isinstance(value, type):
        return False  # fields of a class are not asked for: a lazy one would make them
    return any("__dataclass_fields__" in vars(each) for each in value.__mro__)
