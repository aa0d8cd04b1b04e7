"""Efforts: how many models the kit tries; all, or a sample for slow delegates."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.delegation.capabilities import Capabilities
from delegraph.quantities import plural
from delegraph.tools.shrinking import TRIES


@dataclass(frozen=True)
class Effort:
    """Numbers of models and cases that the kit tries.

    Attributes:
        bundle: number of cases that are joined in one model (bundle), which is compiled once; 1
            means no bundles.
        bundles: largest number of bundles; if there are more cases, each bundle holds more.
        random_cases: number of random cases of a claimed operator from each function that makes
            cases.
        enough: number of models claimed by the delegate after which only models that show a new
            type or demand are tried.
        shows_all: whether claimed versions, activations and features count as new, as types do.
        seeds: largest number of draws of random cases, until models that the delegate claims show
            each claimed type.
        seeds_for_others: largest number of draws until models show each claimed version and
            feature; some operators cannot show all of them.
        patience: number of models of equal types that are run to find a missing demand; twice as
            many per operator.
        errors: number of errors of an operator after which no more of its models are tried.
        chains: number of specimens with several nodes.
        specimens: largest number of models for each check of the contract.
        reopenings: number of interpreters that are opened and closed before remaining resources are
            counted.
        partners: largest number of other models paired with each specimen, for checks of two
            interpreters.
        computed: number of models of each operator for checks that need many models; 0 means only
            the specimens.
        gallery: number of models of every operator, of different types, that a delegate may claim
            but does not compute.
        bricks: number of models of each operator from which generated models are made.
        tries_bricks: whether each brick is tried alone first.
        transposed: number of models of each operator that are tried between TRANSPOSE nodes.
        examples: largest number of generated models.
        tries: number of simpler models that are tried after a wrong result.
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
        """Return the effort as a sentence for the scorecard; empty for the full effort."""
        if self == FULL:
            return ""
        operators = {op for claim in capabilities.claims for op in claim.operators}
        return (
            f"each claimed type of {plural(len(operators), 'operator')} once, "
            "not each claimed feature, version and activation; "
            f"{self.specimens} model for each check of the contract; "
            f"{self.examples} generated models; "
            "a full run tries about 20 times as many models"
        )


FULL = Effort()
"""The full effort: everything is tried."""

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
"""A sample: under a minute for a delegate that needs a second to compile."""
