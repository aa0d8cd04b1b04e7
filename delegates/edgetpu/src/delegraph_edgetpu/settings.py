"""Settings of the compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from delegraph.errors import ArgumentError
from delegraph_edgetpu.chip import NEWEST_RUNTIME, OLDEST_RUNTIME

Balance = Literal["multiply-adds", "parameters"]
"""Quantity of which all segments get equal shares."""


@dataclass(frozen=True)
class Settings:
    """Settings of the compiler; :func:`delegraph_edgetpu.compile` explains each one.

    Raises:
        ArgumentError: a number is out of range, or a name is unknown.
    """

    segments: int = 1
    balance: Balance = "multiply-adds"
    intermediate_tensors: tuple[str, ...] = ()
    min_runtime_version: int = NEWEST_RUNTIME
    search: bool = False
    search_step: int = 1

    def __post_init__(self) -> None:
        version = self.min_runtime_version
        if not OLDEST_RUNTIME <= version <= NEWEST_RUNTIME:
            raise ArgumentError(
                f"min_runtime_version is {version}, expected {OLDEST_RUNTIME} to {NEWEST_RUNTIME}"
            )
        if self.segments < 1:
            raise ArgumentError(f"segments is {self.segments}, expected 1 or more")
        if self.search_step < 1:
            raise ArgumentError(f"search_step is {self.search_step}, expected 1 or more")
        known = get_args(Balance)
        if self.balance not in known:
            raise ArgumentError(f"balance is {self.balance!r}, expected one of {known}")
