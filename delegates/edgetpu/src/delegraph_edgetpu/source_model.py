"""Source model: a model during compilation, from which executables are made."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from delegraph.graph import Model, SubgraphSpec, parse_model
from delegraph.schema import read_model, tables, with_plans, write_model
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.compiled_segment import CompiledSegment
from delegraph_edgetpu.errors import CannotCompile
from delegraph_edgetpu.mapping import ModelMapping, map_subgraph
from delegraph_edgetpu.model_checks import require_compilable
from delegraph_edgetpu.operator_cost import multiply_adds
from delegraph_edgetpu.parameter_layout import parameter_sizes
from delegraph_edgetpu.partition import obstacle_to
from delegraph_edgetpu.segments import Part, boundary, cut_out, parts
from delegraph_edgetpu.settings import Settings


@dataclass(frozen=True)
class SourceModel:
    """A model in two forms: flatbuffer records, and the typed subgraph.

    Attributes:
        name: path of its file, or ``model``.
        model: the typed model.
        record: records of the file.
        subgraph: its only subgraph.
    """

    name: str
    model: Model
    record: tables.Model
    subgraph: SubgraphSpec

    @classmethod
    def of(cls, name: str, content: bytes) -> SourceModel:
        """Return the source model for the file in *content*; *name* is its path or ``model``.

        Raises:
            CannotCompile: the model cannot be compiled.
            MalformedModelError: the model is damaged.
        """
        model = parse_model(content)
        subgraph = require_compilable(model)
        return cls(name, model, read_model(model.content), subgraph)

    def calls(self, nodes: Iterable[int]) -> list[Call]:
        """Return the calls of the operators *nodes*, in order."""
        return [Call(self.subgraph.operators[i], self.subgraph.tensors) for i in nodes]


def compiled_parts(source: SourceModel, settings: Settings) -> list[CompiledSegment]:
    """Return the compiled parts of *source*, without caching tokens and cache shares.

    *settings* are those of the compiler.

    If a search is requested, the mapped part is shortened until it can run.

    Raises:
        CannotCompile: no operator maps, or the mapped part cannot run.
        ArgumentError: there are more segments than operators, or an intermediate tensor does not
            exist.
    """
    without: tuple[int, ...] = ()
    while True:
        start = time.perf_counter()
        mapping = _mapping(source, settings, without)
        try:
            drafts = [_draft(source, part, mapping) for part in _parts(source, mapping, settings)]
        except _CannotRun as error:
            if not settings.search:
                raise CannotCompile(
                    f"the mapped part cannot run: {error}; with search (--search), ever shorter "
                    "parts are tried"
                ) from error
            without = (*without, *mapping.mapped[-settings.search_step :])
            continue
        seconds = (time.perf_counter() - start) / len(drafts)
        return [
            replace(draft, segment=i, segments=len(drafts), seconds=seconds)
            for i, draft in enumerate(drafts)
        ]


def _mapping(source: SourceModel, settings: Settings, without: Collection[int]) -> ModelMapping:
    mapping = map_subgraph(
        source.subgraph, settings.min_runtime_version, settings.intermediate_tensors, without
    )
    if not mapping.mapped:
        first, count = mapping.operators[0], len(mapping.operators)
        reason = first.reasons[0]
        raise CannotCompile(
            f"none of {count} operator{'s' * (count != 1)} maps to the Edge TPU; the first, node 0 "
            f"({first.name}): {reason}. To map it: {reason.remedy}"
        )
    return mapping


def _parts(source: SourceModel, mapping: ModelMapping, settings: Settings) -> list[Part]:
    calls = source.calls(mapping.mapped)
    if settings.balance == "parameters":
        weights = [sum(parameter_sizes([call]).values()) for call in calls]
    else:
        weights = [multiply_adds(call) for call in calls]
    return parts(source.subgraph, mapping, settings.segments, weights)


def _draft(source: SourceModel, part: Part, mapping: ModelMapping) -> CompiledSegment:
    edge = boundary(source.subgraph, part.mapped)
    fed = [index for index in edge.inputs if not source.subgraph.tensors[index].is_variable]
    record = source.record.replace(description="partition for the Edge TPU")
    model = write_model(cut_out(with_plans(record, [part.mapped]), fed, edge.outputs))
    obstacle = obstacle_to(model, part.mapped)
    if obstacle is not None:
        raise _CannotRun(obstacle)
    return CompiledSegment(
        name=source.name,
        model=source.model,
        record=source.record,
        part=part,
        edge=edge,
        partition=model,
        mapped=tuple(source.calls(part.mapped)),
        unmapped=tuple(source.calls((*part.before, *part.after))),
        mappings=tuple(mapping.operators[index] for index in sorted(part.nodes)),
    )


class _CannotRun(Exception):
    """Error: the mapped part is valid, but cannot be prepared."""
