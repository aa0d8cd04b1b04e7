"""How much is tried of a delegate: everything, or a sample for delegates that compile slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delegraph.delegation.capabilities import Capabilities
from delegraph.tools.shrinking import TRIES


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Attributes:
        operators: of those claimed, at most, but one of each claim; None for all.
        random_cases: random cases of each maker that a claimed operator is tried with.
        enough: models that are claimed and taken, after which only those are tried that show
            something new.
        shows_all: whether claimed versions, activations and features count as new, as types do.
        seeds: how often that many are drawn, at most, until each claimed type is in one that is
            taken.
        seeds_for_others: the same for versions and features: not every operator can show every one.
        chains: specimens of several nodes.
        specimens: models that each check of the contract is made with, at most.
        reopenings: interpreters after which what they leave behind is counted.
        partners: of each specimen for checks of two interpreters, at most.
        computed: models of each operator for checks that need many; 0 for the specimens alone.
        gallery: models of every operator, of different types, that a delegate is only asked about.
        bricks: models of each operator that generated models are made of.
        tries_bricks: whether each of them is tried alone before.
        examples: generated models, at most.
        tries: simpler models that are tried instead of one that comes out wrong.
    """

    operators: int | None = None
    random_cases: int = 40
    enough: int = 20
    shows_all: bool = True
    seeds: int = 12
    seeds_for_others: int = 3
    chains: int = 2
    specimens: int = 8
    reopenings: int = 5
    partners: int = 3
    computed: int = 20
    gallery: int = 3
    bricks: int = 10
    tries_bricks: bool = True
    examples: int | None = None
    tries: int = TRIES

    def operators_of(self, capabilities: Capabilities) -> tuple[str, ...]:
        """Return the operators that are tried, sorted: of each claim one at least."""
        claims = capabilities.claims
        found = {op for claim in claims for op in claim.operators}
        if self.operators is None or len(found) <= self.operators:
            return tuple(sorted(found))
        chosen: dict[str, None] = {}
        for claim in claims:
            if not chosen.keys() & set(claim.operators):
                chosen[sorted(claim.operators)[0]] = None
        left = [op for op in sorted(found) if op not in chosen]
        more = max(self.operators - len(chosen), 0)
        return tuple(sorted((*chosen, *_spread(left, more))))

    def described(self, capabilities: Capabilities) -> str:
        """Return what is tried, for the scorecard; empty for everything."""
        if self == FULL:
            return ""
        claimed = {op for claim in capabilities.claims for op in claim.operators}
        tried = len(self.operators_of(capabilities))
        return (
            f"{tried} of {len(claimed)} operators, each claim and its types at least once; "
            f"{self.specimens} model for each check of the contract; "
            f"{self.examples} generated models"
        )


def _spread(names: Sequence[str], count: int) -> Sequence[str]:
    """Return *count* of *names*, evenly apart."""
    return [names[i * len(names) // count] for i in range(min(count, len(names)))]


FULL = Effort()
"""Everything."""

QUICK = Effort(
    operators=10,
    enough=0,
    shows_all=False,
    chains=1,
    specimens=1,
    reopenings=2,
    partners=1,
    computed=0,
    gallery=1,
    bricks=2,
    tries_bricks=False,
    examples=3,
    tries=10,
)
"""A sample: under a minute for a delegate that compiles for a second."""
