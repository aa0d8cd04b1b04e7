from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.benchmarking.interleaving import round_order
from delegraph.tools.benchmarking.verdicts import (
    SAME_WITHIN,
    Verdict,
    block_effects,
    effect,
    intervals,
    judge,
    ratio,
    variation,
    verdict,
)

Array = NDArray[np.float64]

# -- a made-up machine, on which the true ratio is known -------------------------------------------

TRIALS, BLOCKS, ROUNDS = 1000, 12, 8
ARMS = ["one", "other", "again"]
TURNS = BLOCKS * ROUNDS * 2 * len(ARMS)
RATIOS = (0.8, 0.9, 0.97, 0.99, 0.994, 1.0, 1.003, 1.007, 1.01, 1.03, 1.1, 1.3)

Disturbance = Callable[[np.random.Generator], Array]
"""Makes what disturbs each turn, in logarithms, ``[trials, turns]``."""


def calm(rng: np.random.Generator) -> Array:
    return rng.normal(0, 0.01, (TRIALS, TURNS))


def drift(rng: np.random.Generator) -> Array:
    """Heats up or cools down by some percent in all, and wanders."""
    slope = rng.uniform(-0.5, 0.5, (TRIALS, 1)) * np.linspace(0, 1, TURNS)
    return slope + rng.normal(0, 0.01, (TRIALS, TURNS)).cumsum(axis=1)


def spikes(rng: np.random.Generator) -> Array:
    """One turn in seven takes longer, by a factor with heavy tails."""
    is_hit = rng.random((TRIALS, TURNS)) < 1 / 7
    return np.log1p(is_hit * rng.pareto(1.0, (TRIALS, TURNS)))


def neighbours(rng: np.random.Generator) -> Array:
    """What disturbs a turn goes on for some twenty turns."""
    steps = rng.normal(0, 0.05, (TRIALS, TURNS))
    found = np.empty_like(steps)
    found[:, 0] = steps[:, 0]
    for i in range(1, TURNS):
        found[:, i] = 0.95 * found[:, i - 1] + 0.3 * steps[:, i]
    return found


def periodic(rng: np.random.Generator) -> Array:
    """Something runs every so many turns; it may keep step with the rounds."""
    period = rng.choice([2, 3, 4, 6, 12, 18], (TRIALS, 1))
    phase = rng.integers(0, 18, (TRIALS, 1))
    return 0.3 * ((np.arange(TURNS) + phase) % period == 0)


@dataclass(frozen=True)
class Machine:
    """How a machine disturbs what is timed.

    Attributes:
        name: of it.
        disturbances: of single turns, by what goes on beside.
        luck: standard deviation of what a process keeps: a share of its times, for each arm.
        hit_blocks: share of the blocks in which all of an arm's turns are slowed down.
    """

    name: str
    disturbances: tuple[Disturbance, ...] = ()
    luck: float = 0.0
    hit_blocks: float = 0.0

    def times(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return the seconds of each turn of equals, ``[trials, blocks, rounds, 2]``."""
        noise = np.sum([make(rng) for make in (calm, *self.disturbances)], axis=0)
        noise = noise.reshape(TRIALS, BLOCKS, ROUNDS, 2 * len(ARMS))
        places = _places(rng)
        found = {}
        for arm, name in enumerate(ARMS):
            taken = np.take_along_axis(noise, places[..., arm, :], axis=-1)
            luck = rng.normal(0, self.luck, (TRIALS, BLOCKS, 1, 1))
            hit = 0.3 * (rng.random((TRIALS, BLOCKS, 1, 1)) < self.hit_blocks)
            found[name] = np.exp(taken + luck + hit)
        return found


def _places(rng: np.random.Generator) -> NDArray[np.int64]:
    """Return when each arm has its two turns, ``[trials, blocks, rounds, arms, 2]``."""
    orders = [round_order(ARMS, rng) for _ in range(300)]
    places = [[[i for i, n in enumerate(order) if n == arm] for arm in ARMS] for order in orders]
    return np.array(places)[rng.integers(len(orders), size=(TRIALS, BLOCKS, ROUNDS))]


MACHINES = [
    Machine("calm"),
    Machine("drift", (drift,)),
    Machine("spikes", (spikes,)),
    Machine("neighbours", (neighbours,)),
    Machine("periodic", (periodic,)),
    Machine("luck of processes", luck=0.02),
    Machine("hit blocks", luck=0.005, hit_blocks=0.15),
    Machine("all at once", (drift, spikes, neighbours, periodic), luck=0.01, hit_blocks=0.05),
]


NAME = operator.attrgetter("name")


@functools.cache
def verdicts_on(machine: Machine) -> dict[float, list[Verdict]]:
    """Return the verdict of each trial, by true ratio."""
    times = machine.times(np.random.default_rng(7))
    effects = effect(times["one"], times["other"])
    found, control = intervals(effects), intervals(effect(times["one"], times["again"]))
    spread = variation(effects)
    return {
        truth: [
            verdict(found[i] + np.log(truth), control[i], spread[i], BLOCKS, SAME_WITHIN)
            for i in range(TRIALS)
        ]
        for truth in RATIOS
    }


def is_wrong(said: Verdict, truth: float) -> bool:
    if said.word == "same":
        return not 1 / (1 + said.within) <= truth <= 1 + said.within
    return (said.word == "faster" and truth >= 1) or (said.word == "slower" and truth <= 1)


@pytest.mark.repetition(1)  # each judges 12,000 comparisons
@pytest.mark.parametrize("machine", MACHINES, ids=NAME)
def test_fewer_than_one_verdict_in_twenty_is_wrong(machine: Machine) -> None:
    for truth, said in verdicts_on(machine).items():
        wrong = Counter(str(v) for v in said if is_wrong(v, truth))
        assert wrong.total() < TRIALS / 20, (truth, wrong.most_common(3))


@pytest.mark.repetition(1)
@pytest.mark.parametrize(
    "machine",
    [m for m in MACHINES if m.name in {"calm", "drift", "spikes", "neighbours"}],
    ids=NAME,
)
def test_verdicts_are_had_where_rounds_cancel_what_disturbs(machine: Machine) -> None:
    words = {1.0: "same", 1.1: "slower", 1.3: "slower", 0.9: "faster", 0.8: "faster"}
    said = verdicts_on(machine)
    for truth, word in words.items():
        assert sum(v.word == word for v in said[truth]) > 0.95 * TRIALS, truth


def test_rounds_drawn_in_place_of_blocks_would_be_wrong_too_often() -> None:
    times = Machine("luck", luck=0.02).times(np.random.default_rng(7))
    pooled = {
        name: np.log(times["one"] / times[name]).mean(axis=-1).reshape(TRIALS, -1)
        for name in ("other", "again")
    }
    found, control = (intervals(effects[:200]) for effects in pooled.values())
    found += np.log(1.02)
    said = [verdict(found[i], control[i], 0.0, BLOCKS, SAME_WITHIN) for i in range(200)]
    assert sum(is_wrong(v, 1.02) for v in said) > 200 / 10


# -- single cases ----------------------------------------------------------------------------------


def blocks_of(*medians: float, rounds: int = 3) -> list[Array]:
    return [np.full((rounds, 2), seconds) for seconds in medians]


def judged(
    times: list[Array], others: list[Array], again: list[Array], same_within: float = SAME_WITHIN
) -> Verdict:
    effects, control = block_effects(times, others), block_effects(times, again)
    return judge(effects, control, same_within=same_within)


EQUAL = blocks_of(1, 1, 1, 1, 1)
UNEVEN = blocks_of(0.97, 1.03, 1, 0.98, 1.02)


def test_a_factor_on_all_times_is_a_factor_on_the_interval() -> None:
    times = Machine("").times(np.random.default_rng(1))
    plain = intervals(effect(times["one"], times["other"])[:20])
    doubled = intervals(effect(2 * times["one"], times["other"])[:20])
    assert doubled == pytest.approx(plain + np.log(2))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.2, "slower"), (0.8, "faster"), (1.0, "same within 0.0 %"), (1.049, "slower")],
)
def test_the_verdict_is_about_the_first(seconds: float, text: str) -> None:
    said = judged(blocks_of(*[seconds] * 5), EQUAL, blocks_of(*[seconds] * 5))
    assert str(said) == text
    assert said.ratio.value == pytest.approx(seconds)


def test_what_lies_within_the_control_is_no_difference() -> None:
    slightly = blocks_of(1.02, 1.02, 1.02, 1.02, 1.02)
    assert judged(slightly, EQUAL, slightly).word == "slower"
    said = judged(slightly, EQUAL, blocks_of(1.0, 1.01, 1.05, 1.05, 1.01))
    assert said.word == "same"
    assert said.floor == pytest.approx(0.0294, abs=1e-4)
    assert str(said) == "same within 3.0 %"


def test_a_control_that_is_beside_one_counts_with_all_of_its_distance() -> None:
    slower = blocks_of(1.1, 1.1, 1.1, 1.1, 1.1)
    said = judged(slower, EQUAL, blocks_of(1, 1, 1, 1, 1))
    assert said.floor == pytest.approx(0.1)
    assert said.word == "too noisy"


def test_a_wide_interval_is_too_noisy_and_says_how_much_more_it_takes() -> None:
    times = blocks_of(0.9, 1.1, 1.0, 1.06, 0.94)
    said = judged(times, EQUAL, times, same_within=0.02)
    assert said.word == "too noisy"
    # an interval of 10 % to either side that shall be 2 %: 25 times the 5 blocks
    assert said.more_blocks == pytest.approx(120, rel=0.15)
    assert str(said) == f"too noisy (needs about {said.more_blocks} more blocks)"


def test_differences_below_the_variation_of_a_wild_machine_are_not_believed() -> None:
    rng = np.random.default_rng(0)
    wild = [np.full((4, 2), np.exp(rng.normal(0.1, 0.15))) for _ in range(200)]
    said = judged(wild, [np.ones((4, 2))] * 200, wild)
    assert said.ratio.low > 1.05
    assert said.variation == pytest.approx(0.15, abs=0.03)
    assert str(said) == "too noisy (needs a quieter machine)"
    assert "differences below that are not believed" in said.warning
    twice = [3 * block for block in wild]
    assert judged(twice, [np.ones((4, 2))] * 200, twice).word == "slower"


@pytest.mark.parametrize(("spread", "warns"), [(0.01, False), (0.06, True)])
def test_variation_of_a_fortieth_is_warned_of(spread: float, warns: bool) -> None:
    times = blocks_of(*(1 + spread * (i - 2) for i in range(5)))
    said = judged(times, EQUAL, times)
    assert ("varies by" in said.warning) is warns


def test_a_few_blocks_that_something_hit_do_not_raise_the_variation() -> None:
    effects = np.array([0.0, 0.01, -0.01, 0.005, -0.005, 0.01, -0.01, 3.0])
    assert float(variation(effects)) < 0.02


@pytest.mark.parametrize(("share", "fails"), [(0.0, True), (0.05, True), (0.1, False), (1, False)])
def test_slower_than_a_share_needs_the_whole_interval(share: float, fails: bool) -> None:
    times = blocks_of(1.08, 1.12, 1.1, 1.09, 1.11)
    said = judged(times, EQUAL, [1.0 * block for block in times])
    assert said.word == "slower"
    assert said.ratio.low < 1.1 < said.ratio.high
    assert said.is_slower_than(share) is fails


def test_what_is_not_slower_exceeds_no_share() -> None:
    assert not judged(UNEVEN, EQUAL, UNEVEN).is_slower_than(-1)


def test_rounds_cancel_a_steady_drift() -> None:
    # A B B A while everything gets slower by a tenth each turn
    drifting = np.cumprod(np.full(4, 1.1))
    one, other = drifting[[0, 3]], drifting[[1, 2]]
    assert float(effect(one[None], other[None])) == pytest.approx(0.0)


def test_blocks_may_have_different_numbers_of_rounds() -> None:
    times = [np.full((rounds, 2), 2.0) for rounds in (1, 2, 3, 4, 9)]
    others = [np.full((rounds, 2), 1.0) for rounds in (1, 2, 3, 4, 9)]
    assert block_effects(times, others) == pytest.approx(np.log([2] * 5))
    assert str(ratio(block_effects(times, others))) == "2.000 [2.000-2.000]"


def test_too_few_blocks_are_refused() -> None:
    with pytest.raises(ArgumentError, match="4 blocks are too few for a verdict: 5 at least"):
        judged(EQUAL[:4], EQUAL[:4], EQUAL[:4])


def test_a_verdict_is_plain_in_json() -> None:
    said = judged(EQUAL, EQUAL, EQUAL).to_json()
    assert said["word"] == "same"
    assert said["text"] == "same within 0.0 %"
    assert said["ratio"] == {"value": 1.0, "low": 1.0, "high": 1.0}
