"""Judges how a case ended: by its errors, error texts and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.capabilities import Capabilities
from delegraph.errors import DelegraphError, TimeLimitError
from delegraph.schema.enums import TensorType
from delegraph.testing.conformance.differences import array_difference
from delegraph.tools.user_code import Place, is_authors


@dataclass(frozen=True)
class Fault:
    """An outcome of a case that is never allowed.

    Attributes:
        kind: ``crash``, ``hang``, ``memory``, ``exception``, ``bare text``, ``differs``,
            ``refuses alone`` or ``computes alone``.
        detail: description of the fault.
        where: innermost position in the source code, or the operator. Faults with equal positions
            are the same.
    """

    kind: str
    detail: str
    where: str = ""


OFFICIAL = "the official interpreter alone"
OURS = "ours"
"""Name of the phase in which Delegraph runs a case.

The phase tells what a process was doing when it died.
"""


class Ending(NamedTuple):
    """Result of trying a case.

    Attributes:
        outcome: one of :data:`OUTCOMES`.
        fault: the fault; None if there is none.
        delegated: whether a delegate computed a node of the model.
        group: group in which the case is counted; ``""`` if there is only one.
        taken: operator of each node that the delegate took.
    """

    outcome: str
    fault: Fault | None = None
    delegated: bool = False
    group: str = ""
    taken: Sequence[str] = ()


OUTCOMES = ("refused", "computed", "equal", "not taken", "not judged", "fault")
"""Outcomes of cases.

``equal`` means that a delegate and the core gave the same results; ``not taken``, that they did and
the delegate computed no node. ``not judged`` means that LiteRT without a delegate cannot run the
model.
"""

Announce = Callable[[str], None]


class Run(NamedTuple):
    """Results of a case on one interpreter.

    Attributes:
        outputs: outputs of each invoke before an error.
        types: types of the outputs.
        error: the error that ended the run; None if there was none.
        delegated: whether a delegate computed a node of the model.
        incidents: descriptions of delegate failures after which the runtime went on.
        taken: operator of each node that the delegate took, up to the error.
    """

    outputs: list[list[NDArray[Any]]]
    types: list[TensorType]
    error: BaseException | None
    delegated: bool = False
    incidents: tuple[str, ...] = ()
    taken: Sequence[str] = ()


_BUILTIN = (
    "ArithmeticError AssertionError AttributeError BufferError EOFError FloatingPointError "
    "IndexError KeyError LookupError MemoryError NameError NotImplementedError OSError "
    "OverflowError RecursionError RuntimeError StopIteration SystemError TypeError "
    "UnboundLocalError UnicodeDecodeError ValueError ZeroDivisionError struct.error"
)

BARE = re.compile(
    r"\b(" + "|".join(map(re.escape, _BUILTIN.split())) + r"): |"
    r"operands could not be broadcast|could not broadcast input|cannot reshape array|"
    r"out of bounds for (axis|array)|is not aligned|not aligned: |all the input array|"
    r"object has no attribute|unsupported operand|invalid literal for|"
    r"values to unpack|'NoneType'|maximum recursion depth|negative dimensions are not allowed|"
    r"axes don't match|repeated axis|cannot be interpreted as an integer|zero-size array|"
    r"cannot select an axis|list index out of range|tuple index out of range|ufunc '|"
    r"Cannot cast|array is too big|Maximum allowed|Unable to allocate|"
    r"setting an array element|is not iterable|is not subscriptable|unhashable|shape mismatch|"
    r"must be non-negative|cannot convert float|too large to convert|only integer scalar"
)
"""Pattern of texts from Python and NumPy that tell a model's user nothing."""


def error_fault(error: BaseException) -> Fault | None:
    """Return the fault of an error, in its class or its text; None for a proper error."""
    where = innermost(error)
    text = str(error)
    if isinstance(error, MemoryError) and not isinstance(error, DelegraphError):
        return Fault("memory", f"MemoryError: {cut(text)}", where)
    if not isinstance(error, DelegraphError):
        return Fault("exception", f"{type(error).__name__}: {cut(text)}", where)
    if not text.strip():
        return Fault("bare text", f"{type(error).__name__} without a text", where)
    if BARE.search(text):
        return Fault("bare text", cut(text), where)
    return None


def cut(text: str, most: int = 400) -> str:
    """Return *text*, shortened to at most *most* characters; dots stand for the rest."""
    return text if len(text) <= most else f"{text[:most]} ..."


def innermost(error: BaseException) -> str:
    """Return ``folder/module.function`` where an error, or its cause, was raised.

    In the code of a delegate's author, that is ``file.py:42 in function``.
    """
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    codes = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    for code, line in reversed(codes):
        path = Path(code.co_filename)
        if "/delegraph" in code.co_filename:
            return f"{path.parent.name}/{path.stem}.{code.co_name}"
        if is_authors(code.co_filename):
            return str(Place(code.co_filename, line, code.co_name))
    return type(error).__name__


def difference_fault(
    core: Run, mine: Run, capabilities: Capabilities, only_shapes: bool, nudged: Sequence[Run] = ()
) -> Fault | None:
    """Return a fault if a delegate's results differ from the core's beyond the tolerance.

    Both may reject the model, at any time and with any text; only earlier outputs are compared.

    Args:
        core: the right results.
        mine: the results of the delegate.
        capabilities: the delegate's claims and tolerances.
        only_shapes: whether values are random, so that only shapes are compared.
        nudged: the core's results for inputs that are changed by roundings. A result that is as far
            from *core* as these, times :data:`SLACK`, may be right: sums that cancel depend on the
            order of additions.
    """
    if core.error is None and mine.error is not None:
        return Fault("refuses alone", cut(str(mine.error)), innermost(mine.error))
    if core.error is not None and mine.error is None:
        if isinstance(core.error, TimeLimitError) or "Limits(memory=" in str(core.error):
            return None  # a delegate may need less: it keeps no tensors between its nodes
        return Fault("computes alone", f"the core: {cut(str(core.error))}", innermost(core.error))
    for step, (right, got) in enumerate(zip(core.outputs, mine.outputs, strict=False)):
        for i, type_ in enumerate(core.types):
            others = [run.outputs[step][i] for run in nudged if step < len(run.outputs)]
            mine_or_right = _without_doubt(got[i], right[i], others)
            found = _array_fault(mine_or_right, right[i], type_, capabilities, only_shapes)
            if found:
                return Fault("differs", f"invoke {step}, output {i}: {found}")
    return None


SLACK = 4.0
"""Factor for the differences of nudged runs, because a few runs do not show the largest
differences."""


def _without_doubt(got: Any, right: Any, others: Sequence[Any]) -> Any:
    """Return *got* with small differences from *right* removed, for a comparison afterwards.

    A difference is small if *others*, results for inputs changed by rounding errors, differ from
    *right* about as much: by the factor :data:`SLACK`.
    """
    alike = [x for x in others if x.shape == right.shape == got.shape and x.dtype.kind == "f"]
    if not alike:
        return got
    with np.errstate(all="ignore"):
        exact = right.astype(np.float64)
        doubt = SLACK * np.max([np.abs(x - exact) for x in alike], axis=0)
        return np.where(np.abs(got - exact) <= doubt, right, got).astype(got.dtype)


def _array_fault(
    got: Any, right: Any, type_: TensorType, capabilities: Capabilities, only_shapes: bool
) -> str:
    if got.dtype != right.dtype:
        return f"dtype {got.dtype}, expected {right.dtype}"
    with np.errstate(all="ignore"):
        tolerance = None if only_shapes else capabilities.tolerance_of(type_)
        if right.dtype.kind in "fc" and got.shape == right.shape:
            got = np.where(_is_extreme(right) & _is_extreme(got), right, got)
        return array_difference(got, right, type_, tolerance)


LARGE = 1e30
"""Number above which the order of additions decides whether a sum overflows."""


def _is_extreme(x: Any) -> Any:
    return ~(np.abs(x) < LARGE)  # also true for NaN
