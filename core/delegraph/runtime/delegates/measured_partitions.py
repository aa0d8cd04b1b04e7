"""Finds partitions that save no time, by timing each against the kernels that it replaces.

The model runs once on generated data. At each node of the delegate, that node and the original
nodes take turns on its inputs; the fastest of several runs counts. The delegate's time includes
copies of its outputs from its own buffers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import Delegate, DelegateFlags
from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegraphError, OperatorError, in_words
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.registration import Eval, Node, OpContext, Prepare, Registration
from delegraph.operators.tensor import Tensor
from delegraph.quantities import duration
from delegraph.runtime.delegates.delegate_node import with_own_prepare
from delegraph.runtime.delegates.incidents import Incidents, Supervision
from delegraph.runtime.delegates.original_nodes import OriginalNodes
from delegraph.runtime.preserved_tensors import PreservedTensors
from delegraph.runtime.shared_state import SharedState
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType

logger = logging.getLogger(__name__)

Clock = Callable[[], float]
"""Function that returns a time in seconds; only differences are used."""

BUDGET = 1.0
"""Seconds that measuring may take, or the time of two runs of each partition if that is longer."""

_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_MOST_ROUNDS = 50
_SHOWN = 10  # nodes listed in a log message
_LONGEST = 10.0  # seconds; on generated data, a loop may never end


def losing_nodes(
    subgraphs: Sequence[Subgraph], delegate: Delegate, *, clock: Clock = time.perf_counter
) -> dict[int, dict[int, Rejection]]:
    """Measure the delegate's partitions; return the nodes on which it saves no time.

    It is called when the delegate has just been applied. Partitions that cannot be measured are
    kept, and a warning says why; some models reject generated data. Partitions with nodes that
    rules pin to the delegate are kept, too. Afterwards every subgraph has to be allocated again;
    resources are as before.

    Returns:
        Mapping from subgraph and node index to a reason with the times; empty if every partition
        saves time.
    """
    if delegate.flags & DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE:
        return _nothing_measured(delegate, "it takes every node or none")
    session = subgraphs[0].session
    try:
        resources = {key: deepcopy(value) for key, value in session.resources.items()}
    except Exception as error:  # noqa: BLE001 - custom operators may keep anything there
        return _nothing_measured(delegate, f"resources cannot be copied: {in_words(error)}")
    trials = [
        _Trials(subgraph, delegate, clock)
        for subgraph in subgraphs
        if any(node.delegate is delegate for node, _ in subgraph.plan.steps())
    ]
    with _state_kept(session, resources):
        try:
            if trials:
                _run_all(subgraphs, trials)
        finally:
            _forget_allocation(subgraphs)
    for trial in trials:
        trial.report()
    return {trial.subgraph.spec.index: trial.lost for trial in trials if trial.lost}


def _nothing_measured(delegate: Delegate, why: str) -> dict[int, dict[int, Rejection]]:
    logger.warning("%s: kept without measuring: %s", delegate.name(), why)
    return {}


@contextmanager
def _state_kept(session: SharedState, resources: Mapping[Any, Any]) -> Iterator[None]:
    """Context in which *session* has no incidents or quarantines; its end restores the old ones.

    At the end, the resources of the session are *resources*.
    """
    incidents, supervision = session.incidents, session.supervision
    session.incidents = Incidents()  # failures on generated data do not count
    session.supervision = Supervision()
    try:
        yield
    finally:
        session.incidents, session.supervision = incidents, supervision
        session.resources.clear()
        session.resources.update(resources)


def _run_all(subgraphs: Sequence[Subgraph], trials: Sequence[_Trials]) -> None:
    """Run the model, then each subgraph alone whose *trials* still lack a measurement.

    *trials* are the measurements of each subgraph that has delegate nodes; they get a reason if
    their subgraph cannot run.
    """
    main = subgraphs[0]
    with suppress(DelegraphError):  # _run raises the error again, and returns it
        _allocate(main)  # this resizes called subgraphs, whose nodes may then be replaced
    share = BUDGET / sum(trial.count for trial in trials)
    for trial in trials:
        trial.begin(share)
    _forget_allocation(subgraphs)  # callers prepare the subgraphs that they call
    try:
        failure = _run(main)
        for trial in trials:
            trial.failure = failure
            if trial.pending and trial.subgraph is not main:
                trial.failure = _run(trial.subgraph)
    finally:
        for trial in trials:
            trial.end()


def _forget_allocation(subgraphs: Sequence[Subgraph]) -> None:
    for subgraph in subgraphs:
        subgraph.is_allocated = False


def _allocate(subgraph: Subgraph) -> None:
    """Allocate a subgraph as for a control-flow call, after applying removed delegates again."""
    subgraph.session.callees[subgraph.spec.index].allocate()


def _run(subgraph: Subgraph) -> str:
    """Run a subgraph on generated data; return the reason for a failure, or an empty text.

    Raises:
        CallCancelledError: the call in which this happens was asked to stop.
    """
    try:
        _allocate(subgraph)
        with _made_up_inputs(subgraph):
            subgraph.invoke()
    except Exception as error:  # noqa: BLE001 - kernels and delegates get random data here
        subgraph.session.cancellation.raise_if_requested()
        return in_words(error)
    return ""


@contextmanager
def _made_up_inputs(subgraph: Subgraph) -> Iterator[None]:
    """Context in which *subgraph*'s inputs have generated values; at its end, the old values."""
    inputs = [subgraph.tensors[i] for i in subgraph.inputs if i >= 0]
    kept = PreservedTensors(subgraph)
    lacking = [tensor for tensor in inputs if tensor.data is None]
    rng = np.random.default_rng(0)
    try:
        for tensor in inputs:
            _fill(tensor, rng)
        yield
    finally:
        for tensor in lacking:
            tensor.data = None
        kept.put_back()


def _fill(tensor: Tensor, rng: np.random.Generator) -> None:
    """Give *tensor*, an input, random values from *rng* that most models take.

    These are floats in [0, 1), or integers small enough to be indices.

    Raises:
        OperatorError: no values can be generated for its type.
    """
    if tensor.is_constant:
        return
    if tensor.type in OBJECT_TYPES:
        if tensor.type is not TensorType.STRING:
            raise OperatorError(f"no values for {tensor!r} can be made up")
        tensor.data = np.full(tensor.shape, b"", object)
    elif tensor.data is not None:
        tensor.data[...] = _values(tensor, rng)


def _values(tensor: Tensor, rng: np.random.Generator) -> NDArray[Any] | int:
    data: NDArray[Any] = tensor.data
    if data.dtype.kind in "fcV":  # V: bfloat16
        return rng.random(data.shape, np.float32).astype(data.dtype)
    if tensor.quantization is not None and tensor.type in _QUANTIZED:
        limits = np.iinfo(data.dtype)
        return rng.integers(limits.min, limits.max, data.shape, data.dtype, endpoint=True)
    return 0


class _Trials:
    """Measures the run times of the partitions of one subgraph, to find those that save no time.

    Attributes:
        subgraph: the subgraph.
        count: number of the delegate nodes.
        pending: indices of the delegate nodes that are not measured yet.
        lost: the rejection of each node of the model whose partition saves no time, by node index.
        failure: text that says why the subgraph could not be run; empty if it ran.
    """

    def __init__(self, subgraph: Subgraph, delegate: Delegate, clock: Clock) -> None:
        self.subgraph = subgraph
        self.pending = {n.index for n, _ in subgraph.plan.steps() if n.delegate is delegate}
        self.count = len(self.pending)
        self.lost: dict[int, Rejection] = {}
        self.failure = ""
        self._delegate = delegate
        self._clock = clock
        self._pinned = subgraph.session.pinned(subgraph.spec.index, delegate.name())
        self._share = 0.0
        self._end = inf
        self._replaced: list[tuple[Node, Registration]] = []
        self._read_by_others = {*subgraph.outputs}
        self._kept: list[str] = []  # why partitions were not measured
        self._num_lost = 0

    def begin(self, share: float) -> None:
        """Make the delegate's nodes measure themselves when they run, *share* seconds each."""
        self._share, self._end = share, self._clock() + _LONGEST
        plan = self.subgraph.plan
        for node, registration in list(plan.steps()):
            if node.delegate is self._delegate:
                self._replaced.append((node, registration))
                measuring = with_own_prepare(registration, self._measuring)
                plan.nodes[node.index] = node, measuring
            else:
                self._read_by_others.update(node.inputs)

    def end(self) -> None:
        """End the measurement: from their next preparation on, the nodes run unmeasured."""
        nodes = self.subgraph.plan.nodes
        for node, registration in self._replaced:
            if node.index < len(nodes) and nodes[node.index][0] is node:
                nodes[node.index] = node, registration

    def report(self) -> None:
        """Log the partitions kept without measurement, and how many partitions save time."""
        name = self._delegate.name()
        where = f"subgraph {self.subgraph.spec.index}"
        if self.pending:
            first = ", ".join(map(str, sorted(self.pending)[:_SHOWN]))
            more = f" and {len(self.pending) - _SHOWN} more" * (len(self.pending) > _SHOWN)
            why = self.failure or "they were not reached"
            self._kept.append(f"nodes {first}{more}: {why}")
        for reason in self._kept:
            logger.warning("%s, %s: kept without measuring: %s", name, where, reason)
        pay = self.count - self._num_lost
        logger.info("%s, %s: %d of %d partitions pay", name, where, pay, self.count)

    def _measuring(self, own: Prepare) -> Prepare:
        def prepare(context: OpContext, node: Node) -> Eval:
            step = own(context, node)
            return lambda: self._run(node, step)

        return prepare

    def _run(self, node: Node, step: Eval) -> None:
        if self._clock() > self._end:
            raise OperatorError(f"measuring took more than {_LONGEST:.0f} s")
        if node.index not in self.pending:
            step()
            return
        stop = self._clock() + self._share
        kernels = OriginalNodes(self.subgraph, node)
        variables = _Variables(self.subgraph)
        try:
            kernels.run()
        except Exception as error:  # noqa: BLE001 - custom kernels are others' code, too
            self._kept.append(f"node {node.index}: {in_words(error)}")
        else:
            self._compare(node, step, kernels, stop, variables)
        variables.put_back()
        self.pending.discard(node.index)
        step()

    def _compare(
        self, node: Node, step: Eval, kernels: OriginalNodes, stop: float, variables: _Variables
    ) -> None:
        """Run the delegate's *step* and the original *kernels* in turn until the time *stop*.

        *variables* restores the variables before each run.
        """
        tensors = self.subgraph.tensors
        copied = [tensors[i] for i in node.outputs if i in self._read_by_others]

        def delegated(clock: Clock) -> float:
            start = clock()
            step()
            for tensor in copied:
                self.subgraph.buffers.make_readable(tensor)
            return clock() - start

        delegated(self._clock)  # the first run takes longer
        mine = theirs = inf
        for _ in range(_MOST_ROUNDS):
            variables.put_back()
            mine = min(mine, delegated(self._clock))
            variables.put_back()
            theirs = min(theirs, kernels.timed_run(self._clock))
            if self._clock() >= stop:
                break
        nodes = {inner.index for inner, _ in self.subgraph.plan.model_nodes(node)}
        if mine >= theirs and nodes.isdisjoint(self._pinned):
            expected = f"less than the kernels' {duration(theirs)}"
            reason = Rejection("measured", actual=duration(mine), expected=expected)
            self._num_lost += 1
            self.lost.update(dict.fromkeys(sorted(nodes), reason))


class _Variables:
    """Saved values of the variables of a subgraph."""

    def __init__(self, subgraph: Subgraph) -> None:
        tensors = [subgraph.tensors[i] for i in subgraph.variables]
        self._values = [(t, t.data.copy()) for t in tensors if t.data is not None]

    def put_back(self) -> None:
        """Restore the saved values of the variables."""
        for tensor, value in self._values:
            tensor.data[...] = value
