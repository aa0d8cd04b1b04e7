"""All exceptions that Delegraph raises on purpose.

DelegraphError
  + ModelError                the model cannot be used
    - MalformedModelError     (ValueError) while loading: the bytes are not a sound TFLite file
    - SectionError            (ValueError) a bundle without the requested model, or with several
    - ExternalBufferError     (ValueError) constants in another file that cannot be used
    - UnsupportedModelError   (ValueError) a sound file with an operator version we do not know
    - NodeError               (RuntimeError) one node failed to prepare or to run
      - UnresolvedOpError     a custom operator that neither a kernel nor a delegate provides
      - DelegateNodeError     a delegate's node failed; a DelegateError as well
  + OperatorError             (RuntimeError) raised by a kernel; the runtime makes a NodeError of it
  + StateError                (RuntimeError) a call at the wrong time, e.g. invoke before allocate
  + CallCancelledError        (RuntimeError) the call was running when ``cancel()`` was called
    - TimeLimitError          (TimeoutError) it took more time than ``Limits.time`` grants
  + ArenaTooSmallError        (MemoryError) a micro arena without room for what the model needs
  + MicroRuntimeError         (RuntimeError) a model that ``micro.runtime`` cannot prepare or run
  + TensorIndexError          (IndexError) ``micro.runtime`` is asked for a tensor that is not there
  + ResizeError               (RuntimeError) a tensor that cannot have the requested shape
  + ArgumentError             (ValueError) a wrong argument: tensor index, dtype, shape, option
    - ArgumentTypeError       (TypeError) an argument of another type: a name where an index belongs
    - ArgumentAttributeError  (AttributeError) an object that lacks what the call reads of it
    - ConfigurationError      a mistake in the user's configuration file
  + PartitionError            (ValueError) a graph that cannot be partitioned
  + CompilationError          (ValueError) a model that ``delegraph.aot`` cannot compile
  + DelegateError             (RuntimeError) a delegate failed; the message names it and the phase
    - DelegateLoadError       (ValueError) a compiled delegate that cannot be loaded
      + DelegateLibraryError  (OSError) its library is not there, or the system cannot load it
      + NotADelegateError     (AttributeError) a library without the functions of a delegate
    - DelegateProcessError    the process in which it runs was lost, or took too long
    - PartitionRejected       raised by a kernel to reject its partition
    - PlacementError          nodes are placed against the rules or ``require``
  + CompiledModelError        (RuntimeError) a call of ``delegraph.compiled_model`` that cannot be
  + PredictionError           (RuntimeError) the model failed on a row of a batch
  + UnsupportedRuntimeError   (RuntimeError) an official runtime that cannot take our delegates
  + PluginError               an installed plugin is at fault, or a requested one is missing
    - PluginLoadError         (RuntimeError) it is installed and cannot be used
    - UnknownDelegateError    (ValueError) no installed plugin provides that name
    - AmbiguousDelegateError  (ValueError) two distributions provide that name
    - PluginOptionError       (ValueError) an option that the delegate does not have, or a bad value

DefaultDelegateWarning        (UserWarning) a delegate applied by default failed; the model runs on

The built-in bases are the types that the official interpreter raises for the same mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal


class DelegraphError(Exception):
    """Base class of all exceptions that Delegraph raises on purpose; they can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception.__reduce__ would call the class with the message only, which some classes
        # reject.
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[DelegraphError], args: tuple[Any, ...]) -> DelegraphError:
    builtin: type = kind
    while builtin.__module__ != "builtins":  # the builtin base has the memory layout
        builtin = builtin.__base__  # type: ignore[assignment]  # object is a builtin
    error: DelegraphError = builtin.__new__(kind, *args)
    error.args = args
    return error


class ModelError(DelegraphError):
    """The model cannot be used: damaged, of an unknown version, or with a node that cannot run."""


class MalformedModelError(ModelError, ValueError):
    """The bytes are not a valid TFLite flatbuffer; the message names the byte or the table."""


class SectionError(ModelError, ValueError):
    """A bundle lacks the requested section, or has several models; the message lists them."""


class ExternalBufferError(ModelError, ValueError):
    """A file with external constants is missing, too short or packed in an unknown way."""


class UnsupportedModelError(ModelError, ValueError):
    """A valid model that this version cannot run: it lacks an operator or operator version."""


class NodeError(ModelError, RuntimeError):
    """A node failed to prepare or to invoke.

    Attributes:
        node_index: index of the node in its subgraph's node list.
        op: operator name, ``CONV_2D``, the custom name, or the delegate's name.
    """

    def __init__(self, message: str, *, node_index: int, op: str) -> None:
        super().__init__(message)
        self.node_index = node_index
        self.op = op


class UnresolvedOpError(NodeError):
    """A model has custom operators that neither a kernel nor a delegate computes."""


class OperatorError(DelegraphError, RuntimeError):
    """A kernel rejects its node or its data; the runtime reports it as a :class:`NodeError`."""


class StateError(DelegraphError, RuntimeError):
    """A call that is not possible now; the message says which call must come first."""


class CallCancelledError(DelegraphError, RuntimeError):
    """The running call was stopped by a request; the next call is not affected."""


class TimeLimitError(CallCancelledError, TimeoutError):
    """A call took more time than ``Limits.time`` allows, and was stopped."""


class ArenaTooSmallError(DelegraphError, MemoryError):
    """An arena of fixed size is smaller than a model needs.

    Attributes:
        missing: number of bytes that were missing for the failed request; later requests are not
            counted.
    """

    def __init__(self, message: str, *, missing: int) -> None:
        super().__init__(message)
        self.missing = missing


class MicroRuntimeError(DelegraphError, RuntimeError):
    """:mod:`delegraph.micro.runtime` cannot prepare or run a model; the message says why."""


class TensorIndexError(DelegraphError, IndexError):
    """A call of :mod:`delegraph.micro.runtime` gives a tensor index that the model lacks."""


class ResizeError(DelegraphError, RuntimeError):
    """A tensor cannot be resized at all, or not to the requested shape."""


class ArgumentError(DelegraphError, ValueError):
    """An argument has the wrong index, type, shape or value."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type for a call, or the object can never be copied."""


class ArgumentAttributeError(ArgumentError, AttributeError):
    """An argument lacks an attribute that the call reads, or the ``CompiledModel`` is closed.

    An example is a list in place of an array, which has no ``shape``.
    """


class ConfigurationError(ArgumentError):
    """The user's configuration file is wrong; the message names file, key and valid values."""


class PredictionError(DelegraphError, RuntimeError):
    """The model failed on a row of a batch.

    Attributes:
        row: index of the row in the batch; None where it is unknown.
    """

    def __init__(self, message: str, *, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class CompiledModelError(DelegraphError, RuntimeError):
    """A call of :mod:`delegraph.compiled_model` that LiteRT's ``CompiledModel`` rejects, too.

    Attributes:
        code: status code of LiteRT, also part of the message; None if LiteRT gives no code.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class PartitionError(DelegraphError, ValueError):
    """The graph cannot be partitioned: wrong node index or control edge, or a cycle."""


class CompilationError(DelegraphError, ValueError):
    """A delegate could not compile a model for ``ai_edge_litert.aot``."""


DelegatePhase = Literal["initialize", "claim", "init", "prepare", "eval", "copy", "free"]
"""Phase in which a delegate failed; ``claim`` means that nodes were chosen or replaced."""


class DelegateError(DelegraphError, RuntimeError):
    """A delegate failed; if it failed while it was applied, the graph is unchanged.

    Attributes:
        delegate: name of the delegate; empty when it is not known.
        phase: phase in which the delegate failed; None if its own code did not fail.
        node_index: index of the node at which the delegate failed: the node whose support was
            checked, the first node of a partition whose kernel could not be created, or the
            delegate node. None if there is no node.
    """

    def __init__(
        self,
        message: str,
        *,
        delegate: str = "",
        phase: DelegatePhase | None = None,
        node_index: int | None = None,
    ) -> None:
        super().__init__(message)
        self.delegate = delegate
        self.phase = phase
        self.node_index = node_index


class DelegateProcessError(DelegateError):
    """The process of an isolated delegate has ended, was killed, or exceeded its time limit.

    The interpreter's own process is unharmed. The next use of the delegate starts its process
    again, at most three times.
    """


class PartitionRejected(DelegateError):
    """Raised by a kernel's ``init`` to reject its partition, whose nodes then run elsewhere.

    The placement shows the reason, as for a rejected node. A kernel's ``prepare`` raises this error
    for shapes that the kernel does not support. Then Delegraph's kernels compute the partition, and
    an incident in the placement shows the reason.

    Attributes:
        constraint: short stable id of the reason, as in ``Rejection``.
    """

    def __init__(self, message: str, *, constraint: str = "partition") -> None:
        super().__init__(message, phase="init")
        self.constraint = constraint


class DelegateNodeError(NodeError, DelegateError):
    """A delegate's node failed to prepare, to invoke, or to copy its buffer.

    Delegates stay applied; ``Interpreter.remove_all_delegates`` removes them, and with
    ``on_failure="fallback"``, Delegraph's kernels compute the nodes instead.
    """

    node_index: int

    def __init__(
        self, message: str, *, node_index: int, op: str, delegate: str, phase: DelegatePhase
    ) -> None:
        DelegateError.__init__(self, message, delegate=delegate, phase=phase, node_index=node_index)
        self.op = op


class DefaultDelegateWarning(UserWarning):
    """A delegate that is applied by default has failed; Delegraph's kernels compute its nodes.

    An interpreter gives this warning once and stops using the delegate. The message names the
    delegate, the phase, the nodes and the cause, and says how to report the failure.
    """


class DelegateLoadError(DelegateError, ValueError):
    """A compiled delegate is missing, cannot be loaded, or its library fails to create it."""


class DelegateLibraryError(DelegateLoadError, OSError):
    """The library file of a compiled delegate is missing, or the system cannot load it."""


class NotADelegateError(DelegateLoadError, AttributeError):
    """A library lacks the functions that an external delegate must have."""


class PlacementError(DelegateError):
    """The placement violates rules or ``require="full"``; the message lists the nodes."""


class UnsupportedRuntimeError(DelegraphError, RuntimeError):
    """An official runtime is missing or does not support Python delegates; the message says why."""


class PluginError(DelegraphError):
    """An installed plugin is at fault, or a requested plugin or delegate is not installed."""


class PluginLoadError(PluginError, RuntimeError):
    """A plugin is installed but broken, disabled or of another API version."""


class UnknownDelegateError(PluginError, ValueError):
    """No installed plugin provides the requested delegate."""


class AmbiguousDelegateError(PluginError, ValueError):
    """Several distributions provide a delegate of the same name; write ``dist:name`` to choose."""


class PluginOptionError(PluginError, ValueError):
    """The delegate does not have the option, or the option cannot have the value."""


def in_words(error: BaseException) -> str:
    """Text of *error*, preceded by its type unless it is a :class:`DelegraphError`.

    >>> in_words(KeyError("x"))
    "KeyError: 'x'"
    """
    return str(error) if isinstance(error, DelegraphError) else f"{type(error).__name__}: {error}"


def blame(error: BaseException, delegate: str, phase: str) -> None:
    """Record in *error* which delegate raised it, for a host that raises *error* unchanged."""
    with suppress(AttributeError):  # a class may forbid new attributes
        error.delegraph_origin = f"delegate {delegate!r} failed in {phase}"  # type: ignore[attr-defined]


def blamed(error: BaseException) -> str:
    """Delegate and phase that :func:`blame` recorded, in words; empty for other errors."""
    return str(getattr(error, "delegraph_origin", ""))


def printable(text: str) -> str:
    r"""Return *text* on one line, without characters that would control a terminal.

    Text from a file must be converted before it is printed, since names may contain any character.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def close_names(name: str, known: Iterable[str], least: float = 0.6) -> list[str]:
    """Return at most three known names like *name*, the closest first.

    Case does not count, nor do ``_``, ``-`` and ``.`` between words.

    >>> close_names("conv2d", ["ADD", "CONV_2D"])
    ['CONV_2D']

    Args:
        name: the unknown name.
        known: the known names.
        least: smallest ratio of equal characters, from 0 to 1.
    """
    import difflib  # only errors need it

    def plain(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    matcher = difflib.SequenceMatcher(b=plain(name))
    ratios = {}
    for each in known:
        matcher.set_seq1(plain(each))
        ratios[each] = matcher.ratio()
    close = (each for each in ratios if ratios[each] >= least)
    return sorted(close, key=lambda each: -ratios[each])[:3]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggestion of a similar known name for an unknown *name*; empty if none is similar.

    A name of twice the length is none.

    >>> did_you_mean("imgae", ["image", "mask"])
    " (did you mean 'image'?)"
    """
    close = close_names(
        name, (each for each in known if len(name) <= 2 * len(each) <= 4 * len(name))
    )
    return f" (did you mean {close[0]!r}?)" if close else ""
