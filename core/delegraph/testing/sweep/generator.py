"""Which model a sweep tries under which number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases import MAKERS, cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS
from delegraph.testing.sweep.sweep_case import SweepCase


def sweep_operators() -> tuple[str, ...]:
    """Operators that cases can be made of, sorted."""
    return tuple(sorted(op for op in REGISTERED_OPERATORS if op in MAKERS))


def sweep_case(seed: int, number: int, operators: Sequence[str]) -> SweepCase:
    """Case with a number; the same one for the same arguments, in any process.

    Args:
        seed: of everything random.
        number: at least 0.
        operators: names that the case may be about.
    """
    chance = Random(f"{seed}:{number}")
    op = chance.choice(list(operators))
    case = chance.choice(_cases(op, seed))
    steps = case.steps * 2 if len(case.steps) == 1 else case.steps
    return SweepCase(op, case.model(), steps, case.is_random, case.tolerance, case.op)


@lru_cache(512)
def _cases(op: str, seed: int) -> tuple[OperatorCase, ...]:
    return tuple(cases(op, seed=seed, count=20))
