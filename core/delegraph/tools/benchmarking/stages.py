"""Time and memory of each stage of making a model ready and running it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.memory import Memory, memory, reset_peak
from delegraph.tools.benchmarking.run_control import Clock


@dataclass(frozen=True, slots=True)
class Stage(JsonRecord):
    """Time and memory of one stage of the work.

    Attributes:
        name: ``create delegates``, ``load``, ``apply delegates``, ``allocate``, ``invoke``.
        seconds: duration of the stage.
        memory: resident bytes of this process at the end of the stage; None if unknown.
        peak: largest number of resident bytes during the stage; None if unknown.
    """

    name: str
    seconds: float
    memory: int | None
    peak: int | None


@dataclass(slots=True)
class Stages:
    """Measures time and memory of each stage; the first stage begins with this object.

    The time for reading the memory is not counted.

    Attributes:
        clock: source of the times.
        read: function that returns the memory of this process.
        reset: function that sets the peak to the present memory, if the system allows it.
        before: memory when the first stage begins.
        done: the finished stages.
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
        """End the present stage, give it the name *name*, and begin the next one."""
        seconds = self.clock.now() - self._begin
        now = self.read()
        highest = max((s.peak or 0 for s in self.done), default=self.before.peak or 0)
        # A peak that cannot be reset belongs to this stage only if it rose.
        is_own = self._has_peaks or (now.peak or 0) > highest
        self.done.append(Stage(name, seconds, now.current, now.peak if is_own else None))
        self._next()

    def skip(self) -> None:
        """Start the present stage again now, so that the time until now is not counted."""
        self._next()

    def _next(self) -> None:
        self._has_peaks = self.reset()
        self._begin = self.clock.now()
