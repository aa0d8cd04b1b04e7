"""Damaged copies: which one has which number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.feeding import Feeding
from fuzz.file_damage import mutated, structure
from fuzz.joining import joined
from fuzz.record_damage import damaged
from fuzz.starting_models import StartingModel

OF_BYTES = 0.08
"""Share of the copies whose file is damaged, not their records."""

SOUND = 0.03
"""Share of the others that stay undamaged: models joined, which must be computed right."""


@dataclass(frozen=True, eq=False)
class Copy:
    """A model file to try, with the seed of its inputs.

    Attributes:
        content: the file.
        seed: of the :class:`Feeding`.
        steps: arrays that came with the model it is made of.
        origin: names of the models it is made of.
        nudge: how floats that it is fed are nudged, see :class:`fuzz.feeding.Feeding`.
    """

    content: bytes
    seed: int = 0
    steps: Sequence[Sequence[NDArray[Any]]] = ()
    origin: str = ""
    nudge: int = 0

    def feeding(self) -> Feeding:
        """Return the source of the inputs, from the first invoke on."""
        return Feeding(self.seed, self.steps, self.nudge)


def copy_with_number(models: Sequence[StartingModel], seed: int, number: int) -> Copy:
    """Return copy *number*; equal arguments give equal copies."""
    chance = Random(f"{seed}:{number}")
    model = chance.choice(models)
    feeding = chance.getrandbits(31)
    if chance.random() < OF_BYTES:
        rng = np.random.default_rng([seed, number])
        content = mutated(model.content, structure(model.content), rng)
        return Copy(content, feeding, model.steps, model.name)
    records, origin = model.records, [model.name]
    while chance.random() < 0.35 and len(origin) < 4:
        donor = chance.choice(models)
        records = joined(records, donor.records, chance)
        origin.append(donor.name)
    if chance.random() >= SOUND:
        records = damaged(records, chance)
    return Copy(model.file_of(records, chance), feeding, model.steps, "+".join(origin))
