"""Converts progress messages (signs) to a form that can be sent to ``check_runner.py``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing.conformance.run_reports import (
    CheckBegins,
    ModelBegins,
    PhaseBegins,
    Sign,
    Suspect,
    TimeIsLimited,
    Working,
)
from delegraph.testing.conformance.subject import Identity
from delegraph.testing.operator_case import OperatorCase


@dataclass(frozen=True, eq=False)
class SentCase:
    """An ``OperatorCase`` whose models are bytes of model files.

    Attributes:
        model: the model.
        reference: the model whose results are right; None means *model* itself.
        others: mapping from the name of each other attribute to its value.
    """

    model: bytes
    reference: bytes | None
    others: dict[str, Any]


RECORDS = (
    *(CheckBegins, Identity, ModelBegins, PhaseBegins, SentCase, Suspect, TimeIsLimited, Working),
)
"""Types of the records in progress messages and answers."""

_CASES = ("case", "original")
_OTHERS = ("op", "steps", "is_random", "tolerance", "differs")


def sent(sign: Sign) -> Any:
    """Return the progress message *sign* with each case converted to :class:`SentCase`."""
    cases = {name: _sent_case(getattr(sign, name)) for name in _CASES if hasattr(sign, name)}
    return replace(sign, **cases)  # type: ignore[arg-type]  # stands in for the case


def _sent_case(case: OperatorCase) -> SentCase:
    reference = None if case.reference is None else write_model(case.reference)
    others = {name: getattr(case, name) for name in _OTHERS}
    return SentCase(write_model(case.records), reference, others)


def received(sign: Any) -> Sign:
    """Return the original progress message from *sign*, the result of :func:`sent`."""
    cases = {name: _case(getattr(sign, name)) for name in _CASES if hasattr(sign, name)}
    found: Sign = replace(sign, **cases)
    return found


def _case(case: SentCase) -> OperatorCase:
    reference = None if case.reference is None else _records(case.reference)
    return OperatorCase(records=_records(case.model), reference=reference, **case.others)


def _records(file: bytes) -> tables.Model:
    return read_model(np.frombuffer(file, np.uint8))
