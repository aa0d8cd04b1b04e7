"""``delegraph explain``: shows which nodes delegates claim, and why they reject the others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import (
    console,
    heading,
    plural,
    print_json,
    print_paragraph,
    print_table,
    progress,
    signature_text,
    size,
)
from delegraph.cli.exit_codes import OK
from delegraph.cli.failure import CheckFailed, with_options
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import placed_setup_options

OWN = "Delegraph"  # runs what no delegate takes, where a lock is made
NOTHING = "nothing"  # runs a custom operator that is not known
_UNRESOLVED_IN_LITERT = re.compile(
    r"(?:unresolved custom op|Select TensorFlow op).*\((.+)\) failed to prepare", re.DOTALL
)

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph import Interpreter
    from delegraph.delegation.placement import Placement
    from delegraph.runtime.options import Requirement
    from delegraph.tools.explanation import Explanation, Stage
    from delegraph.tools.placement_lock import PlacementDifference
    from delegraph.tools.setup import Setup


@dataclass(frozen=True)
class ExplainRequest:
    """Parsed options of ``delegraph explain``."""

    setup: Setup
    require: Requirement | None
    lock: str | None
    check: str | None
    signature: str | None
    as_json: bool


@click.command("explain", cls=SectionedCommand)
@placed_setup_options
@click.option(
    "--signature",
    metavar="NAME",
    help="Show only the nodes of this signature.",
)
@click.option("--lock", metavar="FILE", help="Write the placement to FILE.")
@click.option(
    "--check",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    metavar="FILE",
    help="Exit with 1 where the placement differs from that of --lock.",
)
@json_option
@diagnosis_options
def command(**options: Any) -> int:
    """Show which nodes delegates take, and why not others.

    The delegates are applied and tensors get their shapes. No node is computed, except to measure
    for --partition-policy measured.
    """
    request = _with_locked_delegates(ExplainRequest(**options))
    if request.signature is not None and (request.lock or request.check) is not None:
        option = "--check" if request.lock is None else "--lock"
        raise click.UsageError(f"{option} is about all signatures: leave out --signature")
    if request.setup.runtime != "delegraph":
        return _explain_litert(request)
    return _explain(request) if request.check is None else _check(request, request.check)


def _with_locked_delegates(request: ExplainRequest) -> ExplainRequest:
    """Return the request with the delegates of the checked lock, if it names no delegates."""
    context = click.get_current_context()
    if request.lock is not None and request.check is not None:
        raise click.UsageError("--lock writes and --check compares; give one of them", context)
    if request.setup.delegates or request.setup.delegate_files or request.check is None:
        return request
    from delegraph.tools.placement_lock import read_lock

    lock = read_lock(request.check)
    setup = replace(
        request.setup, delegates=lock.delegates or None, delegate_files=lock.delegate_files
    )
    return replace(request, setup=setup)


def _interpreter(request: ExplainRequest) -> Interpreter:
    """Return an interpreter with the delegates applied, allocated if possible."""
    from delegraph import DelegraphError, Interpreter
    from delegraph.delegation.dry_run import dry_run
    from delegraph.errors import TimeLimitError
    from delegraph.tools.model_call import allocate, require_signature

    setup = request.setup
    names = ", ".join((*map(str, setup.delegates or ()), *setup.delegate_files)) or "delegates"
    with progress(f"applying {names}"), dry_run():
        interpreter = setup.interpreter()
        assert isinstance(interpreter, Interpreter)
        session = interpreter.session
        has_incidents = bool(interpreter.incidents)
        if not (session.delegates or has_incidents or session.unresolved_custom_ops()):
            raise click.UsageError(
                "give at least one --delegate: the model calls for none by itself",
                click.get_current_context(),
            )
        if request.signature is not None:
            require_signature(request.signature, interpreter.get_signature_list())
        try:
            allocate(interpreter, request.signature)
        except TimeLimitError:
            raise
        except DelegraphError:
            pass  # then the printed sizes are those that the file declares
    return interpreter


def _explain(request: ExplainRequest) -> int:
    from delegraph.runtime.unresolved_ops import check_resolved
    from delegraph.tools.explanation import explain
    from delegraph.tools.placement_lock import lock_of, write_lock

    with _interpreter(request) as interpreter:
        explanation = explain(interpreter, request.signature)
        numerics = interpreter.numerics
        lock = lock_of(interpreter, request.setup.model, *_typed(request.setup))
        if request.as_json:
            print_json(
                {"model": request.setup.model, "numerics": numerics, **explanation.to_json()}
            )
        else:
            _print(console(), request.setup.model, explanation)
        check_resolved(interpreter.placement, [s.plan for s in interpreter.session.subgraphs])
    _require(request, explanation.placement)
    if request.lock is not None:
        write_lock(lock, request.lock)
        click.echo(f"placement written to {request.lock}", err=True)
    return OK


def _check(request: ExplainRequest, file: str) -> int:
    from delegraph.runtime.unresolved_ops import check_resolved
    from delegraph.tools.placement_lock import compare, lock_of, read_lock

    locked = read_lock(file)
    with _interpreter(request) as interpreter:
        placement = interpreter.placement
        present = lock_of(interpreter, request.setup.model, *_typed(request.setup))
        difference = compare(locked, present, placement)
        if request.as_json:
            answer = {"model": request.setup.model, "lock": file, "ok": not difference}
            print_json({**answer, "placement": str(placement), "difference": difference.to_json()})
        elif difference:
            _print_changes(console(), difference)
        else:
            click.echo(
                f"ok: {Path(request.setup.model).name} is placed as {file} says: {placement}"
            )
        check_resolved(interpreter.placement, [s.plan for s in interpreter.session.subgraphs])
    if difference:
        raise CheckFailed(f"the placement is not as {file} says: {difference}")
    _require(request, placement)
    return OK


def _explain_litert(request: ExplainRequest) -> int:
    """Explain the placement of nodes in the official interpreter; return the exit code."""
    from delegraph.delegation.dry_run import dry_run
    from delegraph.errors import PlacementError, UnresolvedOpError
    from delegraph.tools.explanation import explain_placement, known_in_first_only, unresolved_in
    from delegraph.tools.model_call import allocate, require_signature

    for option in ("lock", "check"):
        if getattr(request, option) is not None:
            raise click.UsageError(f"--{option} needs --runtime delegraph")
    with progress("applying delegates"), dry_run(), request.setup.interpreter() as interpreter:
        unknown, unloaded = None, None
        if request.signature is not None:
            require_signature(request.signature, interpreter.get_signature_list())
        try:
            allocate(interpreter, request.signature)
        except PlacementError:
            raise
        except UnresolvedOpError as error:
            unknown, unloaded = error.op, error
        except RuntimeError as error:  # otherwise the runtime's own delegates would not show
            found = _UNRESOLVED_IN_LITERT.search(str(error))
            unknown = None if found is None else found[1]
        placement = interpreter.placement
        if unknown is not None:
            placement = unresolved_in(placement, unknown)
        model = request.setup.loaded_model()
        first_only = known_in_first_only(request.setup.runtime)
        explanation = explain_placement(placement, model, request.signature, first_only=first_only)
    if request.as_json:
        print_json({"model": request.setup.model, "numerics": "builtin", **explanation.to_json()})
    else:
        _print(console(), request.setup.model, explanation)
        hidden = [name for name in first_only if name in placement.delegates]
        if hidden and len(model.subgraphs) > 1:
            print_paragraph(
                console(),
                f"LiteRT's Interpreter reports the nodes of {hidden[0]} in the first subgraph "
                "only; --runtime litert2 shows all",
            )
    if unloaded is not None:
        raise unloaded
    if unknown is not None:
        raise CheckFailed(f"nothing runs {unknown}: LiteRT does not know it and no delegate has it")
    _require(request, explanation.placement)
    return OK


def _typed(setup: Setup) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return delegate names, with ``all`` expanded, and delegate files, for a lock."""
    names = replace(setup, delegate_files=()).requested_delegates() or []
    return tuple(map(str, names)), setup.delegate_files


def _require(request: ExplainRequest, placement: Placement) -> None:
    if request.require == "full":
        from delegraph.delegation.rules import require_full

        require_full(placement)


def _print(out: Console, model: str, explanation: Explanation) -> None:
    placement = explanation.placement
    out.print(model, style="bold")
    if explanation.signature is not None:
        others = [each.name for each in explanation.signatures]
        print_paragraph(out, signature_text(explanation.signature, others))
    print_paragraph(out, str(placement))
    if placement.crossings:
        print_paragraph(out, _crossings(placement))
    print_stages(out, explanation)
    if explanation.refusals:
        print_refusals(out, explanation)
    if placement.incidents:
        heading(out, "Incidents")
        for incident in placement.incidents:
            print_paragraph(out, str(incident))
    if explanation.signature is None and len(explanation.signatures) > 1:
        print_signatures(out, explanation)


def print_signatures(out: Console, explanation: Explanation) -> None:
    """Print the placement of each signature in one line."""
    heading(out, "Signatures")
    rows = [(each.name, each.subgraph, each.summary) for each in explanation.signatures]
    print_table(out, ("name", "subgraph", "placement"), rows, right=("subgraph",))
    out.print()
    out.print("--signature NAME shows one of them alone")


def _crossings(placement: Placement) -> str:
    """Return a sentence about the bytes that cross partition boundaries."""
    count, unknown = len(placement.crossings), placement.unknown_crossings
    known = size(sum(crossing.bytes or 0 for crossing in placement.crossings))
    verb = "crosses" if count == 1 else "cross"
    sentence = f"{plural(count, 'tensor')} {verb} to or from a delegate"
    if unknown:
        return f"{sentence}, {known} and {unknown} of a size known only while invoking"
    return f"{sentence}, {known} an invoke"


def _print_changes(out: Console, difference: PlacementDifference) -> None:
    """Print the nodes that moved to another delegate."""
    from delegraph.delegation.placement import node_numbers

    groups: dict[tuple[object, ...], list[int]] = {}
    for change in difference.nodes:
        key = (change.subgraph, change.op, change.before, change.after, change.reason)
        groups.setdefault(key, []).append(change.index)
    print_table(
        out,
        ("subgraph", "operator", "count", "nodes", "ran on", "runs on", "reason"),
        [
            (subgraph, op, len(nodes), node_numbers(nodes), before or OWN, after or OWN, reason)
            for (subgraph, op, before, after, reason), nodes in groups.items()
        ],
        right=("subgraph", "count"),
    )


def print_stages(out: Console, explanation: Explanation) -> None:
    """Print the placement in execution order, with the boundary bytes of partitions."""
    from delegraph.delegation.placement import node_numbers
    from delegraph.tools.explanation import operator_counts

    several = len({stage.subgraph for stage in explanation.stages}) > 1
    placement = explanation.placement
    columns = ["subgraph", "partition", "runs on", "count", "nodes", "in", "out", "operators"]
    rows = [
        (
            stage.subgraph,
            "-" if stage.partition is None else stage.partition,
            _runner(placement, stage),
            len(stage.nodes),
            node_numbers(stage.nodes),
            *_boundary(placement, stage.partition),
            operator_counts(stage.ops),
        )
        for stage in explanation.stages
    ]
    left_out = set() if several else {"subgraph"}
    if not placement.partitions:
        left_out |= {"partition", "in", "out"}
    kept = [i for i, column in enumerate(columns) if column not in left_out]
    heading(out, "In execution order")
    print_table(
        out,
        [columns[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        right=("subgraph", "partition", "count", "in", "out"),
    )


def _runner(placement: Placement, stage: Stage) -> str:
    """Return the name of the delegate or host that runs a stage, with the delegate's note."""
    if stage.delegate is None:
        return NOTHING if stage.is_unresolved else placement.host
    note = placement.notes.get(stage.delegate)
    return f"{stage.delegate} ({note})" if note else stage.delegate


def _boundary(placement: Placement, partition: int | None) -> tuple[str, str]:
    """Return the sizes of a partition's inputs and outputs as text, without constants."""
    if partition is None:
        return "-", "-"
    found = placement.partitions[partition]
    sizes = (found.input_bytes, found.output_bytes)
    enters, leaves = ("?" if count is None else size(count) for count in sizes)
    return enters, leaves


def print_refusals(out: Console, explanation: Explanation) -> None:
    """Print the rejected nodes with the reasons."""
    from delegraph.delegation.placement import node_numbers

    several = len({node.subgraph for node in explanation.placement.nodes}) > 1
    heading(out, "Left by a delegate")
    rows = [
        (
            refusal.delegate,
            *((refusal.subgraph,) if several else ()),
            refusal.op,
            len(refusal.nodes),
            node_numbers(refusal.nodes),
            with_options(refusal.reason, command),
            NOTHING if refusal.is_unresolved else refusal.runs_on or explanation.placement.host,
        )
        for refusal in explanation.refusals
    ]
    first, *others = ("delegate", "operator", "count", "nodes", "reason", "runs on")
    columns = (first, "subgraph", *others) if several else (first, *others)
    print_table(out, columns, rows, right=("subgraph", "count"))
