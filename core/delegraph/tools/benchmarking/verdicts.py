"""Statistics that decide from times in blocks which of two set-ups is faster.

Runs close to each other are disturbed together, and the addresses of a process's memory make all
its runs faster or slower. So the bootstrap draws whole blocks, each measured in a separate process,
instead of runs. An effect is the logarithm of the ratio of two set-ups' times in a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.cautions import UNSTABLE
from delegraph.tools.bootstrap import percentile_ends, resampled

Array = NDArray[np.float64]

Word = Literal["faster", "slower", "same", "too noisy"]

LEAST_BLOCKS = 5
"""Least number of blocks from which an interval of 95 % can be computed."""

SAME_WITHIN = 0.05
"""Default for the largest difference that counts as equal, as a share."""

WILD = 0.1
"""Variation between blocks, as a share, above which no verdict is given."""

_QUARTILES_OF_NORMAL = 1.349  # their distance, in standard deviations
_MOST_BLOCKS = 10_000


@dataclass(frozen=True, slots=True)
class Ratio(JsonRecord):
    """A ratio of times, with the interval that contains 95 % of the resampled ratios."""

    value: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """Distance from 1 to the farther end of the interval, as a share."""
        return max(self.high, 1 / self.low) - 1

    def __str__(self) -> str:
        value, low, high = map(_short, (self.value, self.low, self.high))
        return f"{value} [{low}-{high}]"


@dataclass(frozen=True, slots=True)
class Verdict(JsonRecord):
    """Result of comparing the times of two set-ups.

    Attributes:
        word: ``faster`` or ``slower`` if the whole interval lies beyond the noise floor; ``same``
            if the whole interval lies within *within*; otherwise ``too noisy``.
        ratio: time of the tested set-up divided by the time of the other; below 1 the tested set-up
            is faster.
        floor: the noise floor, as a share: largest distance from 1 of the interval when the tested
            set-up is compared with itself.
        within: largest distance from 1 of the true ratio, as a share.
        variation: robust standard deviation of the ratio between blocks, as a share.
        more_blocks: approximate number of further blocks that a verdict needs; None if there is a
            verdict, or if no number of blocks would help.
    """

    json_properties: ClassVar = {"text": "__str__"}

    word: Word
    ratio: Ratio
    floor: float
    within: float
    variation: float
    more_blocks: int | None = None

    def __str__(self) -> str:
        if self.word == "same":
            return f"same within {_percent_up(self.within)}"
        if self.word == "too noisy" and self.more_blocks is not None:
            return f"too noisy (needs about {self.more_blocks} more blocks)"
        if self.word == "too noisy":
            return "too noisy (needs a quieter machine)"
        return self.word

    @property
    def warning(self) -> str:
        """Warning about noise in the times; empty when there is little noise."""
        if self.variation < UNSTABLE:
            return ""
        text = f"the ratio varies by {100 * self.variation:.1f} % from block to block"
        if self.variation < WILD:
            return text
        return f"{text}; differences below that are not believed"

    def is_slower_than(self, share: float) -> bool:
        """Whether the tested set-up is certainly slower, by more than *share* (0.05 means 5 %)."""
        return self.word == "slower" and self.ratio.low > 1 + share


def judge(effects: Array, control: Array, *, same_within: float = SAME_WITHIN) -> Verdict:
    """Return the verdict about which of two set-ups is faster, from ratios of times per block.

    Args:
        effects: logarithm of the ratio in each block, ``[blocks]``, from :func:`block_effects`.
        control: logarithm of the ratio in each block for two measurements of the tested set-up.
        same_within: the largest difference that counts as equal, as a share.

    Raises:
        ArgumentError: there are fewer than :data:`LEAST_BLOCKS` blocks.
    """
    count = len(effects)
    if count < LEAST_BLOCKS:
        raise ArgumentError(f"{count} blocks are too few for a verdict: {LEAST_BLOCKS} at least")
    found, floor = intervals(effects), intervals(control)
    return verdict(found, floor, float(variation(effects)), count, same_within)


def ratio(effects: Array) -> Ratio:
    """Return the ratio of two set-ups' times over all blocks, with its confidence interval.

    *effects* has the ratio's logarithm in each block, ``[blocks]``.
    """
    return _ratio(intervals(effects))


def block_effects(times: Sequence[Array], others: Sequence[Array]) -> Array:
    """Return the logarithm of the ratio in each block, ``[blocks]``.

    Both arguments have, for each block, the seconds of a set-up, ``[rounds, 2]``: one figure per
    turn.
    """
    return np.array([effect(one, other) for one, other in zip(times, others, strict=True)])


def effect(times: Array, others: Array) -> Array:
    """Return the logarithm of the ratio of two set-ups' times: the median over rounds, ``[...]``.

    The two turns of a round lie symmetrically about its middle, so their mean is free of linear
    drift. Times are in seconds, ``[..., rounds, 2]``.

    >>> round(float(np.exp(effect(np.array([[1.0, 2.0]]), np.array([[1.5, 1.5]])))), 3)
    0.943
    """
    return np.asarray(np.median(np.log(times / others).mean(axis=-1), axis=-1))


def intervals(effects: Array) -> Array:
    """Return median and confidence interval of the logarithm of a ratio of times, ``[..., 3]``.

    The interval holds 95 % of the medians of bootstrap resamples of blocks. *effects* has the
    logarithm in each block, ``[..., blocks]``.
    """
    drawn = resampled(lambda units: np.median(effects[..., units], axis=-1), effects.shape[-1])
    return np.stack([np.median(effects, axis=-1), *percentile_ends(drawn)], axis=-1)


def variation(effects: Array) -> Array:
    """Return the variation between blocks of the logarithm of a ratio, ``[...]``.

    It is a robust standard deviation, from the quartiles, so a few blocks that were disturbed do
    not count. *effects* has the logarithm in each block, ``[..., blocks]``.
    """
    low, high = np.quantile(effects, (0.25, 0.75), axis=-1)
    return np.asarray((high - low) / _QUARTILES_OF_NORMAL)


def verdict(
    interval: Array, control: Array, variation: float, blocks: int, same_within: float
) -> Verdict:
    """Return the verdict on two set-ups, given intervals of the logarithm of their times' ratio.

    An interval is median, low and high end, ``[3]``. The noise floor is the distance from 1 that
    the control's interval reaches, not half its width. So a control whose ratio differs from 1
    raises the floor.

    Args:
        interval: interval of the tested set-up's times divided by the other's.
        control: interval of two measurements of the tested set-up.
        variation: standard deviation of the ratio between blocks.
        blocks: number of blocks.
        same_within: the largest difference that counts as equal, as a share.
    """
    found = _ratio(interval)
    floor = max(_ratio(control).reach, variation if variation >= WILD else 0.0)
    within = max(found.reach, floor)
    word: Word = "too noisy"
    if found.high < 1 / (1 + floor):
        word = "faster"
    elif found.low > 1 + floor:
        word = "slower"
    elif within <= same_within:
        word = "same"
    more = None
    if word == "too noisy" and variation < WILD:
        more = _more_blocks(interval, floor, blocks, same_within)
    return Verdict(word, found, floor, within, variation, more)


def _ratio(interval: Array) -> Ratio:
    return Ratio(*map(float, np.exp(interval)))


def _more_blocks(interval: Array, floor: float, blocks: int, same_within: float) -> int | None:
    """Return about how many further blocks would give a verdict; None if no number would.

    The ratio is assumed to stay the same. Both the interval and the floor shrink with the root of
    the number of blocks.
    """
    value, low, high = map(float, interval)
    half, floor, limit = (high - low) / 2, math.log1p(floor), math.log1p(same_within)
    for_different = _root_of_growth(half + floor, abs(value))
    for_same = max(_root_of_growth(half, limit - abs(value)), _root_of_growth(floor, limit))
    needed = blocks * min(for_different, for_same) ** 2
    return max(1, math.ceil(needed) - blocks) if needed <= _MOST_BLOCKS else None


def _root_of_growth(width: float, room: float) -> float:
    """Return how many times too wide an interval is, ``width / room``; infinite if *room* is 0."""
    return width / room if room > 0 else math.inf


def _short(value: float) -> str:
    """Format *value*, a ratio, with three digits, or three decimals when it is near 1.

    >>> _short(1.0004), _short(26.68), _short(0.00123)
    ('1.000', '26.7', '0.00123')
    """
    return f"{value:.3f}" if 0.1 <= value < 10 else f"{value:.3g}"


def _percent_up(share: float) -> str:
    """Format a share as a percentage, rounded up so that the statement stays true.

    >>> _percent_up(0.01201)
    '1.3 %'
    """
    return f"{math.ceil(round(1e3 * share, 6)) / 10:.1f} %"
