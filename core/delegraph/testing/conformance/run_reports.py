"""Progress reports of the kit, and memory of models that have ended a process.

A check that crashes or hangs can say nothing any more. So each model is told of before a delegate
gets it: ``check_runner.py``, which runs checks in another process, if it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from delegraph.testing.operator_case import OperatorCase

Judge = Callable[[Any, OperatorCase], object]
"""Returns whether a model comes out wrong for a ``Subject``, or what is wrong with it."""


@dataclass(frozen=True)
class CheckBegins:
    """Report that a check begins.

    Attributes:
        note: what the scorecard has of it, as far as it is known.
    """

    note: Mapping[str, Any]


@dataclass(frozen=True)
class PhaseBegins:
    """Report that a phase with a delegate begins, before any check.

    Attributes:
        delegate: as it was asked for; empty for one that is not installed.
        phase: in words: ``it was loaded``.
        imports: whether modules are imported, which may take long.
    """

    delegate: str
    phase: str
    imports: bool = False


@dataclass(frozen=True)
class TimeIsLimited:
    """The test may take some time, by pytest's own limit.

    Attributes:
        seconds: from now on, for all of it; None for no limit.
    """

    seconds: float | None


@dataclass(frozen=True)
class ModelBegins:
    """Report that a delegate gets a model.

    Attributes:
        case: the model, and what it is fed.
        key: what later processes shall know it by, if it ends this one; empty for nothing.
    """

    case: OperatorCase
    key: str


@dataclass(frozen=True)
class Suspect:
    """Report of a reduced failing model, for a test in a separate process.

    Attributes:
        delegate: name of the one that computes it.
        judge: ``module:function`` that says whether it comes out wrong, a :data:`Judge`.
        case: the model, and what it is fed.
        original: as it was before.
    """

    delegate: str
    judge: str
    case: OperatorCase
    original: OperatorCase


@dataclass(frozen=True)
class Working:
    """Report that the kit itself is computing the right results."""


Sign = CheckBegins | PhaseBegins | TimeIsLimited | ModelBegins | Suspect | Working


@dataclass
class Witness:
    """Receiver of the reports, and the known deaths of processes.

    Attributes:
        tell: is told of each check and each model.
        deaths: how models have ended processes before, by their keys.
        key: of the model that is being tried, where it is to be remembered.
        case: the model that a delegate got last; None before.
    """

    tell: Callable[[Sign], object] = lambda sign: None
    deaths: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    case: OperatorCase | None = None


WITNESS = Witness()
"""That of this process; its attributes are set by who runs the checks."""


def check_begins(note: Mapping[str, Any]) -> None:
    """Report that a check begins."""
    WITNESS.case = None
    WITNESS.tell(CheckBegins(note))


def phase_begins(delegate: str, phase: str, *, imports: bool = False) -> None:
    """Report that a phase begins; the arguments are those of :class:`PhaseBegins`."""
    WITNESS.tell(PhaseBegins(delegate, phase, imports))


def model_begins(case: OperatorCase) -> None:
    """Report a model before a delegate gets it."""
    WITNESS.case = case
    WITNESS.tell(ModelBegins(case, WITNESS.key))


def suspect(delegate: str, judge: Judge, case: OperatorCase, original: OperatorCase) -> None:
    """Report a reduced failing model, with the function that judges it.

    The other arguments are those of :class:`Suspect`.
    """
    name = f"{judge.__module__}:{judge.__qualname__}"
    WITNESS.tell(Suspect(delegate, name, case, original))


def working() -> None:
    """Report that the kit is still working."""
    WITNESS.tell(Working())


@contextmanager
def remembered(delegate: str, what: str, case: OperatorCase) -> Iterator[str]:
    """Context for risky work on a model: after a crash the next process skips the model.

    Args:
        delegate: name of the one that gets it.
        what: what is done with it.
        case: the model, and what it is fed.

    Yields:
        How it ended a process before; empty if it did not.
    """
    key = _key(delegate, what, case)
    before, WITNESS.key = WITNESS.key, key
    try:
        yield WITNESS.deaths.get(key, "")
    finally:
        WITNESS.key = before


def _key(delegate: str, what: str, case: OperatorCase) -> str:
    found = blake2b(f"{delegate}\n{what}\n".encode(), digest_size=16)
    found.update(case.model())
    for array in (array for step in case.steps for array in step):
        content = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
        found.update(f"{array.shape}{array.dtype}".encode() + content)
    return found.hexdigest()
