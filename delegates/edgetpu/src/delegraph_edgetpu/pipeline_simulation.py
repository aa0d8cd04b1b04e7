"""A row of stations (functions) with queues between them; each station has a thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from delegraph.errors import StateError, in_words
from delegraph_edgetpu.errors import PipelineError


class _End:
    """Mark in a queue that no more items follow."""


class PipelineSimulation:
    """Passes items through functions (stations) in order, each of which runs in its own thread.

    After a failure at a station, earlier items continue to the end, and later items are dropped.

    Args:
        stations: functions that convert an item to the item for the next station.
        sizes: largest size of the queue before each station, and of the queue after the last
            station; 0 or less means no limit.

    Attributes:
        busy_seconds: seconds that each station has worked.
        finished: number of items that have left the last station.
        started_at: time at which the first item was added, by ``time.perf_counter()``; 0.0 before
            that.
        finished_at: time at which the latest of the finished items left the last station.
    """

    def __init__(self, stations: Sequence[Callable[[Any], Any]], sizes: Sequence[int]) -> None:
        self._stations = stations
        self._sizes = list(sizes)
        self._queues: list[deque[Any]] = [deque() for _ in sizes]
        self._changed = threading.Condition()
        self._is_ended = False
        self._is_stopped = False
        self._error: PipelineError | None = None
        self._idle_to = -1  # number of the last station that has finished
        self.busy_seconds = [0.0] * len(stations)
        self.finished = 0
        self.started_at = 0.0
        self.finished_at = 0.0

    def put(self, item: Any) -> bool:
        """Append *item*, after waiting for room in the first queue.

        The result is False, and nothing is appended, if :meth:`end` was called before.

        Raises:
            PipelineError: a station failed.
            StateError: the stations are stopped.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(0) or self._is_over)
            self._require_sound()
            if self._is_ended:
                return False
            self.started_at = self.started_at or time.perf_counter()
            self._append(0, item)
            return True

    def end(self) -> bool:
        """Declare that no more items will follow; return False if this was already declared.

        Raises:
            PipelineError: a station failed.
            StateError: the stations are stopped.
        """
        with self._changed:
            self._require_sound()
            if self._is_ended:
                return False
            self._is_ended = True
            self._append(0, _End())
            return True

    def take(self, timeout: float | None) -> Any:
        """Return the next item that leaves the last station; None after the last item.

        Raises:
            PipelineError: a station failed at this item.
            StateError: the stations are stopped.
            TimeoutError: no item arrived within *timeout* seconds.
        """
        with self._changed:
            queue = self._queues[-1]
            if not self._changed.wait_for(lambda: queue or self._is_stopped, timeout):
                raise TimeoutError(f"no result within {timeout} seconds")
            if self._is_stopped:
                raise _stopped()
            if isinstance(queue[0], _End):
                return None  # the end mark stays in the queue for later calls
            if isinstance(queue[0], PipelineError):
                raise queue[0].with_traceback(None)
            self._changed.notify_all()
            return queue.popleft()

    def resize(self, queue: int, size: int) -> None:
        """Change the size limit of queue number *queue*; its items remain."""
        with self._changed:
            self._sizes[queue] = size
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop all items, and end each thread when its station returns."""
        with self._changed:
            self._is_stopped = True
            for queue in self._queues:
                queue.clear()
            self._changed.notify_all()

    def work(self, position: int) -> None:
        """Run the station at *position* until the end, a failure, or a stop.

        This method is the function of the station's thread.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queues[position] or self._is_idle(position))
                if self._is_idle(position):
                    return
                item = self._queues[position].popleft()
                self._changed.notify_all()
            if not isinstance(item, _End | PipelineError):
                item = self._processed(position, item)
            if not self._hand_on(position, item) or isinstance(item, _End | PipelineError):
                return

    def _processed(self, position: int, item: Any) -> Any:
        start = time.perf_counter()
        try:
            return self._stations[position](item)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must reach the caller
            failure = PipelineError(f"segment {position}: {in_words(error)}", segment=position)
            failure.__cause__ = error
            return failure
        finally:
            self.busy_seconds[position] += time.perf_counter() - start

    def _hand_on(self, position: int, item: Any) -> bool:
        """Put *item* into the next station's queue; return whether the station must continue.

        The station must end after a failure or after :meth:`stop`.
        """
        with self._changed:
            if isinstance(item, PipelineError):
                self._error = self._error or item
                self._idle_to = max(self._idle_to, position)
                self._changed.notify_all()
            is_last_word = isinstance(item, _End | PipelineError)
            self._changed.wait_for(
                lambda: is_last_word or self._has_room(position + 1) or self._is_idle(position)
            )
            if self._is_stopped or (self._is_idle(position) and not is_last_word):
                return False
            self._append(position + 1, item)
            if position == len(self._stations) - 1 and not is_last_word:
                self.finished += 1
                self.finished_at = time.perf_counter()
            return True

    def _append(self, queue: int, item: Any) -> None:
        self._queues[queue].append(item)
        self._changed.notify_all()

    def _has_room(self, queue: int) -> bool:
        size = self._sizes[queue]
        return size <= 0 or len(self._queues[queue]) < size

    def _is_idle(self, position: int) -> bool:
        """Whether the station at *position* must stop.

        The station must stop after :meth:`stop`, and if only items after a failure remain.
        """
        return self._is_stopped or position <= self._idle_to

    @property
    def _is_over(self) -> bool:
        return self._is_stopped or self._is_ended or self._error is not None

    def _require_sound(self) -> None:
        if self._is_stopped:
            raise _stopped()
        if self._error is not None:
            raise self._error.with_traceback(None)


def _stopped() -> StateError:
    return StateError("the pipeline is closed")
