"""Compiles partitions of delegates ahead of time, as custom operators in the model file.

For delegates that store entries in model files, the entries are written instead; see
``model_entries.py``.

Source:
    Other projects with the same aim: ``to_backend`` of ExecuTorch, ``EPContext`` of ONNX Runtime,
    compiler plugins of LiteRT. The format is our own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.delegation.compiled_partition import CompiledPartition
from delegraph.delegation.control_edges import moved_control_edges, parse_control_edges
from delegraph.delegation.delegate import Delegate
from delegraph.errors import ArgumentError, PluginError
from delegraph.graph.external_buffers import records_of, self_contained
from delegraph.graph.loader import parse_model
from delegraph.graph.model import CONTROL_EDGES, Model
from delegraph.graph.model_files import bundles_of
from delegraph.json_records import to_json
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.options import make_options
from delegraph.plugins.plugin_set import Offer, installed, only_one
from delegraph.runtime.arguments import AnyPath
from delegraph.runtime.delegates.compiled_partitions import compiled_delegate, compilers_of
from delegraph.runtime.delegates.custom_op_delegates import called_for
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.session import Session
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema import tables
from delegraph.schema.custom_nodes import with_plans
from delegraph.schema.pruning import pruned
from delegraph.tools.compiling_delegate import (
    CompiledNode,
    CompilingDelegate,
    compiling_delegate,
)
from delegraph.tools.explanation import Explanation, explain
from delegraph.tools.kept_entries import KeptEntries
from delegraph.tools.model_entries import Keeper, keepers, with_kept
from delegraph.tools.progress import Progress, untold
from delegraph.tools.refusals import runner_of
from delegraph.tools.whole_file import whole_file, write_whole

if TYPE_CHECKING:
    from delegraph.bundles.opening import Chain

Plans = Sequence[Sequence[int | CompiledNode]]
"""Execution plan of each subgraph: indices of its own operators, and compiled partitions."""


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A model file in which some partitions are compiled ahead of time.

    Attributes:
        content: bytes of the model file.
        partitions: the compiled partitions, in execution order.
        explanation: placement of each node, with the reasons of delegates that rejected it.
        seconds: duration of the compilation, in seconds.
        kept: entries that delegates store in the file, by processor level and number of threads.
        bundles: nested bundles that hold the model, each with the section that contains the next;
            empty if the file is a model.
        dropped_bytes: size of the entries of the model's file that the new file lacks, as its nodes
            are others; 0 if none are lost.
    """

    content: bytes = field(repr=False)
    partitions: tuple[CompiledPartition, ...]
    explanation: Explanation = field(repr=False)
    seconds: float
    kept: tuple[KeptEntries, ...] = ()
    bundles: Chain = field(default=(), repr=False)
    dropped_bytes: int = 0

    def write(self, path: AnyPath) -> None:
        """Write the model file atomically; see :func:`~delegraph.tools.whole_file.write_whole`.

        A model in a bundle is written with the whole bundle, whose other sections are unchanged. If
        the path ends in ``.tflite``, only the model is written.

        Raises:
            ArgumentError: the file cannot be written.
            ModelError: the bundle has a damaged section, or the model stands after another section.
        """
        target = os.fsdecode(path)
        try:
            if not self.bundles or target.lower().endswith(".tflite"):
                write_whole(target, self.content)
                return
            from delegraph.bundles.writing import write_bundle

            model = np.frombuffer(self.content, np.uint8)
            with whole_file(target) as partial, open(partial, "w+b") as file:
                write_bundle(file, self.bundles, model)
        except OSError as error:
            reason = error.strerror or error
            raise ArgumentError(f"{target!r} cannot be written: {reason}") from error

    def to_json(self) -> dict[str, Any]:
        """Return all facts except the content of the file, by name."""
        return {
            "bytes": len(self.content),
            "seconds": self.seconds,
            "compiled": to_json(self.partitions),
            "kept": to_json(self.kept),
            "dropped_bytes": self.dropped_bytes,
            **self.explanation.to_json(),
        }


def compile_model(
    model: AnyPath | bytes,
    delegates: Sequence[str] | Mapping[str, Any],
    *,
    cpu: Sequence[str] = (),
    threads: Sequence[int] = (),
    progress: Progress = untold,
    **arguments: Any,
) -> CompiledModel:
    """Return a model in which the delegates' partitions are compiled ahead of time.

    Each delegate claims nodes as it does in an ``Interpreter``. Each of its partitions becomes one
    custom operator, with the data that its plugin compiled; all other nodes stay unchanged. When
    the file is loaded, the same delegates run these operators without being named. Partitions are
    compiled for the shapes that the file declares.

    For a delegate that stores its decisions, such as numba_cpu, nodes do not change. Its decisions
    are added to the file as entries, and used later if they fit.

    Args:
        model: path or bytes of a ``.tflite`` file, or ``FILE#SECTION`` of a bundle; it may have
            been compiled before.
        delegates: names of installed delegates, ``name``, ``name:key=value`` or ``dist:name``,
            applied in order; or a mapping of names to options.
        cpu: processor levels, as values of the option ``cpu`` of delegates that store entries;
            empty means the value in their options.
        threads: numbers of threads for which such delegates prepare; empty means the interpreter's
            default on this machine.
        progress: function that is called before each partition is compiled.
        arguments: arguments ``placement`` and ``limits`` of ``Interpreter``.

    Raises:
        ArgumentError: no delegate is given, the file does not exist, or ``cpu`` or ``threads`` are
            given without a delegate that keeps what it decides.
        MalformedModelError: the model is damaged.
        PluginError: a delegate is missing or broken, or cannot be compiled ahead of time.
        DelegateError: a delegate or its compiler failed; the message names the delegate and the
            nodes.
        PlacementError: the placement does not satisfy ``placement``.
    """
    start = time.perf_counter()
    chosen = _chosen(delegates, cpu, progress)
    keeping = [each for each in chosen if isinstance(each, Keeper)]
    if not keeping and (cpu or threads):
        raise ArgumentError("'cpu' and 'threads' are for delegates that store programs")
    with Interpreter(
        model_path=None if isinstance(model, bytes) else model,
        model_content=model if isinstance(model, bytes) else None,
        delegates=[],
        **arguments,
    ) as interpreter:
        session = interpreter.session
        if len(keeping) < len(chosen):
            session.calls.run("compile_model", _apply, session, _claiming(chosen))
        nodes = [list(_plan(subgraph)) for subgraph in session.subgraphs]
        partitions = tuple(n.partition for p in nodes for n in p if isinstance(n, CompiledNode))
        content, explanation = _content(session, nodes), explain(interpreter)
        kept: tuple[KeptEntries, ...] = ()
        if keeping:
            source = session.model
            if partitions:
                source = parse_model(content)
            elif source.external_buffers.files:
                source = parse_model(self_contained(source))
            claimed = explanation
            content, kept, explanation = with_kept(source, keeping, threads, progress, arguments)
            explanation = _with_refusals(explanation, claimed, nodes)
        entries = session.model.entries
        lost = sum(n for _, n in entries.places.values()) if entries and partitions else 0
        seconds, bundles = time.perf_counter() - start, _bundles(model, session)
    return CompiledModel(content, partitions, explanation, seconds, kept, bundles, lost)


def _with_refusals(found: Explanation, claimed: Explanation, plans: Plans) -> Explanation:
    """Return the placement in a file with what delegates whose partitions it contains say.

    These are their notes, and their reasons, which name nodes by their numbers in the model before.

    Args:
        found: placement in the file, where a compiled partition is a single node.
        claimed: placement in the model before.
        plans: for each subgraph, operator indices and compiled partitions in execution order.
    """
    compiling = {
        s.partition.delegate for plan in plans for s in plan if isinstance(s, CompiledNode)
    }
    moved = {
        (subgraph, step): index
        for subgraph, plan in enumerate(plans)
        for index, step in enumerate(plan)
        if isinstance(step, int)
    }
    runners = {
        (node.subgraph, node.index): runner_of(node, found.placement.host)
        for node in found.placement.nodes
    }
    refusals = []
    for each in claimed.refusals:
        if each.delegate in compiling:
            nodes = (moved[each.subgraph, node] for node in each.nodes)
            runs_on = dict.fromkeys(runners[each.subgraph, node] for node in nodes)
            refusals.append(replace(each, runs_on=tuple(runs_on)))
    refusals += [each for each in found.refusals if each.delegate not in compiling]
    notes = {name: note for name, note in claimed.placement.notes.items() if name in compiling}
    placement = replace(found.placement, notes={**found.placement.notes, **notes})
    return replace(found, placement=placement, refusals=tuple(refusals))


def _chosen(
    delegates: Sequence[str] | Mapping[str, Any], cpu: Sequence[str], progress: Progress
) -> list[CompilingDelegate | Keeper]:
    """Return the delegates whose partitions are compiled or that store data in the file, in order.

    *cpu* has processor levels, as values of the option ``cpu`` of delegates that store entries.

    Raises:
        ArgumentError: no delegate is given.
        PluginError: a delegate is missing or broken, its options do not fit, or it has nothing
            to put into the file.
    """
    if isinstance(delegates, str) or not delegates:
        raise ArgumentError(f"delegates is {delegates!r}, expected a list of at least one name")
    if not isinstance(delegates, Mapping):
        delegates = dict.fromkeys(delegates)
    chosen: list[CompilingDelegate | Keeper] = []
    for address, options in delegates.items():
        parsed = DelegateAddress.parse(address)
        offer = compilable_offer(parsed)
        spec = offer.compiler
        made = make_options(offer.spec, only_one(parsed, options))
        if spec is None:
            chosen += keepers(offer, made, cpu)
        else:
            chosen.append(compiling_delegate(offer, made, spec, progress))
    return chosen


def compilable_offer(address: DelegateAddress) -> Offer:
    """Return the offer of a delegate that compiles ahead of time.

    Raises:
        PluginError: the delegate is missing, or has nothing to put into the file.
    """
    offer = installed().find(address)
    if not is_compilable(offer):
        raise PluginError(
            f"delegate {address.name!r} cannot be compiled ahead of time: {offer.plugin} "
            f"offers no compiler for it. Instead it is applied when the model is loaded, "
            f"'delegraph run MODEL -d {address.name}', and 'delegraph cache warm MODEL "
            f"-d {address.name}' fills its cache beforehand. Those that compile into the file: "
            f"{', '.join(compilable()) or 'none'}"
        )
    return offer


def compilable() -> list[str]:
    """Addresses of the installed delegates that compile ahead of time."""
    return [offer.address for offer in installed().offers() if is_compilable(offer)]


def is_compilable(offer: Offer) -> bool:
    """Whether a delegate has something to put into a model's file."""
    return offer.compiler is not None or offer.spec.load_compiling is not None


def _claiming(chosen: Sequence[CompilingDelegate | Keeper]) -> Iterator[Delegate]:
    """Yield the delegates to apply, up to the last one whose partitions are compiled.

    A delegate that stores entries claims nodes as well, for its first processor level. Its entries
    are written later, because they are made for the final file.
    """
    last = max(i for i, each in enumerate(chosen) if isinstance(each, CompilingDelegate))
    claimed = set[str]()
    for each in chosen[: last + 1]:
        if isinstance(each, CompilingDelegate):
            yield each
        elif each.offer.address not in claimed:
            claimed.add(each.offer.address)
            yield each.delegate()


def _apply(session: Session, delegates: Iterable[Delegate]) -> None:
    """Apply *delegates* to the loaded model.

    Before them, delegates are applied that set the shapes of custom operators.

    Args:
        session: the loaded model.
        delegates: delegates whose partitions are compiled, or whose nodes stay unchanged.
    """
    for compiler in compilers_of(session.model):
        session.apply(compiled_delegate(compiler, loads=False))
    for delegate in called_for(session.unresolved_custom_ops()):
        session.apply(delegate)
    if not session.unresolved_custom_ops():
        session.allocate(session.subgraphs[0])  # the final shapes, not the file's
    for subgraph in session.subgraphs:
        subgraph.context.write_entries({})  # kept in no cache, as they may be another processor's
    session.apply_all(delegates)


def _plan(subgraph: Subgraph) -> Iterator[int | CompiledNode]:
    """Yield a subgraph's operators by index, and its compiled partitions, in order."""
    for node, _ in subgraph.plan.steps():
        if isinstance(node.delegate, CompilingDelegate):
            yield node.delegate.compiled[subgraph.spec.index, node.options.nodes_to_replace]
        else:
            yield from (inner.index for inner, _ in subgraph.plan.model_nodes(node))


def _bundles(model: AnyPath | bytes, session: Session) -> Chain:
    """Return the nested bundles that hold the model; empty if it is a file or bytes."""
    is_bytes = isinstance(model, bytes)
    return () if is_bytes else bundles_of(os.fsdecode(model), session.options.limits.memory)


def _content(session: Session, plans: Plans) -> bytes:
    """Return the bytes of the model file in which compiled partitions replace their nodes.

    Args:
        session: the loaded model.
        plans: for each subgraph, operator indices and compiled partitions in execution order.
    """
    if not any(isinstance(step, CompiledNode) for plan in plans for step in plan):
        return session.model.content.tobytes()
    record = records_of(session.model)
    record = _with_control_edges(_with_shapes(record, plans), session.model, plans)
    custom = [[s if isinstance(s, int) else s.custom_node() for s in plan] for plan in plans]
    return self_contained(session.model, pruned(with_plans(record, custom))).tobytes()


def _with_shapes(
    record: tables.Model, plans: Sequence[Sequence[int | CompiledNode]]
) -> tables.Model:
    """Return *record* with compiled shapes for the outputs of compiled partitions.

    *plans* has, for each subgraph, operator indices and compiled nodes in order.
    """
    subgraphs = []
    for subgraph, plan in zip(record.subgraphs or (), plans, strict=True):
        tensors = list(subgraph.tensors or ())
        for step in plan:
            if isinstance(step, CompiledNode):
                for index, shape in zip(step.outputs, step.partition.outputs, strict=True):
                    if shape is not None:
                        tensors[index] = tensors[index].replace(shape=shape)
        subgraphs.append(subgraph.replace(tensors=tuple(tensors)))
    return record.replace(subgraphs=tuple(subgraphs))


def _with_control_edges(record: tables.Model, model: Model, plans: Plans) -> tables.Model:
    """Return *record* with control edges renumbered for the operators of *plans*."""
    edges = parse_control_edges(model.metadata, len(plans))
    if edges is None:
        return record
    moved = [
        {
            old: new
            for new, step in enumerate(plan)
            for old in ([step] if isinstance(step, int) else step.nodes)
        }
        for plan in plans
    ]
    content = np.frombuffer(moved_control_edges(edges, moved), np.uint8)
    buffers = list(record.buffers or ())
    for entry in record.metadata or ():
        if entry.name == CONTROL_EDGES:
            buffers[entry.buffer] = tables.Buffer(data=content)
    return record.replace(buffers=tuple(buffers))
