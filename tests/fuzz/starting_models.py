"""The models that damaged copies are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import DelegraphError, Interpreter, OpResolverType
from delegraph.schema import read_model, tables, write_model
from delegraph.testing import MICRO_OPERATORS, REGISTERED_OPERATORS, OperatorCase
from delegraph.testing.operator_cases import cases
from support.corpus import corpus_file, corpus_rows

ROOT = Path(__file__).parents[2]
FLEX_MODELS = ROOT / "delegates" / "flex" / "tests" / "models"

TRIED, TAKEN = 16, 6
"""Cases of an operator that are looked at, and those of them that are taken at most."""

LARGEST_FILE = 20_000
"""Bytes of a corpus model; larger ones take longer than they are worth."""

SLOWEST = 1.0
"""Milliseconds of the official reference kernels."""


@dataclass(frozen=True, eq=False)
class StartingModel:
    """A valid model that the fuzzer damages.

    Attributes:
        name: of the file, or the operator of the case.
        content: the file.
        steps: what its inputs are fed where it comes with data; empty otherwise.
    """

    name: str
    content: bytes
    steps: tuple[tuple[NDArray[Any], ...], ...] = ()

    @cached_property
    def records(self) -> tables.Model:
        """Records that are damaged."""
        return read_model(np.frombuffer(self.content, np.uint8))

    def file_of(self, records: tables.Model, chance: Random) -> bytes:
        """Return the file of damaged *records*; empty if a number does not fit its field."""
        try:
            return write_model(records)
        except (TypeError, OverflowError):
            return b""


def starting_models(
    delegate: str, operators: Collection[str] = (), *, every: int = 1
) -> list[StartingModel]:
    """Return the models for a target.

    Args:
        delegate: name of a delegate, ``"core"`` for none. ``flex`` and ``edgetpu`` have models of
            their own, and no others.
        operators: those that the delegate claims; cases of others are left out. Empty for all.
        every: take one operator, or one file, of so many.
    """
    if delegate == "flex":
        return [_of_file(path) for path in sorted(FLEX_MODELS.glob("*.tflite"))[::every]]
    claimed = () if delegate == "edgetpu" else operators
    known = (*REGISTERED_OPERATORS, *MICRO_OPERATORS)
    chosen = [op for op in known if not claimed or op in claimed][::every]
    small = [case for op in chosen for case in _sound_cases(op)]
    if delegate == "edgetpu":
        from fuzz.edgetpu_models import compiled_models

        return compiled_models(small)
    return [*map(_of_case, small), *list(_corpus_models())[::every]]


def _sound_cases(op: str) -> Iterator[OperatorCase]:
    """Yield some cases of an operator that Delegraph prepares."""
    found = list(cases(op, count=1))
    found = Random(op).sample(found, min(TRIED, len(found)))
    yield from islice(filter(_is_sound, found), TAKEN)


def _is_sound(case: OperatorCase) -> bool:
    try:
        with Interpreter(
            model_content=case.model(),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        ) as interpreter:
            interpreter.allocate_tensors()
    except DelegraphError:
        return False
    return True


def _of_case(case: OperatorCase) -> StartingModel:
    return StartingModel(case.op, write_model(case.records), case.steps)


def _of_file(path: Path) -> StartingModel:
    return StartingModel(path.stem, path.read_bytes())


def _corpus_models() -> Iterator[StartingModel]:
    for row in corpus_rows():
        milliseconds = (row.get("time_ms") or {}).get("ref")
        path = corpus_file(row["name"])
        if (
            milliseconds is not None
            and milliseconds < SLOWEST
            and path.stat().st_size < LARGEST_FILE
        ):
            yield _of_file(path)
