"""Number of parameters, multiply-accumulates and quantization of a model."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.graph.dtypes import OBJECT_TYPES, byte_size
from delegraph.graph.macs import is_least, macs_of
from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec, TensorSpec
from delegraph.schema.enums import TensorType

_FLOATS = frozenset({"FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"})
_PLAIN_INTEGERS = frozenset(
    {TensorType.BOOL, TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64}
)
"""Types whose constants are sizes, axes and indices, except constants with scales, such as
biases."""

_NEARLY_ALL = 0.999
"""Share of the arithmetic above which the rest is left out of a model's quantization in words."""

_LSTM = frozenset({"LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"})


@dataclass(frozen=True, slots=True)
class TypeCount:
    """Number and size of a model's constants of one type.

    Attributes:
        type: element type as the schema calls it.
        constants: number of constant tensors.
        parameters: number of learnt values; sizes, axes, indices, scales of other constants and
            compiled partitions do not count. Zeros that a sparse constant leaves out count.
        bytes: number of bytes of the constants. A buffer that several constants share counts once,
            here and in ``parameters``.
    """

    type: str
    constants: int
    parameters: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Precision:
    """Number types of operators that multiply by weights, and their number and arithmetic.

    Attributes:
        activations: type of the first input as the schema calls it.
        weights: type of the weights as they are stored.
        scales: ``per tensor``, ``per channel`` or ``blockwise``; empty for weights without scales.
        nodes: number of these operators.
        macs: their multiply-accumulates.
        macs_are_least: whether that is only a least number, since the file lacks shapes.
    """

    activations: str
    weights: str
    scales: str
    nodes: int
    macs: int
    macs_are_least: bool = False

    @property
    def kind(self) -> str:
        """``integers``, ``weights only``, ``half`` (16-bit weights) or ``floats``."""
        if self.weights not in _FLOATS:
            return "weights only" if self.activations in _FLOATS else "integers"
        return "half" if self.weights != self.activations else "floats"


def count_types(model: Model) -> tuple[TypeCount, ...]:
    """Return the constants of a model by type, the type with most bytes first."""
    found: defaultdict[str, list[TensorSpec]] = defaultdict(list)
    compiled = {
        (subgraph.tensors[operator.inputs[-1]].buffer, 0)
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if operator.name == CUSTOM_OP and operator.is_custom and operator.inputs
    }
    tensors = [tensor for subgraph in model.subgraphs for tensor in subgraph.tensors]
    blockwise = {
        tensor.quantization.scales.ctypes.data
        for tensor in tensors
        if tensor.quantization is not None and tensor.quantization.block_size
    }
    for tensor in tensors:
        if tensor.data is not None:
            found[tensor.type.name].append(tensor)
    counts = []
    for name, of_type in found.items():
        buffers = {(t.buffer, t.external_buffer): t for t in of_type}
        learnt = (
            t
            for place, t in buffers.items()
            if place not in compiled
            and _is_learnt(t)
            and (t.data is None or t.data.ctypes.data not in blockwise)
        )
        parameters = sum(math.prod(t.shape) for t in learnt)
        stored = sum(len(t.data) for t in buffers.values() if t.data is not None)
        counts.append(TypeCount(name, len(of_type), parameters, stored))
    return tuple(sorted(counts, key=lambda count: (-count.bytes, count.type)))


def _is_learnt(tensor: TensorSpec) -> bool:
    if tensor.type in OBJECT_TYPES:
        return False
    has_scales = tensor.quantization is not None and len(tensor.quantization.scales) > 0
    return has_scales or tensor.type not in _PLAIN_INTEGERS


def unstored_share(tensor: TensorSpec) -> float | None:
    """Return the share of a sparse constant's elements that are zeros and not stored.

    None for other tensors. Blocks of a sparse constant may store further zeros.
    """
    if tensor.data is None or tensor.sparsity is None or not math.prod(tensor.shape):
        return None
    return max(0.0, 1 - len(tensor.data) / byte_size(tensor.type, tensor.shape))


def count_precisions(model: Model) -> tuple[Precision, ...]:
    """Return the number types of *model*'s operators with weights, most arithmetic first."""
    nodes: Counter[tuple[str, str, str]] = Counter()
    work: Counter[tuple[str, str, str]] = Counter()
    least: set[tuple[str, str, str]] = set()
    for types, count, are_least in (found for s in model.subgraphs for found in _precisions(s)):
        nodes[types] += 1
        work[types] += count
        least |= {types} if are_least else set()
    found = (Precision(*types, nodes[types], work[types], types in least) for types in work)
    return tuple(sorted(found, key=lambda p: (-p.macs, p.activations, p.weights, p.scales)))


def _precisions(subgraph: SubgraphSpec) -> Iterator[tuple[tuple[str, str, str], int, bool]]:
    """Yield number types (activations, weights, scales) and MACs of each operator with weights.

    The last value says whether the MACs are only a least number.
    """
    made_by = {i: operator for operator in subgraph.operators for i in operator.outputs}
    for operator in subgraph.operators:
        count = macs_of(operator, subgraph.tensors)
        are_least = is_least(operator, subgraph.tensors)
        weights = _weights(operator, subgraph) if count or are_least else None
        if weights is None:
            continue
        maker = made_by.get(weights.index)
        if maker is not None and maker.name == "DEQUANTIZE":
            weights = subgraph.tensors[maker.inputs[0]]
        activations = subgraph.tensors[operator.inputs[0]].type.name
        yield (activations, weights.type.name, _scales(weights)), count, are_least


def _weights(operator: OperatorSpec, subgraph: SubgraphSpec) -> TensorSpec | None:
    """Return the weights of an operator; of LSTM those of the cell gate; None if it has none."""
    position = 2 if operator.name in _LSTM else 1
    index = operator.inputs[position] if position < len(operator.inputs) else -1
    return subgraph.tensors[index] if index >= 0 and operator.inputs[0] >= 0 else None


def _scales(weights: TensorSpec) -> str:
    quantization = weights.quantization
    if quantization is None or not len(quantization.scales):
        return ""
    if quantization.block_size:
        return "blockwise"
    return "per channel" if len(quantization.scales) > 1 else "per tensor"


def quantization_in_words(precisions: Iterable[Precision]) -> str:
    """Return text of a few words about a model's quantization; empty if no operator has weights.

    >>> quantization_in_words([Precision("INT8", "INT8", "per channel", 52, 300)])
    'quantized to integers: INT8 weights per channel, INT8 activations'
    >>> quantization_in_words([Precision("FLOAT32", "FLOAT32", "", 52, 300)])
    'not quantized: FLOAT32'
    >>> mixed = [Precision("INT8", "INT8", "", 3, 75), Precision("FLOAT32", "FLOAT32", "", 1, 25)]
    >>> quantization_in_words(mixed)
    'partly quantized: 75.0% of the MACs, mostly with INT8 activations, INT8 weights'
    >>> few_floats = Precision("FLOAT32", "FLOAT32", "", 1, 1)
    >>> quantization_in_words([Precision("FLOAT32", "INT8", "", 3, 9999), few_floats])
    'weights quantized (dynamic range): INT8 weights, FLOAT32 activations, over 99.9% of the MACs'
    """
    found = sorted(precisions, key=lambda precision: -precision.macs)
    if not found:
        return ""
    first = found[0]
    of_kind = [precision for precision in found if precision.kind == first.kind]
    if len(of_kind) < len(found):
        quantized = [precision for precision in found if precision.kind != "floats"]
        best = quantized[0]
        done = [precision for precision in quantized if precision.kind == best.kind]
        if sum(p.macs for p in done) > _NEARLY_ALL * sum(p.macs for p in found):
            return f"{_kind_in_words(done)}, over 99.9% of the MACs"
        share = f"{sum(p.macs for p in quantized) / sum(p.macs for p in found):.1%}"
        share = "over 99.9%" if share == "100.0%" else share
        types = f"{best.activations} activations, {best.weights} weights"
        return f"partly quantized: {share} of the MACs, mostly with {types}"
    return _kind_in_words(of_kind)


def _kind_in_words(of_kind: Sequence[Precision]) -> str:
    """Return text about operators of the same kind."""
    stored = _listed(p.weights for p in of_kind)
    weights = _listed(f"{p.weights} weights {p.scales}".rstrip() for p in of_kind)
    activations = _listed(p.activations for p in of_kind)
    return {
        "floats": f"not quantized: {activations}",
        "half": f"weights stored as {stored}, {activations} activations",
        "weights only": f"weights quantized (dynamic range): {weights}, {activations} activations",
        "integers": f"quantized to integers: {weights}, {activations} activations",
    }[of_kind[0].kind]


def _listed(words: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(words))
