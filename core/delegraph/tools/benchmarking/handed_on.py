"""States of a signature, such as a language model's KV caches, that runs pass to the next run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delegraph.json_records import JsonRecord
from delegraph.tools.given_inputs import GivenInput

TOKENS = ("input_pos", "tokens")
"""Inputs with an element for each token, as exports of language models name them."""


@dataclass(frozen=True, slots=True)
class HandedOn(JsonRecord):
    """States, such as KV caches, that each run passes to the next; passing them is timed, too.

    Attributes:
        names: names that an input and an output share.
        bytes: number of bytes of all states.
        copied_bytes: number of bytes that each run copies; 0 if states are updated in place, or if
            input and output exchange buffers.
        tokens: number of tokens that a run computes; None if unknown.
    """

    names: tuple[str, ...]
    bytes: int
    copied_bytes: int
    tokens: int | None

    def per_second(self, seconds: float) -> float | None:
        """Number of tokens per second, given the seconds of a run; None if *tokens* is unknown."""
        return None if self.tokens is None or not seconds else self.tokens / seconds


def tokens_of(inputs: Sequence[GivenInput]) -> int | None:
    """Return the number of tokens in the inputs of a signature; None if no input has tokens."""
    sizes = {given.details["name"]: given.values.size for given in inputs}
    return next((sizes[name] for name in TOKENS if name in sizes), None)
