"""Summary of a model file: interface, operators, sizes, metadata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from delegraph.delegation.compiled_partition import CUSTOM_OP, compiled_partition
from delegraph.errors import DelegraphError, MalformedModelError, PartitionRejected
from delegraph.graph.macs import is_least, macs_of
from delegraph.graph.metadata import ModelMetadata, read_metadata
from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec, TensorSpec
from delegraph.json_records import JsonRecord
from delegraph.kernels import ops  # noqa: F401 - declares the kernels
from delegraph.micro.offline_plans import METADATA_NAME as OFFLINE_PLAN
from delegraph.micro.offline_plans import plan_in_words
from delegraph.operators.op_table import OP_TABLE
from delegraph.plugins.creation import describe_custom_op
from delegraph.plugins.foreign_operators import likely_provider
from delegraph.plugins.known_packages import package_for
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegates.compiled_partitions import offer_of
from delegraph.tools.kept_entries import NAMESPACE, KeptEntries, listed_entries
from delegraph.tools.model_arithmetic import (
    Precision,
    TypeCount,
    count_precisions,
    count_types,
    quantization_in_words,
    unstored_share,
)


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """An input or output of a subgraph.

    Attributes:
        name: name of the tensor; may be empty.
        index: tensor index.
        type: element type as the schema calls it.
        shape: declared dimensions; -1 for unknown dimensions. None if the file does not say how
            many there are.
        scale: per-tensor scale; None if there is none.
        zero_point: per-tensor zero point.
        channels: number of scales of per-channel quantization; None for other tensors.
    """

    name: str
    index: int
    type: str
    shape: tuple[int, ...] | None
    scale: float | None = None
    zero_point: int | None = None
    channels: int | None = None


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """An operator of one version, with its number of nodes.

    Attributes:
        op: schema name, or the custom code.
        version: operator version.
        count: number of nodes in all subgraphs.
        custom: whether the operator is a custom operator.
        package: distribution that runs a custom operator; None for builtin operators, and if
            unknown.
        installed: whether the operator can run here: it is builtin, or ``package`` is installed.
        macs: multiply-accumulates of these nodes.
        macs_are_least: whether that is only a least number, since the file lacks shapes.
        guess: probable origin of a custom operator that no known package runs, with advice; None if
            unknown.
    """

    op: str
    version: int
    count: int
    custom: bool = False
    package: str | None = None
    installed: bool = True
    macs: int = 0
    macs_are_least: bool = False
    guess: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    """Facts about a custom operator, from the package that runs it.

    Attributes:
        op: the custom code.
        subgraph: index of the subgraph.
        operator: index of the operator in the subgraph.
        facts: mapping from a fact's name to its value, both as text; ``error`` if the options
            cannot be read.
    """

    op: str
    subgraph: int
    operator: int
    facts: dict[str, str]


@dataclass(frozen=True, slots=True)
class SubgraphSummary:
    """Summary of a subgraph: its interface, and its numbers of tensors and operators."""

    index: int
    name: str
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    tensors: int
    operators: int


@dataclass(frozen=True, slots=True)
class SignatureSummary:
    """A signature: mappings from input and output names to tensor indices."""

    key: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclass(frozen=True, slots=True)
class ModelSummary(JsonRecord):
    """Summary of a whole model.

    Attributes:
        version: schema version.
        description: description in the file, usually of the converter that made it.
        bytes: size of the file and of constants in other files, added up.
        constant_bytes: bytes of constant tensors, each buffer counted once.
        constants: number of constant tensors.
        subgraphs: summaries of all subgraphs.
        signatures: mapping from each signature's key to the signature.
        operators: all operators of all subgraphs, most frequent first.
        metadata: mapping from each metadata entry's name to its size in bytes.
        metadata_facts: what entries contain, in words, by name; of known entries only.
        described: facts about custom operators from the packages that run them, and about
            partitions compiled ahead of time.
        author_metadata: the author's description of inputs and outputs; None if there is none.
        kept: number of bytes of delegates' entries after the model, by namespace.
        kept_entries: these entries by delegate, processor level and number of threads, as the file
            lists them.
        parameters: number of learnt values, such as weights and biases.
        macs: multiply-accumulates of one run of every subgraph.
        macs_are_least: whether that is only a least number, since the file lacks shapes.
        quantization: text of a few words about the model's quantization; empty if no operator has
            weights.
        types: constants by type.
        precisions: number types of the operators with weights.
        sparse_constants: number of constants that are stored sparse.
        sparsity: share of their elements that are zeros and not stored; 0 without sparse ones.
    """

    json_properties: ClassVar = {"uncounted_operators": "uncounted_operators"}

    version: int
    description: str
    bytes: int
    constant_bytes: int
    constants: int
    subgraphs: tuple[SubgraphSummary, ...]
    signatures: tuple[SignatureSummary, ...]
    operators: tuple[OperatorCount, ...]
    metadata: dict[str, int]
    metadata_facts: dict[str, str] = field(default_factory=dict)
    described: tuple[OperatorDescription, ...] = ()
    author_metadata: ModelMetadata | None = None
    kept: dict[str, int] = field(default_factory=dict)
    parameters: int = 0
    macs: int = 0
    macs_are_least: bool = False
    quantization: str = ""
    types: tuple[TypeCount, ...] = ()
    precisions: tuple[Precision, ...] = ()
    sparse_constants: int = 0
    sparsity: float = 0.0
    kept_entries: tuple[KeptEntries, ...] = ()

    @property
    def uncounted_operators(self) -> tuple[str, ...]:
        """Sorted custom operators, whose arithmetic and inner parameters are in no total."""
        return tuple(sorted({operator.op for operator in self.operators if operator.custom}))


def summarize_model(model: Model) -> ModelSummary:
    """Return the summary of a model."""
    constants = [t for s in model.subgraphs for t in s.tensors if t.data is not None]
    buffers = {(t.buffer, t.external_buffer): len(t.data) for t in constants if t.data is not None}
    operators, types, precisions = (
        count_operators(model),
        count_types(model),
        count_precisions(model),
    )
    return ModelSummary(
        model.version,
        model.description,
        model.bytes,
        sum(buffers.values()),
        len(constants),
        tuple(map(_subgraph, model.subgraphs)),
        tuple(
            SignatureSummary(s.key, s.subgraph_index, dict(s.inputs), dict(s.outputs))
            for s in sorted(model.signatures, key=lambda s: s.key)
        ),
        operators,
        {name: len(value) for name, value in sorted(model.metadata.items())},
        {OFFLINE_PLAN: plan} if (plan := plan_in_words(model)) else {},
        tuple(_descriptions(model)),
        read_metadata(model),
        _kept(model),
        sum(count.parameters for count in types),
        sum(operator.macs for operator in operators),
        any(operator.macs_are_least for operator in operators),
        quantization_in_words(precisions),
        types,
        precisions,
        *_sparsity(constants),
        listed_entries(model),
    )


def _sparsity(constants: Iterable[TensorSpec]) -> tuple[int, float]:
    """Return the number of sparse constants, and the share of zeros that they do not store."""
    shares = [
        (share, math.prod(tensor.shape))
        for tensor in constants
        if (share := unstored_share(tensor)) is not None
    ]
    elements = sum(count for _, count in shares)
    zeros = sum(share * count for share, count in shares)
    return len(shares), zeros / elements if elements else 0.0


def _kept(model: Model) -> dict[str, int]:
    found: Counter[str] = Counter()
    for name, (_, length) in () if model.entries is None else sorted(model.entries.places.items()):
        namespace = name.partition("/")[0]
        if namespace != NAMESPACE:
            found[namespace] += length
    return dict(found)


def count_operators(model: Model) -> tuple[OperatorCount, ...]:
    """Return the number of nodes of each operator in *model*, most frequent first, then by name."""
    counts: Counter[_Kind] = Counter()
    work: Counter[_Kind] = Counter()
    least: set[_Kind] = set()
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            name, version = operator.name, operator.version
            kind = (name, version, operator.is_custom, _compiled_by(operator))
            counts[kind] += 1
            work[kind] += macs_of(operator, subgraph.tensors)
            if is_least(operator, subgraph.tensors):
                least.add(kind)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0][:3]))
    return tuple(_operator_count(kind, count, work[kind], kind in least) for kind, count in ordered)


_Kind = tuple[str, int, bool, tuple[str | None, bool] | None]
"""Key for counting: name, version, whether the operator is custom, a compiled partition's
provider."""


def _operator_count(kind: _Kind, count: int, work: int, are_least: bool) -> OperatorCount:
    op, version, custom, compiled = kind
    if not custom:
        return OperatorCount(op, version, count, macs=work, macs_are_least=are_least)
    found = OperatorCount(op, version, count, custom, *(compiled or _provider(op)))
    provider = likely_provider(op) if found.package is None else None
    return replace(found, guess=None if provider is None else str(provider))


def _compiled_by(operator: OperatorSpec) -> tuple[str | None, bool] | None:
    """Return the distribution that runs a compiled partition, and whether it can run here.

    The result is None for other operators.
    """
    if not operator.is_custom or operator.name != CUSTOM_OP:
        return None
    try:
        partition = compiled_partition(operator)
        offer_of(partition)
    except MalformedModelError:
        return None, False
    except PartitionRejected:
        return partition.distribution, False
    return partition.distribution, True


def _descriptions(model: Model) -> Iterator[OperatorDescription]:
    """Yield the known facts about custom operators and compiled partitions."""
    providers = installed().custom_op_providers()
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            facts = {}
            if operator.is_custom and operator.name == CUSTOM_OP:
                facts = _compiled_facts(operator)
            elif operator.is_custom and operator.name in providers:
                facts = _facts(operator, providers[operator.name][0])
            if facts:
                yield OperatorDescription(operator.name, subgraph.index, operator.index, facts)


def _compiled_facts(operator: OperatorSpec) -> dict[str, str]:
    try:
        partition = compiled_partition(operator)
    except MalformedModelError as error:
        return {"error": str(error)}
    try:
        offer_of(partition)
    except PartitionRejected as error:
        return {**partition.facts(), "runs": f"no: {error}"}
    return {**partition.facts(), "runs": "yes"}


def _facts(operator: OperatorSpec, plugin: Plugin) -> dict[str, str]:
    spec = next(spec for spec in plugin.custom_ops if spec.name == operator.name)
    options = operator.custom_options
    try:
        return describe_custom_op(spec, b"" if options is None else options.tobytes(), plugin)
    except DelegraphError as error:
        return {"error": str(error)}


def _provider(custom_name: str) -> tuple[str | None, bool]:
    """Return the distribution that runs a custom operator, and whether it is installed."""
    if custom_name in OP_TABLE:
        return "delegraph", True
    plugins = installed()
    providers = plugins.custom_op_providers().get(custom_name)
    if providers:
        return providers[0].distribution, True
    offers = plugins.for_custom_ops([custom_name])
    if offers:
        return offers[0].plugin.distribution, True
    package = package_for(custom_name)
    usable = {p.distribution for p in plugins.plugins if p.state is PluginState.OK}
    return package, package in usable


def _subgraph(subgraph: SubgraphSpec) -> SubgraphSummary:
    tensors = summarize_tensors(subgraph)
    return SubgraphSummary(
        subgraph.index,
        subgraph.name,
        tuple(tensors[i] for i in subgraph.inputs if i >= 0),
        tuple(tensors[i] for i in subgraph.outputs if i >= 0),
        len(subgraph.tensors),
        len(subgraph.operators),
    )


def summarize_tensors(subgraph: SubgraphSpec) -> list[TensorSummary]:
    """Return name, type, shape and quantization of each tensor of a subgraph."""
    makers = {i: operator for operator in subgraph.operators for i in operator.outputs}
    unknown = (
        (maker := makers.get(tensor.index)) is not None and _lacks_shape(tensor, maker, subgraph)
        for tensor in subgraph.tensors
    )
    return [_tensor(*each) for each in zip(subgraph.tensors, unknown, strict=True)]


def _lacks_shape(tensor: TensorSpec, maker: OperatorSpec, subgraph: SubgraphSpec) -> bool:
    """Whether the file does not say an output's shape, which then looks like a scalar's.

    Converters do not know the shapes that custom operators give, except TensorFlow's own (Flex).

    Args:
        tensor: the output.
        maker: the operator that writes it.
        subgraph: their subgraph.
    """
    if tensor.shape or tensor.has_rank or tensor.is_constant:
        return False
    is_foreign = maker.is_custom and not maker.name.startswith("Flex")
    return is_foreign or is_least(maker, subgraph.tensors)


def _tensor(tensor: TensorSpec, is_unknown: bool) -> TensorSummary:
    quantization = tensor.quantization
    shape = None if is_unknown else tensor.shape_signature
    where = (tensor.name, tensor.index, tensor.type.name, shape)
    if quantization is None or not len(quantization.scales):
        return TensorSummary(*where)
    channels = len(quantization.scales) if len(quantization.scales) > 1 else None
    return TensorSummary(*where, quantization.scale, quantization.zero_point, channels)
