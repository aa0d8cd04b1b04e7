"""Number of models tried with a delegate: all, or a sample for a slow compiler."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.delegation.capabilities import Capabilities
from delegraph.tools.shrinking import TRIES


@dataclass(frozen=True)
class Effort:
    """Numbers of models and attempts that are tried with a delegate.

    Attributes:
        bundle: cases that are tried side by side in one model, compiled once; 1 for each alone.
        bundles: such models at most: where there are more cases, more are in each.
        random_cases: random cases of each maker that a claimed operator is tried with.
        enough: models that are claimed and taken, after which only those are tried that show
            something new.
        shows_all: whether claimed versions, activations and features count as new, as types do.
        seeds: how often that many are drawn, at most, until each claimed type is in one that is
            taken.
        seeds_for_others: the same for versions and features: not every operator can show every one.
        patience: models of the same types that are run to find a claimed type that is missing
            still; twice as many of an operator.
        errors: of an operator, after which no more of it is tried.
        chains: specimens of several nodes.
        specimens: models that each check of the contract is made with, at most.
        reopenings: interpreters after which what they leave behind is counted.
        partners: of each specimen for checks of two interpreters, at most.
        computed: models of each operator for checks that need many; 0 for the specimens alone.
        gallery: models of every operator, of different types, that a delegate is only asked about.
        bricks: models of each operator that generated models are made of.
        tries_bricks: whether each of them is tried alone before.
        transposed: models of each operator between transpositions.
        examples: generated models, at most.
        tries: simpler models that are tried instead of one that comes out wrong.
    """

    bundle: int = 1
    bundles: int = 0
    random_cases: int = 40
    enough: int = 20
    shows_all: bool = True
    seeds: int = 12
    seeds_for_others: int = 3
    patience: int = 400
    errors: int = 400
    chains: int = 2
    specimens: int = 8
    reopenings: int = 5
    partners: int = 3
    computed: int = 20
    gallery: int = 3
    bricks: int = 10
    tries_bricks: bool = True
    transposed: int = 8
    examples: int | None = None
    tries: int = TRIES

    def described(self, capabilities: Capabilities) -> str:
        """Sample that is tried, in words for the scorecard; empty for everything."""
        if self == FULL:
            return ""
        operators = {op for claim in capabilities.claims for op in claim.operators}
        return (
            f"each claimed type of {len(operators)} operators once; "
            f"{self.specimens} model for each check of the contract; "
            f"{self.examples} generated models"
        )


FULL = Effort()
"""Everything."""

QUICK = Effort(
    bundle=16,
    bundles=12,
    enough=0,
    shows_all=False,
    patience=60,
    errors=3,
    chains=1,
    specimens=1,
    reopenings=2,
    partners=1,
    computed=0,
    gallery=1,
    bricks=2,
    tries_bricks=False,
    transposed=1,
    examples=3,
    tries=10,
)
"""A sample: under a minute for a delegate that compiles for a second."""
