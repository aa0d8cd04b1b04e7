"""Reports of a run of the kit: the current check and model, and earlier crashes.

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
    """Sign that a check begins.

    Attributes:
        note: what the scorecard has of it, as far as it is known.
    """

    note: Mapping[str, Any]


@dataclass(frozen=True)
class PhaseBegins:
    """Sign that a phase begins: work with a delegate before any check.

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
    """Sign that the test has a time limit, set by pytest.

    Attributes:
        seconds: from now on, for all of it; None for no limit.
    """

    seconds: float | None


@dataclass(frozen=True)
class ModelBegins:
    """Sign that a delegate gets a model.

    Attributes:
        case: the model, and what it is fed.
        key: what later processes shall know it by, if it ends this one; empty for nothing.
    """

    case: OperatorCase
    key: str


@dataclass(frozen=True)
class Suspect:
    """Sign that a failing model was made smaller; another process may confirm the failure.

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
    """Heartbeat: the kit is busy computing the expected results."""


Sign = CheckBegins | PhaseBegins | TimeIsLimited | ModelBegins | Suspect | Working


@dataclass
class Witness:
    """Receiver of signs, with the known deaths.

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
    """Send the sign that a check begins."""
    WITNESS.case = None
    WITNESS.tell(CheckBegins(note))


def phase_begins(delegate: str, phase: str, *, imports: bool = False) -> None:
    """Send the sign that a phase begins; the arguments are those of :class:`PhaseBegins`."""
    WITNESS.tell(PhaseBegins(delegate, phase, imports))


def model_begins(case: OperatorCase) -> None:
    """Send the sign that a delegate is about to get a model."""
    WITNESS.case = case
    WITNESS.tell(ModelBegins(case, WITNESS.key))


def suspect(delegate: str, judge: Judge, case: OperatorCase, original: OperatorCase) -> None:
    """Send the sign of a smaller failing model, with the function that judges it.

    The other arguments are those of :class:`Suspect`.
    """
    name = f"{judge.__module__}:{judge.__qualname__}"
    WITNESS.tell(Suspect(delegate, name, case, original))


def working() -> None:
    """Send the sign that the kit is still working."""
    WITNESS.tell(Working())


@contextmanager
def remembered(delegate: str, what: str, case: OperatorCase) -> Iterator[str]:
    """Remember the model while the block runs, so that later processes know if it ended one.

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
