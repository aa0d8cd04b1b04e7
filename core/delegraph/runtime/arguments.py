"""Checks of an interpreter's arguments, with the official error messages where they exist."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Sequence
from enum import Enum, unique
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from delegraph.errors import ArgumentError, ArgumentTypeError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from delegraph.graph.model import Model
    from delegraph.operators.numerics import Numerics
    from delegraph.operators.tensor import Tensor

_INT_MAX = 2**31 - 1

_Subgraph = TypeVar("_Subgraph")
_Method = TypeVar("_Method", bound=Callable[..., Any])


AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""Types of a path that the system's own functions accept."""


def model_of(
    path: AnyPath | None,
    content: bytes | None,
    table_limit: int | None = None,
    memory_limit: int | None = None,
    weights_dir: AnyPath | None = None,
) -> Model:
    """Load the model from file *path* or bytes *content*; exactly one of the two must be given.

    *weights_dir* is a folder that may hold external buffers, besides the folder of *path*. The
    limits are those of :func:`~delegraph.graph.loader.load_model`.

    Raises:
        ArgumentError: both or neither are given, *path* has the bytes of a model, the file does not
            exist, or a limit is wrong.
        ArgumentTypeError: *content* is a path.
        MalformedModelError: a damaged model.
        SectionError: a bundle does not have the section in *path*, or has several models.
        ExternalBufferError: constants in another file cannot be used.
    """
    check_count("table_limit", table_limit)
    check_count("memory_limit", memory_limit)
    if isinstance(path, bytes) and b"\0" in path:
        raise ArgumentError(
            f"model_path is {len(path):,} bytes with zeros, which no path has; a model's bytes are "
            "given as model_content"
        )
    if isinstance(content, str | os.PathLike):
        raise ArgumentTypeError(
            f"model_content is a bytes-like object, not {content!r}; a file is given as model_path"
        )
    if path and content:
        raise ArgumentError("Can't both provide `model_path` and `model_content`")
    from delegraph.graph.loader import load_model, parse_model  # lazy: a kept start reads no model

    if path:
        folder = None if weights_dir is None else os.fsdecode(weights_dir)
        return load_model(os.fsdecode(path), table_limit, memory_limit, folder)
    if content:
        return parse_model(content, table_limit, memory_limit)
    raise ArgumentError("`model_path` or `model_content` must be specified.")


def folder_of(path: AnyPath | None) -> Path | None:
    """Return the absolute path of a folder, so that it stays valid if the working folder changes.

    The result is None if *path* is None.

    Raises:
        ArgumentTypeError: *path* is no path.
    """
    if path is None:
        return None
    if not isinstance(path, str | bytes | os.PathLike):
        raise ArgumentTypeError(f"cache_dir is the path of a folder, not {path!r}")
    from pathlib import Path  # lazy import: only a folder that users choose needs it

    return Path(os.fsdecode(path)).absolute()


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise an error if *value* of the argument called *name* is not one of *choices*.

    Raises:
        ArgumentError: *value* is not a choice.
    """
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ArgumentError(f"{name} is {value!r}, expected one of: {known}")


def checked_num_threads(num_threads: int | None) -> int | None:
    """Return a valid number of threads; None remains None.

    At most eight threads for each usable processor are allowed. A larger number is reduced to
    this limit, with a warning.

    Raises:
        ArgumentError: the value is no int, or less than 1.
        ArgumentTypeError: more than a C ``int`` holds.
    """
    if num_threads is None:
        return None
    if not isinstance(num_threads, int):
        raise ArgumentError("type of num_threads should be int")
    if num_threads < 1:
        raise ArgumentError("num_threads should >= 1")
    if num_threads > _INT_MAX:
        raise ArgumentTypeError(f"num_threads should <= {_INT_MAX}")
    from delegraph.delegation.num_threads import limited_num_threads  # lazy: many leave it open

    return limited_num_threads(int(num_threads))


def checked_flag(name: str, value: object) -> bool:
    """Return *value* of the argument *name* as a bool; a type without a truth value is an error.

    Raises:
        ArgumentTypeError: text, a list, or another value that is true because it is not empty.
    """
    if value is not None and not hasattr(type(value), "__bool__"):
        raise ArgumentTypeError(f"{name} is True or False, not {value!r}")
    return bool(value)


def check_count(name: str, value: object, advice: str = "") -> None:
    """Raise an error unless *value* of the argument *name* is None or an int of at least 0.

    *advice* ends the error.

    Raises:
        ArgumentError: *value* is of another type, or negative.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ArgumentError(f"{name} is an int of at least 0, not {value!r}{advice}")


def check_seconds(name: str, seconds: float | None) -> None:
    """Raise an error unless *seconds*, the argument *name*, is None or a number greater than 0.

    Raises:
        ArgumentError: *seconds* is of another type, or not positive.
    """
    if seconds is None:
        return
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not (is_number and 0 < seconds < inf):
        raise ArgumentError(f"{name} is a positive number of seconds, not {seconds!r}")


def unexpected_keyword(function: Callable[..., Any], name: str) -> TypeError:
    """Python's error for the keyword *name*, which *function* lacks, with a similar one."""
    text = f"{function.__qualname__}() got an unexpected keyword argument {name!r}"
    return TypeError(f"{text}{did_you_mean(name, _keywords(function))}")


def suggesting_keywords(method: _Method) -> _Method:
    """Make the error for a keyword that *method* lacks suggest a similar one."""
    known = _keywords(method)

    @functools.wraps(method)
    def checked(*values: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in known:
                raise unexpected_keyword(method, name)
        return method(*values, **keywords)

    return cast(_Method, checked)


def _keywords(method: Callable[..., Any]) -> tuple[str, ...]:
    code = method.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


def as_index(what: str, index: object) -> int:
    """Return *index* as an int; every integer type is accepted. *what* names it in the error.

    Raises:
        ArgumentTypeError: *index* is no integer.
    """
    try:
        return operator.index(index)  # type: ignore[arg-type]  # which raises for the others
    except TypeError:
        raise ArgumentTypeError(f"{what} is an int, not {index!r}") from None


def require_c_int(what: str, value: int) -> None:
    """Raise an error if *value* does not fit a C ``int``; *what* names the value in the error.

    Raises:
        ArgumentTypeError: the value takes more than 32 bits.
    """
    if not -_INT_MAX - 1 <= value <= _INT_MAX:
        raise ArgumentTypeError(f"{what} is an int of 32 bits, not {value}")


def subgraph_at(subgraphs: Sequence[_Subgraph], index: int) -> _Subgraph:
    """Return the item of *subgraphs* with *index*; every integer type is accepted.

    Raises:
        ArgumentTypeError: *index* is no integer, or does not fit a C ``int``.
        ArgumentError: no subgraph has this index.
    """
    position = index if type(index) is int else as_index("a subgraph index", index)
    if not 0 <= position < len(subgraphs):
        require_c_int("a subgraph index", position)
        count = len(subgraphs)
        raise ArgumentError(
            f"subgraph_index is out of range: {position} for the model, which has {count} "
            f"subgraphs. Invalid subgraph index {position} exceeds max subgraph index {count}"
        )
    return subgraphs[position]


def tensor_at(tensors: Sequence[Tensor], index: int) -> Tensor:
    """Return the item of *tensors* with *index*; every integer type is accepted.

    Raises:
        ArgumentTypeError: *index* is no integer, or does not fit a C ``int``.
        ArgumentError: no tensor has this index.
    """
    position = index if type(index) is int else as_index("a tensor index", index)
    if not 0 <= position < len(tensors):
        require_c_int("a tensor index", position)
        raise ArgumentError(
            f"Invalid tensor index {position} exceeds max tensor index {len(tensors)}"
        )
    return tensors[position]


@unique
class OpResolverType(Enum):
    """Choice of the official kernels to reproduce, and whether default delegates may be applied.

    It decides which official kernels' rounding is reproduced. With the last two members, a model
    gets no delegates that no argument names.

    Source:
        OpResolverType, tflite/python/interpreter.py.
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def resolver_type(given: Enum) -> OpResolverType:
    """Return the ``OpResolverType`` for a member of this class or of the official class.

    Raises:
        ArgumentTypeError: *given* is neither.
    """
    is_resolver_type = isinstance(given, Enum) and type(given).__name__ == OpResolverType.__name__
    if is_resolver_type and given.name in OpResolverType.__members__:
        return OpResolverType[given.name]
    known = ", ".join(map(str, OpResolverType))
    raise ArgumentTypeError(
        f"Unrecognized passed in op resolver type: {given}; expected one of: {known}"
    )


def numerics_of(resolver: OpResolverType) -> Numerics:
    """Return the official kernels, builtin or reference, whose rounding *resolver* reproduces."""
    return "reference" if resolver == OpResolverType.BUILTIN_REF else "builtin"


def default_delegates_are_wanted(resolver: OpResolverType) -> bool:
    """Whether *resolver* allows delegates that no argument names."""
    return resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN)
