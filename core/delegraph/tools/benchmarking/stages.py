"""Time and memory of the stages before and while a model runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.clock import Clock
from delegraph.tools.benchmarking.memory import Memory, memory, reset_peak


@dataclass(frozen=True, slots=True)
class Stage(JsonRecord):
    """Time and memory of one stage.

    Attributes:
        name: ``create delegates``, ``load``, ``apply delegates``, ``allocate``, ``invoke``.
        seconds: how long it took.
        memory: bytes of this process in RAM at its end; None where the system does not tell.
        peak: most bytes while it lasted; None where the system does not tell.
    """

    name: str
    seconds: float
    memory: int | None
    peak: int | None


@dataclass(slots=True)
class Stages:
    """Takes time and memory at the end of each stage; the first begins when this is made.

    Reading the memory is in no stage's time.

    Attributes:
        clock: where times come from.
        read: tells the memory.
        reset: makes the peak what is in RAM now, where the system lets it.
        before: memory when the first one begins.
        done: the stages so far.
    """

    clock: Clock
    read: Callable[[], Memory] = memory
    reset: Callable[[], bool] = reset_peak
    before: Memory = field(init=False)
    done: list[Stage] = field(init=False)
    _begin: float = field(init=False)
    _has_peaks: bool = field(init=False)

    def __post_init__(self) -> None:
        self.done = []
        self.before = self.read()
        self._next()

    def end(self, name: str) -> None:
        """End the current stage under *name*, and begin the next one."""
        seconds = self.clock.now() - self._begin
        now = self.read()
        highest = max((s.peak or 0 for s in self.done), default=self.before.peak or 0)
        # What cannot be reset says something of this stage only where it is higher than before.
        is_own = self._has_peaks or (now.peak or 0) > highest
        self.done.append(Stage(name, seconds, now.current, now.peak if is_own else None))
        self._next()

    def skip(self) -> None:
        """Exclude the time since the current stage began."""
        self._next()

    def _next(self) -> None:
        self._has_peaks = self.reset()
        self._begin = self.clock.now()
