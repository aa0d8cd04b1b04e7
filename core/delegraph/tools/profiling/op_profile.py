"""Time of each operator: in run order, by time and by type; times inside delegates are separate.

Source:
    ProfileSummarizer, tflite/profiling/profile_summarizer.cc; StatsCalculator,
    tensorflow/tsl stats_calculator.cc. Unlike there, times are not cut to whole microseconds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from delegraph.delegation.html_tables import html_table
from delegraph.delegation.placement import node_numbers
from delegraph.json_records import JsonRecord
from delegraph.runtime.execution.profile import ProfileEvent
from delegraph.tools.benchmarking.run_control import RunControl
from delegraph.tools.benchmarking.stages import Stage
from delegraph.tools.latency import Latency
from delegraph.tools.profiling.recording import FEW_RUNS, Recording, record
from delegraph.tools.profiling.sections import NodeTime, Section, sections_json, total_bytes
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup


@dataclass(frozen=True, slots=True)
class OpProfile(JsonRecord):
    """Time of each operator of a model.

    Attributes:
        setup: the measured set-up, as ``Setup.to_json`` returns it.
        placement: summary of the placement in one line.
        runs: seconds of each run of the whole model, while each node is timed.
        stages: stages of initialisation, until the model was ready.
        sections: first the called subgraph, then other subgraphs, then the insides of delegates.
            The times of other subgraphs are included in the times of the nodes that call them.
        outside: seconds of a run outside of nodes: between nodes, and in parts that are not timed;
            the median over the runs.
        notes: texts about missing data.
        saved: seconds of a run by which the times of the first section's nodes exceed the elapsed
            time, because asynchronous nodes overlap others; the median over the runs.
        cautions: reasons why the times may mislead, in words.
    """

    setup: dict[str, Any]
    placement: str
    runs: Latency
    stages: tuple[Stage, ...] = field(metadata={"json_key": "initialization"})
    sections: tuple[Section, ...] = field(metadata={"json_value": sections_json})
    outside: float = field(metadata={"json_key": "outside_seconds"})
    notes: tuple[str, ...]
    saved: float = field(default=0.0, metadata={"json_key": "saved_seconds"})
    cautions: tuple[str, ...] = ()

    def between_rows(self, inside: Section) -> float:
        """Seconds per run of a delegate's partitions outside of the rows of section *inside*."""
        told = {node.partition for node in inside.nodes}
        whole = sum(
            node.seconds
            for section in self.sections
            if section.delegate is None
            for node in section.nodes
            if node.delegate == inside.delegate and node.partition in told
        )
        return whole - inside.seconds

    def _repr_html_(self) -> str:
        """Return tables of the nodes of every section, slowest first, which notebooks display."""
        columns = ("operator", "name", "delegate", "nodes", "ms a run", "%")
        tables = []
        for section in self.sections:
            nodes = section.by_time()
            figures = zip(nodes, section.shares(nodes), strict=True)
            rows = [
                (
                    *(n.node_type, n.name, n.delegate, node_numbers(n.model_nodes)),
                    *(1e3 * n.seconds, 100 * share),
                )
                for n, (share, _) in figures
            ]
            title = f"{section.title}, {1e3 * section.seconds:.4g} ms a run"
            tables.append(html_table(title, columns, rows))
        return "".join(tables)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dictionary per node, in run order, section by section."""
        return [row for section in self.sections for row in _rows(section)]

    def to_csv(self) -> str:
        """Return :meth:`rows` as CSV text."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return text.getvalue()


_FIGURES: dict[str, Callable[[NodeTime], object]] = {
    "run_order": lambda node: node.run_order,
    "node_type": lambda node: node.node_type,
    "name": lambda node: node.name,
    "subgraph": lambda node: node.subgraph,
    "node": lambda node: node.node_index,
    "delegate": lambda node: node.delegate,
    "partition": lambda node: node.partition,
    "model_nodes": lambda node: " ".join(map(str, node.model_nodes)),
    "first_ms": lambda node: _milliseconds(node.calls.first),
    "avg_ms": lambda node: _milliseconds(node.calls.mean),
    "min_ms": lambda node: _milliseconds(node.calls.min),
    "max_ms": lambda node: _milliseconds(node.calls.max),
    "std_ms": lambda node: _milliseconds(node.calls.std),
    "times_called": lambda node: node.times_called,
    "ms_per_run": lambda node: _milliseconds(node.seconds),
    "median_ms": lambda node: _milliseconds(node.calls.median),
}

COLUMNS = ("section", *_FIGURES, "share", "output_bytes")
"""Names of the columns of :meth:`OpProfile.rows`.

``avg_ms`` is the mean of a single call, as in ``benchmark_model``; ``median_ms`` is its median, by
which ``ms_per_run`` and shares are.
"""


def op_profile(
    setup: Setup,
    inputs: InputRequest | None = None,
    control: RunControl = FEW_RUNS,
    *,
    signature: str | None = None,
    progress: Progress = untold,
) -> OpProfile:
    """Measure the time of each operator of a model; for arguments, see :func:`record`.

    Raises:
        ArgumentError: an input, a signature or an argument does not fit the model.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or it fails.
    """
    return profile_of(record(setup, inputs, control, signature=signature, progress=progress))


def profile_of(recording: Recording) -> OpProfile:
    """Return the time of each operator in a recording."""
    sections = tuple(_sections(recording))
    runs = Latency.of([run.duration / 1e9 for run in recording.runs])
    each = [_busy_and_saved(recording, run.events) for run in recording.runs]
    outside = [run.duration - busy for run, (busy, _) in zip(recording.runs, each, strict=True)]
    return OpProfile(
        recording.setup.to_json(),
        str(recording.placement),
        runs,
        recording.stages,
        sections,
        median(outside) / 1e9,
        tuple(recording.notes()),
        median(saved for _, saved in each) / 1e9,
        recording.cautions,
    )


def _busy_and_saved(recording: Recording, events: Iterable[ProfileEvent]) -> tuple[int, int]:
    """Return nanoseconds in which at least one node ran, and nanoseconds that overlapping saved.

    Events overlap if nodes are asynchronous.
    """
    entry = recording.entry
    own = [e for e in events if e.subgraph == entry and not recording.is_inside(e)]
    busy = end = 0
    for event in sorted(own, key=lambda event: event.start):
        busy += max(event.start + event.duration - max(event.start, end), 0)
        end = max(end, event.start + event.duration)
    return busy, sum(event.duration for event in own) - busy


def _sections(recording: Recording) -> Iterator[Section]:
    groups: dict[tuple[bool, int | str], list[ProfileEvent]] = {}
    for event in (event for run in recording.runs for event in run.events):
        inside = recording.is_inside(event)
        key = str(event.delegate) if inside else event.subgraph
        groups.setdefault((inside, key), []).append(event)
    entry = recording.entry
    for inside, key in sorted(groups, key=lambda k: (k[0], k[1] != entry, str(k[1]).zfill(9))):
        nodes = tuple(_nodes(recording, groups[inside, key]))
        if isinstance(key, str):
            yield Section(f"inside of {key}", None, key, nodes)
        else:
            name = recording.model.subgraphs[key].name
            title = f"subgraph {key}" + (f" ({name})" if name else "")
            yield Section(title, key, None, nodes)


def _nodes(recording: Recording, events: Sequence[ProfileEvent]) -> Iterator[NodeTime]:
    calls: dict[tuple[int, int, tuple[int, ...], str], list[ProfileEvent]] = {}
    for event in sorted(events, key=lambda event: event.start):
        key = (event.subgraph, event.node_index, event.fused, event.name)
        calls.setdefault(key, []).append(event)
    for order, own in enumerate(calls.values()):
        first = own[0]
        partition = recording.partition(first)
        outputs = recording.borders(first)[1]
        tensors = [recording.tensor(first.subgraph, index) for index in outputs]
        names = ", ".join(tensor.name for tensor in tensors if tensor is not None)
        yield NodeTime(
            first.subgraph,
            first.node_index,
            first.name,
            f"[{names}]:{first.node_index}",
            order,
            first.delegate,
            None if partition is None else partition.index,
            recording.model_nodes(first),
            Latency.of([event.duration / 1e9 for event in own]),
            len(own) / len(recording.runs),
            total_bytes(None if tensor is None else tensor.bytes for tensor in tensors),
        )


def _rows(section: Section) -> Iterator[dict[str, Any]]:
    for node, (share, _) in zip(section.nodes, section.shares(section.nodes), strict=True):
        figures = {name: figure(node) for name, figure in _FIGURES.items()}
        ends = {"share": round(share, 6), "output_bytes": node.output_bytes}
        yield {"section": section.title, **figures, **ends}


def _milliseconds(seconds: float) -> float:
    return round(1e3 * seconds, 6)
