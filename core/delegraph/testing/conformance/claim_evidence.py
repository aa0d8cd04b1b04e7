"""Demands: types, versions, activations and features in claims that models must show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from delegraph.delegation.capabilities import Claim
from delegraph.delegation.node_traits import NodeTraits
from delegraph.operators.roles import roles_of
from delegraph.testing.conformance.trials import KEPT, Trial
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.registered_operators import BUILTIN_VERSIONS


@dataclass(frozen=True, slots=True)
class Demand:
    """A type, version or other property that a claim lists; the kit looks for a model with it.

    Attributes:
        claim: the claim.
        what: text that describes the demand, such as ``INT8``, ``weights INT8``, ``version 5``,
            ``feature 'broadcast'``.
        is_type: whether it is a type; a model must exist for every claimed type.
    """

    claim: Claim
    what: str
    is_type: bool = False

    def __str__(self) -> str:
        return self.what


@cache
def demands(claim: Claim) -> tuple[Demand, ...]:
    """Return each type, version, activation and feature that *claim* lists, to be tried."""
    first, last = claim.versions or (1, 0)
    types = [f"{role} {type}" for role, types in claim.roles for type in types]
    types += claim.types if _leaves_roles(claim) else ()
    others = [
        *(f"version {version}" for version in range(first, last + 1)),
        *(f"activation {name}" for name in claim.activations),
        *(f"feature {name!r}" for name in sorted(claim.features)),
    ]
    return (*(Demand(claim, type, True) for type in types), *(Demand(claim, o) for o in others))


def _leaves_roles(claim: Claim) -> bool:
    """Whether *claim* does not name all operands of its operators, for example not the bias."""
    named = dict(claim.roles)
    return any(role not in named for op in claim.operators for role in roles_of(op))


def shown(claim: Claim, trial: Trial) -> set[Demand]:
    """Return the demands of *claim*, such as a type or feature, that the model of *trial* shows.

    The result is empty if the claim does not cover the model.
    """
    if not all(claim.covers(form, trial.features) for form in trial.forms):
        return set()
    found = {f"feature {name!r}" for name in trial.features}
    for form in trial.forms:
        found |= {f"version {form.version}", f"activation {form.activation}"}
    types = {_type_of(claim, role, type) for form in trial.forms for role, type in form.types}
    return {each for each in demands(claim) if each.what in (types if each.is_type else found)}


def _type_of(claim: Claim, role: str, type: str) -> str:
    return f"{role} {type}" if role in dict(claim.roles) else type


def may_show(claim: Claim, case: OperatorCase) -> set[Demand]:
    """Return the types in *claim* that the model of *case* may have.

    The result is empty if the claim cannot cover the model. Outputs count with their declared
    types, and features are ignored.
    """
    if claim.misfit(case.input_form()) is not None:
        return set()
    types = {_type_of(claim, role, type) for role, type in case.declared_types()}
    return {each for each in demands(claim) if each.is_type and each.what in types}


def at_versions(claims: Iterable[Claim], given: Iterable[OperatorCase]) -> Iterator[OperatorCase]:
    """Yield cases with the versions that claims name, in turn, and with the next higher versions.

    If no claim names versions, cases stay unchanged.
    """
    ranges = [claim.versions for claim in claims if claim.versions]
    near = sorted({v for first, last in ranges for v in range(first - 1, last + 2)})
    for i, case in enumerate(given):
        first, last = BUILTIN_VERSIONS.get(case.op, (1, 1))
        versions = [version for version in near if first <= version <= last]
        yield _at_version(case, versions[i % len(versions)]) if versions else case


@lru_cache(KEPT)
def _at_version(case: OperatorCase, version: int) -> OperatorCase:
    """Return *case* with the operator's version *version*; the same object for equal arguments.

    One object is needed because results are kept by their case.
    """
    return case.at_version(version)


def is_near(claim: Claim, form: NodeTraits) -> bool:
    """Whether *claim* covers the types in *form*; version and activation are ignored."""
    position = claim.misfit(form)
    return position is None or position >= len(form.types)
