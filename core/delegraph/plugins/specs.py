"""Specs of a plugin's delegates, operators, commands and compilers, which load on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
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
"""Pattern of a delegate's name; an address is unambiguous, as names have no ``:=,``."""

COMMAND_NAME = r"[a-z][a-z0-9_-]*"

Isolate = Literal["process", "none"]
"""Place where a delegate runs: a separate process, or the process of the interpreter."""

DELEGATE_WORDS = ("all", "default", "none")
"""Words that stand for delegates where a name is expected."""

RESERVED_NAMES = frozenset({*DELEGATE_WORDS, "help"})
"""Words for ``--delegate`` that are no names of delegates."""


@dataclass(frozen=True, slots=True)
class DelegateSpec:
    """A delegate that users request by name.

    Attributes:
        name: name that users type: a letter, then letters, digits, ``_``, ``-`` or ``.``.
        summary: one line for ``delegraph plugins list``.
        load: function that imports the heavy part and returns the delegate's class, or another
            callable that makes the delegate. The callable gets an instance of ``options``, or
            nothing if there are none. ``load`` is called each time a user asks for the delegate.
        options: a dataclass whose fields are the options; None for a delegate without options.
            Fields may be bool, int, float, str, an enum, a ``Literal``, ``tuple[T, ...]`` of these,
            or one of them ``| None``. ``field(metadata={"help": "..."})`` documents a field.
        rank: sort key for delegates that are requested without an order (a set, a mapping,
            ``--delegate all``); the lowest is applied first, ties by name. A delegate that is best
            at a few operators should have a rank below 0. A delegate for all other operators should
            have a rank above 0.
        custom_ops: names or patterns (``"Flex*"``) of custom operators that the delegate computes.
            If a model has such an operator without a kernel, the delegate is applied without a
            request, before the requested delegates.
        isolate: ``"process"`` runs the delegate in a separate process, unless users choose
            otherwise. It is meant for engines that may crash or hang.
        timeout: seconds that its kernels may take for an invoke in a separate process, unless users
            choose another limit; None means no limit.
        default_rank: sort key among delegates that may be the default delegate, which computes the
            nodes that all others reject. The ready delegate with the lowest rank is applied. The
            rank counts only in Delegraph's own distributions; users can make other delegates
            defaults by configuration or environment. None means that the delegate cannot be the
            default.
        is_ready: quick function that tells whether the delegate can run here without compiling for
            seconds; called for default delegates. None means that the delegate can always run.
        load_compiling: function like ``load`` for a delegate that stores content in model files.
            ``delegraph compile`` applies and prepares the returned delegate, which writes to
            ``DelegateContext.model_entries``. The delegate need not be able to run. None means that
            the delegate stores no such content.
        advice: quick function for ``delegraph doctor`` that returns pairs: a text about something
            that slows the delegate down on this machine, and a command that helps. The command is
            empty if the text is no problem but a fact, such as the instructions in use. None means
            no advice.
        cache_versions: quick function for ``delegraph cache`` that returns a mapping from the names
            of the delegate's caches to the versions in use: entries of other versions are stale.
            None means that no entry is known to be stale.

    Raises:
        ArgumentError: an attribute has a value that cannot be used.
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
    cache_versions: Callable[[], Mapping[str, Collection[str]]] | None = None

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
        for field in ("is_ready", "load_compiling", "advice", "cache_versions"):
            value = getattr(self, field)
            if value is not None and not callable(value):
                raise ArgumentError(
                    f"DelegateSpec {self.name!r}: {field} is {value!r}, expected a function"
                )


@dataclass(frozen=True, slots=True)
class CustomOpSpec:
    """A custom operator that runs as a kernel, without a delegate.

    Attributes:
        name: the custom code in the model file.
        summary: one line for ``delegraph plugins info``.
        load: function that imports and returns the operator: a result of ``custom_op``, or a
            ``Registration``.
        describe: function that returns a mapping from titles to texts for an operator's custom
            options; ``delegraph inspect`` shows it. None means no description.

    Raises:
        ArgumentError: an attribute has a value that cannot be used.
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
        name: name that users type: a lower-case letter, then such letters, digits, ``_`` and ``-``.
        summary: one line for ``delegraph --help``.
        load: function that imports and returns the command, a ``click.Command``. The command's
            result is the exit code; None means 0. Errors of :mod:`delegraph.errors` are shown on
            one line.

    Raises:
        ArgumentError: an attribute has a value that cannot be used.
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
    file. When the file is loaded, ``load_compiled`` makes a kernel from the blob. Both functions
    import heavy modules only when they are called.

    Attributes:
        name: name of the delegate, which the same plugin must offer; it is a
            ``SimpleDelegateInterface``.
        compile_partition: function that is called with a ``PartitionModel`` and the delegate's
            options (None if it has none) and returns the blob. It raises ``PartitionRejected`` for
            a partition that should not be compiled.
        load_compiled: function that is called with the blob, the ``DelegateContext`` and the node's
            ``DelegateParams`` and returns a kernel, whose ``init`` is not called.
            ``params.input_tensors`` correspond to ``PartitionModel.inputs``, in that order,
            followed by the variables that the partition uses. ``params.output_tensors`` correspond
            to ``PartitionModel.outputs``. The node passed to ``prepare`` and ``eval`` has the same
            tensors. Shapes are the compiled ones.
        version: function that returns the version of the blobs; blobs of other versions are not
            loaded. None means the version of the plugin's distribution.
        load_claims: function like ``DelegateSpec.load`` that returns the class that claims nodes
            while a model is compiled. It is needed if the delegate itself only runs compiled
            partitions.

    Raises:
        ArgumentError: an attribute has a value that cannot be used.
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
        return False  # fields on the class are not read: a lazy field would be computed
    return any("__dataclass_fields__" in vars(each) for each in value.__mro__)
