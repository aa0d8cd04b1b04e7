"""Measured time of each operator, and the least time in which the processor could compute it.

The least time follows from a roofline. Products take at least their number divided by the peak rate
of their type. Each constant, and each value at the border of the nodes, is read or written at least
once. The rate is that of the memory level that holds the value. Products and accesses go on at the
same time, so the longer time counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar, NamedTuple

from delegraph.graph import OperatorSpec, SubgraphSpec, TensorSpec, macs_of
from delegraph.json_records import JsonRecord
from delegraph.tools import Recording
from delegraph_numba_cpu.roof.processor import ProcessorRoof

LEAST_SHARE, LEAST_OF_ROOF = 0.05, 0.6
"""Share of the time above which, and of the roof below which, an operator is a finding."""

LEAST_SECONDS = 20e-6
"""Least seconds of an operator for a finding, because timing adds up to 2 microseconds."""

_EIGHT_BITS = {"INT8", "UINT8", "INT4", "INT2"}
_PARTLY_READ = {"EMBEDDING_LOOKUP", "GATHER", "GATHER_ND", "SLICE", "STRIDED_SLICE"}


class Work(NamedTuple):
    """Least work of some nodes: multiply-accumulates, and bytes that must be read or written.

    Attributes:
        float32, int8: multiply-accumulates of each type. Products by 8-bit or 4-bit weights count
            as int8, also where activations are floats or have 16 bits.
        constants: bytes of constants.
        values: bytes of values that the nodes read from others, and that others read.
    """

    float32: int = 0
    int8: int = 0
    constants: int = 0
    values: int = 0


@dataclass(frozen=True, slots=True)
class OperatorRoof(JsonRecord):
    """Time of a node, or of nodes that are computed together, and its share of the roof.

    Partitions of delegates other than numba_cpu have a time, but no roof.

    Attributes:
        nodes: indices of the nodes.
        operators: names of the operators, joined by ``+``.
        delegate: name of the delegate that ran the nodes; None for the core's kernels.
        shape: shape of the last node's first output.
        seconds: measured time of the nodes, the least of all runs.
        share: share of the time of all operators and partitions, 0 to 1.
        macs_float32, macs_int8: numbers of multiply-accumulates.
        bytes: bytes that are read or written at least.
        roof_seconds: least time in which the processor could compute the nodes, in seconds. None
            for partitions of other delegates, which may use another device.
        bound: limit from which *roof_seconds* follows: ``compute``, or a level of memory. The
            measured time may have other reasons.
    """

    json_properties: ClassVar = {
        "of_roof": "of_roof",
        "operations_per_second": "operations_per_second",
        "bytes_per_second": "bytes_per_second",
        "is_finding": "is_finding",
        "is_too_brief": "is_too_brief",
    }

    nodes: tuple[int, ...]
    operators: str
    delegate: str | None
    shape: tuple[int, ...] = field(metadata={"json_key": "output_shape"})
    seconds: float
    share: float
    macs_float32: int
    macs_int8: int
    bytes: int
    roof_seconds: float | None
    bound: str | None

    @property
    def of_roof(self) -> float | None:
        """Least possible time divided by the measured time, 0 to 1; None if either is missing."""
        if self.roof_seconds is None or self.seconds <= 0:
            return None
        return self.roof_seconds / self.seconds

    @property
    def operations_per_second(self) -> float:
        """Operations per second; a multiply-accumulate is two operations."""
        return self._per_second(2 * (self.macs_float32 + self.macs_int8))

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second of the least reads and writes that the operator needs."""
        return self._per_second(self.bytes)

    @property
    def is_finding(self) -> bool:
        """Whether the operator takes a large share of the time and reaches little of its roof."""
        return self._is_slow and self.seconds >= LEAST_SECONDS

    @property
    def is_too_brief(self) -> bool:
        """Whether the operator would be a finding if it took 20 microseconds or more."""
        return self._is_slow and self.seconds < LEAST_SECONDS

    @property
    def _is_slow(self) -> bool:
        reached = self.of_roof
        return self.share > LEAST_SHARE and reached is not None and reached < LEAST_OF_ROOF

    def _per_second(self, amount: int) -> float:
        return amount / self.seconds if self.seconds > 0 else 0.0


def operator_roofs(recording: Recording, roof: ProcessorRoof) -> list[OperatorRoof]:
    """Return the measured time and the least possible time of each operator of a model.

    The least possible time is called its roof. Partitions of other delegates have none.

    Args:
        recording: profile of several runs of the model.
        roof: measured rates of the processor.
    """
    graph = recording.model.subgraphs[recording.entry]
    tensors = _present(recording, graph)
    seconds = _least_seconds(recording, roof.call_seconds)
    works = {nodes: work_of(nodes, graph, tensors) for nodes, _ in seconds}
    # Other operators run between two uses of a constant, so constants come from the memory that
    # holds all data.
    whole = sum(work.constants for work in works.values())
    whole += max((work.values for work in works.values()), default=0)
    total = sum(seconds.values())
    found = []
    for (nodes, delegate), taken in seconds.items():
        work, own = works[nodes], [graph.operators[i] for i in nodes]
        has_roof = delegate in (None, "numba_cpu")
        least, bound = roof_seconds(work, roof, whole) if has_roof else (None, None)
        outputs = [i for i in own[-1].outputs if i >= 0]
        found.append(
            OperatorRoof(
                nodes,
                "+".join(operator.name for operator in own),
                delegate,
                tensors[outputs[0]].shape if outputs else (),
                taken,
                taken / total if total else 0.0,
                *(work.float32, work.int8, work.constants + work.values),
                *(least, bound),
            )
        )
    return found


def roof_seconds(work: Work, roof: ProcessorRoof, whole: int) -> tuple[float, str]:
    """Return the least possible seconds of some work, and the resource that limits it.

    Args:
        work: multiply-accumulates and moved bytes.
        roof: measured rates of the processor.
        whole: bytes of all data of a run; constants are read from the memory that holds them all.
    """
    products = 2 * work.float32 / roof.float32
    products += 2 * work.int8 / roof.int8 if roof.int8 else 0.0
    moved: dict[str, float] = {}
    for size, all_bytes in ((work.values, work.values), (work.constants, whole)):
        memory = roof.memory_of(all_bytes)
        moved[memory.name] = moved.get(memory.name, 0.0) + size / memory.bytes_per_second
    moving = sum(moved.values())
    return (
        (products, "compute") if products >= moving else (moving, max(moved, key=moved.__getitem__))
    )


def work_of(nodes: Sequence[int], graph: SubgraphSpec, tensors: Sequence[TensorSpec]) -> Work:
    """Return how many operations and bytes some nodes, which are computed together, need.

    Args:
        nodes: indices of the nodes.
        graph: the subgraph.
        tensors: tensors of the subgraph, with their shapes in the run.
    """
    own = [graph.operators[i] for i in nodes]
    made = {i for operator in own for i in operator.outputs if i >= 0}
    others = (op for i, op in enumerate(graph.operators) if i not in set(nodes))
    used = {i for operator in others for i in operator.inputs} | {*graph.outputs}
    written = made & used or made
    counts = {"float32": 0, "int8": 0}
    for operator in own:
        counts[_kind(operator, tensors)] += macs_of(operator, tensors)
    outputs = sum(_size(tensors[i]) for i in written)
    read = {i for operator in own for i in operator.inputs if i >= 0 and i not in made}
    sizes = {i: _size(tensors[i]) for i in read}
    if len(own) == 1 and own[0].name in _PARTLY_READ:
        sizes = {i: min(size, outputs) for i, size in sizes.items()}
    constants = sum(size for i, size in sizes.items() if tensors[i].data is not None)
    return Work(**counts, constants=constants, values=outputs + sum(sizes.values()) - constants)


def _kind(operator: OperatorSpec, tensors: Sequence[TensorSpec]) -> str:
    """Return ``float32`` or ``int8``: the type of an operator's weights, and so of its products."""
    types = {tensors[i].type.name for i in operator.inputs[1:] if i >= 0}
    return "int8" if types & _EIGHT_BITS else "float32"


def _size(tensor: TensorSpec) -> int:
    """Return the number of bytes of a tensor; 0 for strings, whose size is not in the model."""
    if tensor.data is not None:
        return tensor.data.nbytes
    bits = _BITS.get(tensor.type.name)
    return 0 if bits is None else prod(tensor.shape) * bits // 8


_BITS: Mapping[str, int] = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 8),
    **dict.fromkeys(("FLOAT16", "BFLOAT16", "INT16", "UINT16"), 16),
    **dict.fromkeys(("FLOAT32", "INT32", "UINT32"), 32),
    **dict.fromkeys(("FLOAT64", "INT64", "UINT64", "COMPLEX64"), 64),
    "COMPLEX128": 128,
    "INT4": 4,
    "INT2": 2,
}


def _present(recording: Recording, graph: SubgraphSpec) -> list[TensorSpec]:
    """Return the tensors of a subgraph, with the shapes that they had after the profiled runs."""
    figures = recording.tensors
    return [
        spec._replace(shape=figures[graph.index, i].shape) if spec.data is None else spec
        for i, spec in enumerate(graph.tensors)
    ]


def _least_seconds(
    recording: Recording, call_seconds: float
) -> dict[tuple[tuple[int, ...], str | None], float]:
    """Return the shortest measured time in seconds of each node or group of nodes.

    The keys are the node indices and the delegate's name. A partition is one group if its delegate
    does not record the model's nodes in it. The seconds of a native call are subtracted from nodes
    that a delegate records.
    """
    found: dict[tuple[tuple[int, ...], str | None], float] = {}
    for run in recording.runs:
        taken: dict[tuple[tuple[int, ...], str | None], float] = {}
        own = [event for event in run.events if event.subgraph == recording.entry]
        detailed = {None, *(recording.partition(e) for e in own if recording.is_inside(e))}
        for event in own:
            if recording.node(event) is None and recording.partition(event) in detailed:
                continue
            key = recording.model_nodes(event), event.delegate
            seconds = event.duration / 1e9 - (call_seconds if recording.is_inside(event) else 0.0)
            taken[key] = taken.get(key, 0.0) + max(0.0, seconds)
        for key, seconds in taken.items():
            found[key] = min(seconds, found.get(key, seconds))
    return found


def findings(operators: Iterable[OperatorRoof]) -> list[OperatorRoof]:
    """Return the operators that take much time and could take much less, the slowest first.

    Args:
        operators: measured operators.
    """
    return sorted((o for o in operators if o.is_finding), key=lambda o: -o.seconds)
