"""Generates the case for each number of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from delegraph.delegation.capabilities import Claim
from delegraph.errors import DelegraphError
from delegraph.schema.writer import write_model
from delegraph.testing.conformance.operator_models import palette_cases
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases import MAKERS, cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS
from delegraph.testing.sweep.chains import adapted, can_read, chain_names, chained
from delegraph.testing.sweep.draft import Draft
from delegraph.testing.sweep.hosts import open_ours
from delegraph.testing.sweep.oddities import ODDITIES
from delegraph.testing.sweep.patterns import pattern_case
from delegraph.testing.sweep.sweep_case import SweepCase

CLAIMED = 0.8
"""Share of cases whose first operator has types and a version that the delegate claims."""

CHAINS = 0.3
"""Share of cases with several operators."""

PATTERNS = 0.7
"""Share of the cases with several operators that follow a pattern."""

ODD = (0, 0, 0, 1, 1, 1, 1, 2, 2, 3)
"""Number of oddities (random changes) of a case; each entry is equally likely."""

TWO_THREADS = 0.2
"""Share of cases in which the tested side uses two threads."""


def sweep_operators() -> tuple[str, ...]:
    """Return the operators for which there are cases, sorted."""
    return tuple(sorted(op for op in REGISTERED_OPERATORS if op in MAKERS))


def sweep_case(
    seed: int, number: int, operators: Sequence[str], claims: tuple[Claim, ...] = ()
) -> SweepCase:
    """Return the case with a number, equal for equal arguments in any process.

    Most cases have forms of *claims*; if there are none, all forms.
    """
    chance = Random(f"{seed}:{number}")
    op = chance.choice(list(operators))
    wanted = claims if claims and chance.random() < CLAIMED else ()
    if chance.random() < CHAINS and not _is_stateful(op):
        case, draft, names = _several(chance, operators, wanted)
        op, label = names[0], " > ".join(names)
    else:
        case = chance.choice(_claimed_cases(op, seed, wanted))
        draft, label = Draft(case.records, case.steps), op
    if len(draft.steps) == 1:
        draft = Draft(draft.records, draft.steps * 2)
    plain, names_of = draft, []
    for _ in range(chance.choice(ODD)):
        oddity = chance.choice(ODDITIES)
        changed = oddity(chance, draft)
        if changed is not None:
            draft = changed
            names_of.append(oddity.__name__)
    threads = 2 if chance.random() < TWO_THREADS else 1
    try:
        content = write_model(draft.records)
    except (TypeError, OverflowError):  # an option that its field cannot hold
        draft, names_of = plain, []
        content = write_model(draft.records)
    described = " ".join([label, *names_of])
    return SweepCase(op, content, draft.steps, case.is_random, case.tolerance, described, threads)


def base_cases(op: str, seed: int) -> tuple[OperatorCase, ...]:
    """Return the cases of *op* to which a sweep applies its random changes.

    They are made once in each process.
    """
    _palette(op)
    return seeded_cases(op, seed)


def _is_stateful(op: str) -> bool:
    return op in ("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "WHILE", "IF")


def _several(
    chance: Random, operators: Sequence[str], claims: tuple[Claim, ...]
) -> tuple[OperatorCase, Draft, Sequence[str]]:
    """Return a model of several of *operators*: first case, draft, and names of its operators.

    The first operator has a form of *claims*, if it can.
    """
    if chance.random() < PATTERNS:
        case, names = pattern_case(chance)
        if set(names) <= set(operators):
            return case, Draft(case.records, case.steps), names
    names = chain_names(chance, operators)
    return *_chain(chance, names, claims), names


def _chain(
    chance: Random, names: Sequence[str], claims: tuple[Claim, ...]
) -> tuple[OperatorCase, Draft]:
    """Join cases of the operators *names* to one model; return the first case and the model.

    The first operator has a form of *claims*, if it can.
    """
    first, draft = None, None
    for name in names:
        fitting = _palette(name)
        if not fitting:
            continue
        if first is None or draft is None:
            claimed = [each for each in fitting if _is_claimed(each[0], claims)]
            first, draft = chance.choice(claimed or fitting)
        else:
            reading = [added for _, added in fitting if can_read(draft, added)]
            if not reading:
                others = (adapted(draft, added) for _, added in fitting)
                reading = [added for added in others if added is not None]
            draft = chained(chance, draft, chance.choice(reading or [a for _, a in fitting]))
    if first is None or draft is None:
        case = chance.choice(seeded_cases(names[0], 0))
        return case, Draft(case.records, case.steps)
    return first, draft


@lru_cache(512)
def seeded_cases(op: str, seed: int) -> tuple[OperatorCase, ...]:
    """Return the cases of *op* for a seed, made once in each process."""
    return tuple(cases(op, seed=seed, count=20))


@lru_cache(512)
def _claimed_cases(op: str, seed: int, claims: tuple[Claim, ...]) -> tuple[OperatorCase, ...]:
    """Return the cases of *op* whose form one of *claims* covers, or all if there is none."""
    found = seeded_cases(op, seed)
    return tuple(case for case in found if _is_claimed(case, claims)) or found


def _is_claimed(case: OperatorCase, claims: tuple[Claim, ...]) -> bool:
    form = case.input_form()
    return any(claim.covers(form) for claim in claims)


@lru_cache(512)
def _palette(op: str) -> tuple[tuple[OperatorCase, Draft], ...]:
    """Return cases of *op* whose shapes fit each other, each with a draft to change.

    The drafts declare the output shapes, as the core computes them.
    """
    found = []
    for case in palette_cases(op, 16):
        if len(case.records.subgraphs or ()) == 1 and not case.is_random and len(case.steps) == 1:
            draft = _sized(case)
            if draft is not None:
                found.append((case, draft))
    return tuple(found)


def _sized(case: OperatorCase) -> Draft | None:
    draft = Draft(case.records, case.steps)
    try:
        with open_ours(case.model()) as interpreter:
            details = interpreter.get_input_details()
            for detail, array in zip(details, case.steps[0], strict=True):
                if tuple(detail["shape"]) != array.shape:
                    return None
            interpreter.allocate_tensors()
            for detail, array in zip(details, case.steps[0], strict=True):
                interpreter.set_tensor(detail["index"], array)
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                shape = tuple(int(n) for n in detail["shape"])
                draft = draft.with_tensor(detail["index"], shape=shape)
    except DelegraphError:
        return None
    return draft
