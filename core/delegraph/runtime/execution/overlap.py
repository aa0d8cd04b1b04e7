"""Starts asynchronous nodes, and waits for them while other nodes run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from delegraph.errors import in_words
from delegraph.operators.asynchronous import AsyncEval, Started
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.runtime.execution.calls import Cancellation
from delegraph.runtime.execution.node_errors import cause_of
from delegraph.runtime.execution.schedule import Schedule

logger = logging.getLogger(__name__)

Action = tuple[int, Eval]
"""An evaluation to run, and the position of the node whose failure it may show."""


class Overlap:
    """Runs nodes by a schedule, so that asynchronous nodes overlap with others.

    When a run ends, even by an error, no node runs any more. A node that still writes memory in the
    background would corrupt the next run. So the run waits for all nodes. A second interrupt may
    end this wait, too, so the next user of the memory calls :meth:`settle` first.

    Args:
        schedule: order of the nodes, and the positions at which asynchronous nodes are awaited.
        nodes: nodes in the order of the schedule.
        evals: evaluations of the nodes, in the same order.

    Attributes:
        meanwhile: mapping from the index of an asynchronous node to the indices of nodes that run
            at the same time.
        held: mapping from a position to tensors that asynchronous nodes may still read while the
            node there runs.
    """

    def __init__(
        self,
        schedule: Schedule,
        nodes: Sequence[tuple[Node, Registration]],
        evals: Sequence[Eval],
    ) -> None:
        self._waits = schedule.waits
        self._is_started = schedule.overlaps().keys()
        self.meanwhile = {
            nodes[start][0].index: frozenset(nodes[i][0].index for i in positions)
            for start, positions in schedule.overlaps().items()
        }
        self.held = _held(schedule, nodes)
        self._nodes = nodes
        self._in_flight: dict[int, Started] = {}
        self._actions = list(self._made(evals))

    def run(
        self,
        evals: Sequence[Eval] | None,
        cancellation: Cancellation,
        failed: Callable[[int, Exception], Exception],
    ) -> None:
        """Run the nodes in the order of the schedule, with its waits.

        Args:
            evals: evaluations to run in place of the nodes' own; None for the nodes' own.
            cancellation: stop request, which is read before each node and each wait.
            failed: function that returns the error to raise when the node at a position fails.
        """
        self._drain(())
        position = 0
        try:
            actions = self._actions if evals is None else self._made(evals)
            for position, act in actions:  # noqa: B007 - read by except
                if cancellation.reason:
                    cancellation.raise_if_requested()
                act()
        except Exception as error:  # noqa: BLE001 - raised on as the node's
            self._drain((position,))
            raise failed(position, error) from cause_of(error)
        except BaseException:
            cancellation.request()  # kernels that check for it then end sooner
            self._drain(())
            raise

    def settle(self) -> None:
        """Wait until all started nodes have ended; their errors are kept for :meth:`run`."""
        for started in self._in_flight.values():
            started.settle()

    def _drain(self, known: Sequence[int]) -> None:
        """Wait for all evaluations that were started, and drop their results.

        Args:
            known: positions of nodes whose errors are already known; errors of other nodes are
                logged.
        """
        while self._in_flight:
            position, started = next(iter(self._in_flight.items()))
            error = started.outcome()
            self._in_flight.pop(position, None)
            if error is not None and position not in known:
                node, registration = self._nodes[position]
                text = "node %d (%s) failed as well, in an invoke that had failed already: %s"
                logger.warning(text, node.index, registration.name, in_words(error))
            del error

    def _made(self, evals: Sequence[Eval]) -> Iterator[Action]:
        """Yield actions in order: await a node, start a node, or run a node."""
        in_flight, waits = self._in_flight, self._waits
        for position, step in enumerate(evals):
            yield from ((i, _finishing(in_flight, i, evals[i])) for i in waits.get(position, ()))
            is_started = position in self._is_started
            yield position, _starting(in_flight, position, step) if is_started else step
        yield from ((i, _finishing(in_flight, i, evals[i])) for i in waits.get(len(evals), ()))


def _starting(in_flight: dict[int, Started], position: int, step: Eval) -> Eval:
    assert isinstance(step, AsyncEval), "the schedule starts asynchronous nodes only"

    def start() -> None:
        in_flight[position] = Started(step.start())

    return start


def _finishing(in_flight: dict[int, Started], position: int, step: Eval) -> Eval:
    assert isinstance(step, AsyncEval), "the schedule waits for asynchronous nodes only"

    def finish() -> None:
        step.finish(in_flight[position])
        del in_flight[position]

    return finish


def _held(
    schedule: Schedule, nodes: Sequence[tuple[Node, Registration]]
) -> dict[int, tuple[int, ...]]:
    """Inputs of asynchronous nodes, by the last position in *schedule* that overlaps their node.

    The inputs are tensor indices; they must stay unchanged until that position has run.
    """
    found: dict[int, tuple[int, ...]] = {}
    for start, meanwhile in schedule.overlaps().items():
        found[meanwhile[-1]] = (*found.get(meanwhile[-1], ()), *nodes[start][0].inputs)
    return found
