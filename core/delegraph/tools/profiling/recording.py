"""Timed runs of a model with their profile events, from which every profile is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter_ns

import numpy as np

from delegraph.delegation.placement import NodePlacement, PartitionPlacement, Placement
from delegraph.graph.model import Model
from delegraph.runtime.execution.profile import Profile, ProfileEvent
from delegraph.tools.benchmarking.cautions import busy
from delegraph.tools.benchmarking.machine import OtherWork, machine
from delegraph.tools.benchmarking.run_control import RunControl, run_times
from delegraph.tools.benchmarking.stages import Stage
from delegraph.tools.benchmarking.timed_model import TimedModel, timed_model
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

FEW_RUNS = RunControl(runs=50, min_seconds=0, max_seconds=30.0, warmup_runs=3, warmup_seconds=0.2)
"""Settings for enough runs to compute a mean time of each operator."""

MOST_EVENTS = 100_000
"""Largest number of events that are kept; viewers open larger traces slowly."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the model, with its profile events.

    Attributes:
        start: start in nanoseconds of ``time.perf_counter_ns``.
        duration: nanoseconds of computation, without copying inputs.
        events: events in the order in which they ended.
    """

    start: int
    duration: int
    events: tuple[ProfileEvent, ...]


@dataclass(frozen=True, slots=True)
class TensorFigures:
    """Type, shape and size of a tensor after the runs.

    Attributes:
        name: name of the tensor; may be empty.
        dtype: element type.
        shape: dimensions.
        bytes: size in bytes; None for strings.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int | None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Recording:
    """Timed runs of a set-up, with the profile events of kernels and delegates.

    Attributes:
        setup: the set-up that ran.
        entry: index of the subgraph that was called.
        model: the model as the file declares it.
        placement: delegate or kernel of each node.
        stages: stages until the model was ready.
        runs: the measured runs, without warm-up.
        tensors: mapping from subgraph and index to the figures of the file's tensor.
        cautions: reasons why the times may mislead, in words.
    """

    setup: Setup
    entry: int
    model: Model
    placement: Placement
    stages: tuple[Stage, ...]
    runs: tuple[Run, ...]
    tensors: Mapping[tuple[int, int], TensorFigures]
    cautions: tuple[str, ...] = ()

    @cached_property
    def _nodes(self) -> dict[tuple[int, int], NodePlacement]:
        return {(node.subgraph, node.index): node for node in self.placement.nodes}

    @cached_property
    def _own_nodes(self) -> dict[tuple[int, int], PartitionPlacement]:
        return {(p.subgraph, p.node_index): p for p in self.placement.partitions}

    def node(self, event: ProfileEvent) -> NodePlacement | None:
        """Return the model's node that an event timed; None for a delegate's internal event."""
        return self._nodes.get((event.subgraph, event.node_index))

    def is_inside(self, event: ProfileEvent) -> bool:
        """Whether an event is inside a delegate node, so that the node's time includes it."""
        return event.delegate is not None and self.node(event) is not None

    def partition(self, event: ProfileEvent) -> PartitionPlacement | None:
        """Return the partition whose computation, or a part of it, an event timed.

        The result is None if no delegate computed the event's node.
        """
        node = self.node(event)
        if node is None:
            return self._own_nodes.get((event.subgraph, event.node_index))
        return None if node.partition is None else self.placement.partitions[node.partition]

    def model_nodes(self, event: ProfileEvent) -> tuple[int, ...]:
        """Return the indices of the model's nodes whose computation an event timed."""
        if self.node(event) is not None:
            return (event.node_index, *event.fused)
        partition = self.partition(event)
        return () if partition is None else partition.nodes

    def borders(self, event: ProfileEvent) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the inputs and outputs of an event's nodes: tensors shared with other nodes."""
        partition = self.partition(event)
        if self.node(event) is None:
            return ((), ()) if partition is None else (partition.inputs, partition.outputs)
        operators = self.model.subgraphs[event.subgraph].operators
        own = [operators[i] for i in self.model_nodes(event)]
        written = {i for op in own for i in op.outputs}
        read = dict.fromkeys(i for op in own for i in op.inputs if i >= 0 and i not in written)
        return tuple(read), tuple(i for i in own[-1].outputs if i >= 0)

    def tensor(self, subgraph: int, index: int) -> TensorFigures | None:
        """Return the figures of tensor *index*; None for a tensor that a delegate added."""
        return self.tensors.get((subgraph, index))

    def total_bytes(self, subgraph: int, indices: Iterable[int]) -> int:
        """Return the number of bytes of the tensors *indices*; unknown sizes count as 0."""
        tensors = (self.tensor(subgraph, index) for index in indices)
        return sum(tensor.bytes or 0 for tensor in tensors if tensor is not None)

    def notes(self) -> Iterator[str]:
        """Yield texts about missing data."""
        if self.setup.runtime != "delegraph":
            yield (
                "LiteRT does not tell how long its own kernels and XNNPACK take: only delegates "
                "written in Python are listed, all else is the time outside of nodes"
            )
        told = {e.delegate for run in self.runs for e in run.events if self.is_inside(e)}
        ran = {e.delegate for run in self.runs for e in run.events if e.delegate is not None}
        for name in sorted(ran - told):
            yield f"{name} does not tell how long each node inside of its partitions takes"


def record(
    setup: Setup,
    inputs: InputRequest | None = None,
    control: RunControl = FEW_RUNS,
    *,
    signature: str | None = None,
    progress: Progress = untold,
) -> Recording:
    """Run a set-up several times and record the timed events of kernels, delegates and others.

    Args:
        setup: a model, and the runtime, delegates and threads that run it.
        inputs: values for the inputs; by default random ones as in ``benchmark_model``.
        control: number and duration of runs; at least one run, and at most :data:`MOST_EVENTS`
            events.
        signature: name of the signature to call; None means the whole model.
        progress: function that is called between the runs.

    Raises:
        ArgumentError: an input, a signature or an argument does not fit the model.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or it fails.
    """
    file = setup.loaded_model()
    where = machine()  # with the load before the runs
    with timed_model(setup, inputs, signature=signature) as model:
        others = OtherWork()
        runs = _runs(model, control, progress)
        seen = busy(others.cores(), where)
        return Recording(
            setup,
            _entry(file, signature),
            file,
            model.placement,
            tuple(model.stages.done),
            tuple(runs),
            _tensors(model, file),
            (seen,) if seen else (),
        )


def _runs(model: TimedModel, control: RunControl, progress: Progress) -> list[Run]:
    runs: list[Run] = []
    with model.interpreter.profile(whole_partitions=True) as profile:

        def run() -> float:
            runs.append(_run(model, profile))
            return runs[-1].duration / 1e9

        # The warm-up is profiled too, so that delegates do their one-time work for profiles in it.
        warm_up = replace(control.warm_up, runs=max(1, control.warmup_runs))
        run_times(run, warm_up, model.clock, lambda done: progress("warming up", done, 1.0))
        most = max(1, MOST_EVENTS // max(1, len(runs[-1].events)))
        runs.clear()
        few = replace(control, runs=min(max(1, control.runs), most), min_seconds=0.0)
        run_times(run, few, model.clock, lambda done: progress("profiling", done, 1.0))
    return runs


def _run(model: TimedModel, profile: Profile) -> Run:
    profile.events.clear()
    model.call.fill([given.values for given in model.inputs])
    start = perf_counter_ns()
    model.call.invoke()
    return Run(start, perf_counter_ns() - start, tuple(profile.events))


def _entry(model: Model, signature: str | None) -> int:
    keys = {found.key: found.subgraph_index for found in model.signatures}
    return 0 if signature is None else keys[signature]


def _tensors(model: TimedModel, file: Model) -> dict[tuple[int, int], TensorFigures]:
    """Return type, shape and size of each tensor in the file, by subgraph and tensor index.

    Types and shapes are those that the interpreter has now.
    """
    found = {}
    for spec in file.subgraphs:
        for details in model.interpreter.get_tensor_details(spec.index):
            index = int(details["index"])
            if index < len(spec.tensors):
                dtype, shape = np.dtype(details["dtype"]), tuple(details["shape"].tolist())
                size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
                is_text = dtype.kind in "SO"
                found[spec.index, index] = TensorFigures(
                    spec.tensors[index].name,
                    spec.tensors[index].type.name,
                    shape,
                    None if is_text else size,
                )
    return found
