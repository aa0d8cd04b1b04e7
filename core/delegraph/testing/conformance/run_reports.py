"""Progress messages (signs) of a run of the kit, sent before each check and each model.

A check that crashes or hangs cannot report anything afterwards. So a sign is sent before a delegate
gets a model. ``check_runner.py``, which runs checks in another process, receives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from delegraph.testing.operator_case import OperatorCase

Judge = Callable[[Any, OperatorCase], object]
"""Function from a ``Subject`` and a case to a true value if the case has a wrong result.

The value may be text that describes the fault.
"""


@dataclass(frozen=True)
class CheckBegins:
    """Progress message: a check begins.

    Attributes:
        note: the check's entry for the scorecard, as far as known.
    """

    note: Mapping[str, Any]


@dataclass(frozen=True)
class PhaseBegins:
    """Progress message: a phase begins, in which a delegate works before any check.

    Attributes:
        delegate: name by which the delegate was requested; empty if it is not installed.
        phase: text that describes the phase, such as ``it was loaded``.
        imports: whether modules are imported, which may take long.
    """

    delegate: str
    phase: str
    imports: bool = False


@dataclass(frozen=True)
class TimeIsLimited:
    """Progress message: the test has a time limit, set by pytest.

    Attributes:
        seconds: seconds from now for the whole test; None means no limit.
    """

    seconds: float | None


@dataclass(frozen=True)
class ModelBegins:
    """Progress message: a delegate gets a model.

    Attributes:
        case: the model with its inputs.
        key: key of the model for later processes, if it kills this one; empty if not needed.
    """

    case: OperatorCase
    key: str


@dataclass(frozen=True)
class Suspect:
    """Progress message: a failing model was made smaller; a new process may confirm it.

    Attributes:
        delegate: name of the delegate that computes it.
        judge: ``module:function`` of the :data:`Judge` that decides whether its result is wrong.
        case: the smaller model with its inputs.
        original: the case before it was made smaller.
    """

    delegate: str
    judge: str
    case: OperatorCase
    original: OperatorCase


@dataclass(frozen=True)
class Working:
    """Progress message: the kit is computing right results, without the delegate."""


Sign = CheckBegins | PhaseBegins | TimeIsLimited | ModelBegins | Suspect | Working


@dataclass
class Witness:
    """Receives the progress messages, and knows which models have killed earlier processes.

    Attributes:
        tell: function that is called with each progress message.
        deaths: mapping from the key of a model that has killed a process, to a description
            of the process's end.
        key: key of the model that is being tried, if later processes should know it.
        case: the last model that a delegate got; None before the first.
    """

    tell: Callable[[Sign], object] = lambda sign: None
    deaths: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    case: OperatorCase | None = None


WITNESS = Witness()
"""Receiver of this process's progress messages; the code that runs checks configures it."""


def check_begins(note: Mapping[str, Any]) -> None:
    """Report to the parent process that a check begins.

    *note* has the name of the check as ``check`` and that of the delegate as ``delegate``.
    """
    WITNESS.case = None
    WITNESS.tell(CheckBegins(note))


def phase_begins(delegate: str, phase: str, *, imports: bool = False) -> None:
    """Report to the parent process that a phase begins.

    See :class:`PhaseBegins` for the arguments.
    """
    WITNESS.tell(PhaseBegins(delegate, phase, imports))


def model_begins(case: OperatorCase) -> None:
    """Report to the parent process that a delegate is about to get the model of *case*."""
    WITNESS.case = case
    WITNESS.tell(ModelBegins(case, WITNESS.key))


def suspect(delegate: str, judge: Judge, case: OperatorCase, original: OperatorCase) -> None:
    """Report that a failing model was made smaller, so that a new process may confirm the failure.

    *judge* decides whether *delegate* is wrong on *case*, which was made from *original*.
    """
    name = f"{judge.__module__}:{judge.__qualname__}"
    WITNESS.tell(Suspect(delegate, name, case, original))


def working() -> None:
    """Report that the kit still computes, so that its process is not taken for hanging."""
    WITNESS.tell(Working())


@contextmanager
def remembered(delegate: str, what: str, case: OperatorCase) -> Iterator[str]:
    """Record a model during the block, so that later processes know if it kills this process.

    *what* describes the work on the model.

    Yields:
        Description of how the model killed an earlier process; empty if it did not.
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
