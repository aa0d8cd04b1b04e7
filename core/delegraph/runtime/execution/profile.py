"""Times of each node's runs: the profile of one or several invokes.

Source:
    OPERATOR_INVOKE_EVENT, tflite/core/api/profiler.h.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from delegraph.delegation.delegate import DelegateFlags
from delegraph.delegation.html_tables import html_table
from delegraph.lazy_dataclass import dataclass, field
from delegraph.operators.asynchronous import AnyEvent, AsyncEval, Started
from delegraph.operators.registration import Eval, Node, Registration


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """Start and duration of one run of one node.

    Attributes:
        name: operator name, or the delegate's for a delegate node.
        subgraph: index of the subgraph.
        node_index: index of the node. Delegates with ``PER_OPERATOR_PROFILING`` record the model's
            nodes; otherwise it is the delegate node's own index.
        start: time at the beginning, in nanoseconds of ``time.perf_counter_ns``.
        duration: nanoseconds of the run. The run of an asynchronous node ends when its Future is
            done, or when the wait for another kind of event is over.
        delegate: name of the delegate that ran the node; None for Delegraph's kernels.
        fused: indices of the model's other nodes that were computed together with this node.
    """

    name: str
    subgraph: int
    node_index: int
    start: int
    duration: int
    delegate: str | None = None
    fused: tuple[int, ...] = ()


@dataclass(slots=True)
class Profile:
    """Profile events in the order in which they ended; ``Interpreter.profile`` records them.

    ``print`` shows the time of each node, slowest first. Asynchronous nodes are in the order in
    which they were waited for.

    Attributes:
        events: one for each run of a node.
        whole_partitions: whether a delegate node is recorded as a whole even if the delegate
            records the model's nodes in it.
        replaced: the model's nodes that a delegate node replaces, by subgraph and node index.
        invokes: number of invokes; 0 in ``LiteRtInterpreter``, where only delegate nodes tell.
    """

    events: list[ProfileEvent] = field(default_factory=list)
    whole_partitions: bool = False
    replaced: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    invokes: int = 0

    def rows(self) -> list[dict[str, Any]]:
        """Return the events as dictionaries, suitable for a data frame; times in nanoseconds."""
        return [asdict(event) for event in self.events]

    def __str__(self) -> str:
        """Return a table of the time of each node, slowest first."""
        rows = [
            (
                name,
                f"{subgraph}:{nodes}",
                delegate or "-",
                f"{times}",
                f"{mean:.3f} ms",
                f"{share:.1f} %",
            )
            for name, subgraph, nodes, delegate, times, mean, share in self._by_node()
        ]
        table = [("operator", "node", "delegate", "times", "mean", "share"), *rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [f"Profile of {len(self.events)} events"]
        for row in table:
            cells = map(str.ljust, row[:3], widths), map(str.rjust, row[3:], widths[3:])
            lines.append("  ".join(cell for some in cells for cell in some))
        total = sum(event.duration for event in self.events) / 1e6
        invokes = f" in {self.invokes} invoke{'s' * (self.invokes > 1)}" if self.invokes else ""
        lines.append(f"total {total:.3f} ms{invokes}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table of the time of each node, slowest first, which notebooks display."""
        columns = ("operator", "subgraph", "node", "delegate", "times", "mean ms", "%")
        return html_table(f"Profile of {len(self.events)} events", columns, self._by_node())

    def _by_node(self) -> list[tuple[str, int, str, str | None, int, float, float]]:
        """Return the rows of the tables: facts of a node, its runs, mean ms and share in %."""
        times: dict[tuple[str, int, str, str | None], list[int]] = {}
        for event in self.events:
            key = (event.name, event.subgraph, self._model_nodes(event), event.delegate)
            times.setdefault(key, []).append(event.duration)
        total = sum(event.duration for event in self.events) or 1
        return [
            (*key, len(found), sum(found) / len(found) / 1e6, 100 * sum(found) / total)
            for key, found in sorted(times.items(), key=lambda item: -sum(item[1]))
        ]

    def _model_nodes(self, event: ProfileEvent) -> str:
        """Indices of the model's nodes that *event* timed, as text."""
        own = (event.node_index, *event.fused)
        nodes = self.replaced.get((event.subgraph, event.node_index), own)
        return ",".join(map(str, nodes[:8])) + (",..." if len(nodes) > 8 else "")

    def record(
        self,
        run_steps: Callable[[Callable[[Eval, Node, Registration], Eval]], None],
        subgraph: int,
        model_nodes: Callable[[Node], Iterable[tuple[Node, Registration]]],
        *,
        is_forced: bool,
    ) -> None:
        """Run a subgraph once and add an event for each node.

        Args:
            run_steps: function that runs the subgraph; it gets the function that wraps each step.
            subgraph: index of the subgraph.
            model_nodes: function that returns the model's nodes that a node computes.
            is_forced: record delegate nodes as a whole, as in :meth:`timed`.
        """

        def wrap(step: Eval, node: Node, registration: Registration) -> Eval:
            nodes = [] if node.delegate is None else [n.index for n, _ in model_nodes(node)]
            return self.timed(step, node, registration, subgraph, nodes, is_forced=is_forced)

        before = self.invokes
        run_steps(wrap)
        self.invokes = before + 1  # runs of subgraphs within this one do not count

    def add(
        self,
        name: str,
        subgraph: int,
        node_index: int,
        start: int,
        duration: int,
        delegate: str | None = None,
        fused: tuple[int, ...] = (),
    ) -> None:
        """Append an event; the arguments are the fields of :class:`ProfileEvent`."""
        event = ProfileEvent(name, subgraph, node_index, start, duration, delegate, fused)
        self.events.append(event)

    def timed(
        self,
        step: Eval,
        node: Node,
        registration: Registration,
        subgraph: int,
        replaced: Sequence[int],
        *,
        is_forced: bool,
    ) -> Eval:
        """Return *step* of a node of *subgraph*, wrapped so that each run adds an event.

        *replaced* are the model's nodes that a delegate node replaces; others have none.

        A delegate with ``PER_OPERATOR_PROFILING`` adds its own events instead, unless *is_forced*
        or the profile is to have both.
        """
        delegate: Any = node.delegate
        name = None if delegate is None else delegate.name()
        own_events = delegate is not None and bool(
            delegate.flags & DelegateFlags.PER_OPERATOR_PROFILING
        )
        if own_events and not (is_forced or self.whole_partitions):
            return step
        if replaced:
            self.replaced[subgraph, node.index] = tuple(replaced)

        def add(start: int, end: int) -> None:
            self.add(registration.name, subgraph, node.index, start, end - start, name)

        def timed_step() -> None:
            start = time.perf_counter_ns()
            step()
            add(start, time.perf_counter_ns())

        return _timed_async(step, timed_step, add) if isinstance(step, AsyncEval) else timed_step


def _timed_async(step: AsyncEval, timed_step: Eval, add: Callable[[int, int], None]) -> AsyncEval:
    """Return *step*, wrapped so that *add* gets the start and end of each run.

    The end is the time at which the node's Future was done. For another kind of event, it is the
    time at which the wait was over.

    Args:
        step: the asynchronous step of a node.
        timed_step: the same step, run at once and timed.
        add: function that gets the start and end of each run, in nanoseconds.
    """
    start = 0
    end: int | None = None

    def note_end(_: object) -> None:
        nonlocal end
        end = time.perf_counter_ns()

    def timed_start() -> AnyEvent:
        nonlocal start, end
        start, end = time.perf_counter_ns(), None
        event = step.start()
        if isinstance(event, Future):
            event.add_done_callback(note_end)
        return event

    def timed_finish(started: Started) -> None:
        step.finish(started)
        add(start, time.perf_counter_ns() if end is None else end)

    return AsyncEval(timed_step, timed_start, timed_finish)
