"""``delegraph explain``: shows which nodes delegates claim, and why they reject the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import (
    console,
    print_json,
    print_paragraph,
    print_table,
    progress,
)
from delegraph.cli.exit_codes import OK
from delegraph.cli.failure import (
    UNRESOLVED_IN_LITERT,
    CheckFailed,
    remedy_in_options,
    with_options,
)
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import placed_setup_options

REST = "the rest"  # runs the nodes that no requested delegate takes
_GUARDS_NOTHING = (
    "no delegate is named, and none takes a node by default: the lock guards only the model's "
    "contents; name a delegate with -d"
)

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph import Interpreter
    from delegraph.delegation.placement import Placement
    from delegraph.errors import UnresolvedOpError
    from delegraph.runtime.options import Requirement
    from delegraph.tools.explanation import Explanation
    from delegraph.tools.hints import Hint
    from delegraph.tools.placement_lock import PlacementDifference, PlacementLock
    from delegraph.tools.refusals import Refusal
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
@click.option(
    "--lock",
    type=OutputFile(),
    metavar="FILE",
    help="Write the placement to FILE; not with --runtime.",
)
@click.option(
    "--check",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    metavar="FILE",
    help="Exit with 1 if the placement differs from that of --lock.",
)
@json_option
@diagnosis_options
def command(**options: Any) -> int:
    """Show which nodes delegates take, and why not others.

    The delegates are applied and tensors get their shapes. No node is computed, except to measure
    for --partition-policy measured. Nodes of the default delegate are shown as the rest. The exit
    code is 0 even if delegates leave nodes; with --require full it is then 1.
    """
    request = _with_locked_delegates(ExplainRequest(**options))
    if request.signature is not None and (request.lock or request.check) is not None:
        option = "--check" if request.lock is None else "--lock"
        raise click.UsageError(f"{option} is about all signatures: leave out --signature")
    if request.setup.runtime != "delegraph":
        return _explain_litert(request)
    return _explain(request) if request.check is None else _check(request, request.check)


def _with_locked_delegates(request: ExplainRequest) -> ExplainRequest:
    """Return the request; if it names no delegates, with those of the lock file to check."""
    context = click.get_current_context()
    if request.lock is not None and request.check is not None:
        raise click.UsageError("--lock writes and --check compares; give one of them", context)
    if request.setup.delegates or request.setup.delegate_files or request.check is None:
        return request
    from delegraph.tools.placement_lock_file import read_lock

    lock = read_lock(request.check)
    setup = replace(
        request.setup, delegates=lock.delegates or None, delegate_files=lock.delegate_files
    )
    return replace(request, setup=setup)


def _interpreter(request: ExplainRequest) -> tuple[Interpreter, str]:
    """Return an interpreter with the delegates applied, allocated if possible.

    The text is the error of the allocation; empty if there is none, or an operator is unresolved.
    """
    from delegraph import DelegraphError, Interpreter
    from delegraph.delegation.dry_run import dry_run
    from delegraph.errors import TimeLimitError, UnresolvedOpError
    from delegraph.tools.model_call import allocate, require_signature
    from delegraph.tools.running_subgraphs import running_subgraphs

    setup, fault = request.setup, ""
    names = ", ".join((*map(str, setup.delegates or ()), *setup.delegate_files)) or "delegates"
    with progress(f"applying {names}"), dry_run():
        interpreter = setup.interpreter()
        assert isinstance(interpreter, Interpreter)
        session = interpreter.session
        if request.signature is not None:
            require_signature(request.signature, interpreter.get_signature_list())
        try:
            allocate(interpreter, request.signature)
            if request.signature is None:
                running_subgraphs(session)  # allocates those of signatures, for their sizes
        except TimeLimitError:
            raise
        except DelegraphError as error:  # then the declared sizes are printed
            if not isinstance(error, UnresolvedOpError):
                fault = with_options(str(error), click.get_current_context().command)
            if any(subgraph.plan.undone for subgraph in session.subgraphs):
                interpreter.close()
                interpreter = setup.interpreter()  # with the delegates that a resize removed
                assert isinstance(interpreter, Interpreter)
    return interpreter, fault


def _explain(request: ExplainRequest) -> int:
    from delegraph.cli.answers.explanation import print_explanation
    from delegraph.errors import UnresolvedOpError
    from delegraph.json_records import to_json
    from delegraph.runtime.unresolved_ops import check_resolved
    from delegraph.tools.explanation import explain
    from delegraph.tools.placement_lock import lock_of

    unresolved: UnresolvedOpError | None = None
    interpreter, fault = _interpreter(request)
    with interpreter:
        explanation = explain(interpreter, request.signature)
        hints, hint_lines = _hints(interpreter, explanation)
        names = _typed(request.setup)
        lock = lock_of(interpreter, request.setup.model, *names, counts_default=not any(names))
        try:
            check_resolved(interpreter.placement, [s.plan for s in interpreter.session.subgraphs])
        except UnresolvedOpError as error:
            unresolved = error
    try:  # the file is written first: the reader of the answer may end before its end
        _require(request, explanation.placement, is_explained=bool(explanation.refusals))
        if request.lock is not None:
            _write(lock, request.lock, unresolved)
    finally:
        if request.as_json:
            head = {"model": request.setup.model, "numerics": request.setup.numerics}
            tail = {"hints": to_json(hints), "allocation_error": fault or None}
            print_json({**head, **explanation.to_json(), **tail})
        else:
            advice = [*_remedies(unresolved, explanation.refusals), *hint_lines]
            print_explanation(console(), request.setup.model, explanation, advice, fault)
    return OK


def _hints(
    interpreter: Interpreter, explanation: Explanation
) -> tuple[Sequence[Hint], Sequence[str]]:
    """Return changes that let delegates claim more nodes, and lines of text about them."""
    from delegraph.cli.answers.explanation import NO_HINT, hints_in_words
    from delegraph.tools.hints import are_hints_sought, hints_for

    hints = hints_for(interpreter, explanation.placement, explanation.costs)
    in_vain = not hints and are_hints_sought(interpreter, explanation.placement)
    return hints, [*hints_in_words(hints), *[NO_HINT] * in_vain]


def _hints_beside(
    request: ExplainRequest, explanation: Explanation
) -> tuple[Sequence[Hint], Sequence[str]]:
    """Return hints about a placement in LiteRT; Delegraph's interpreter asks the same delegates."""
    from delegraph.errors import DelegraphError

    if not explanation.refusals:
        return (), ()
    setup = replace(request.setup, runtime="delegraph", use_default_delegates=False)
    try:
        interpreter, _ = _interpreter(replace(request, setup=setup))
    except DelegraphError:  # of this runtime only; the placement in LiteRT is the answer
        return (), ()
    with interpreter:
        return _hints(interpreter, explanation)


def _write(lock: PlacementLock, path: str, unresolved: UnresolvedOpError | None) -> None:
    from delegraph.tools.placement_lock_file import write_lock

    if unresolved is not None:
        raise unresolved
    write_lock(lock, path)
    click.echo(f"placement written to {path}", err=True)
    if not lock.guards_a_delegate:
        click.echo(f"warning: {_GUARDS_NOTHING}", err=True)


def _remedies(error: UnresolvedOpError | None, told: Sequence[Refusal] = ()) -> list[str]:
    """Return advice about custom operators without a kernel, one line for each operator.

    Lines with a reason that the rejections *told* have are left out.
    """
    command = click.get_current_context().command
    lines = [] if error is None else str(error).splitlines()[1:]
    new = [line for line in lines if not any(refusal.reason in line for refusal in told)]
    return [with_options(line.strip(), command) for line in new]


def _check(request: ExplainRequest, file: str) -> int:
    from delegraph.runtime.unresolved_ops import check_resolved
    from delegraph.tools.placement_lock import compare, lock_of
    from delegraph.tools.placement_lock_file import read_lock

    locked = read_lock(file)
    interpreter, _ = _interpreter(request)
    with interpreter:
        placement = interpreter.placement
        present = lock_of(
            interpreter,
            request.setup.model,
            *_typed(request.setup),
            counts_default=locked.is_about(placement.default_delegate),
        )
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
    _require(request, placement, is_explained=False)
    return OK


def _explain_litert(request: ExplainRequest) -> int:
    """Explain the placement of nodes in the official interpreter; return the exit code."""
    from delegraph.cli.answers.explanation import print_explanation
    from delegraph.delegation.dry_run import dry_run
    from delegraph.errors import PlacementError, UnresolvedOpError
    from delegraph.json_records import to_json
    from delegraph.tools.explanation import explain_placement, known_in_first_only, unresolved_in
    from delegraph.tools.model_call import allocate, require_signature

    for option in ("lock", "check"):
        if getattr(request, option) is not None:
            raise click.UsageError(f"--{option} needs --runtime delegraph")
    with progress("applying delegates"), dry_run(), request.setup.interpreter() as interpreter:
        unknown, fault = None, ""
        advice: list[str] = []
        if request.signature is not None:
            require_signature(request.signature, interpreter.get_signature_list())
        try:
            allocate(interpreter, request.signature)
        except PlacementError:
            raise
        except UnresolvedOpError as error:
            unknown, advice = error.op, _remedies(error)
        except RuntimeError as error:  # otherwise the runtime's own delegates would not show
            found = UNRESOLVED_IN_LITERT.search(str(error))
            unknown, fault = (None, str(error)) if found is None else (found[1], "")
        placement = interpreter.placement
        if unknown is not None:
            placement = unresolved_in(placement, unknown)
            if not advice and not _is_refused(placement, unknown):
                advice = [f"{unknown}: {remedy_in_options(unknown)}"]
        model = request.setup.loaded_model()
        first_only = known_in_first_only(request.setup.runtime)
        explanation = explain_placement(placement, model, request.signature, first_only=first_only)
    hints, hint_lines = _hints_beside(request, explanation)
    if request.as_json:
        head = {"model": request.setup.model, "numerics": "builtin"}
        tail: dict[str, object] = {"hints": to_json(hints), "allocation_error": fault or None}
        print_json({**head, **explanation.to_json(), **tail})
    else:
        advice += hint_lines
        print_explanation(console(), request.setup.model, explanation, advice, fault)
        hidden = [name for name in first_only if name in placement.delegates]
        if hidden and len(model.subgraphs) > 1:
            print_paragraph(
                console(),
                f"LiteRT's Interpreter reports the nodes of {hidden[0]} in the first subgraph "
                "only; --runtime litert2 shows all",
            )
    _require(request, explanation.placement, is_explained=bool(explanation.refusals))
    return OK


def _is_refused(placement: Placement, custom_op: str) -> bool:
    """Whether a delegate offered for *custom_op* is applied; then it has rejected the operator."""
    from delegraph.plugins import installed

    names = {offer.spec.name for offer in installed().for_custom_ops([custom_op])}
    return not names.isdisjoint(placement.delegates)


def _typed(setup: Setup) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of requested delegates, and delegate files, as a lock file stores them.

    The name ``all`` is replaced by the names of the installed delegates.
    """
    names = replace(setup, delegate_files=()).requested_delegates() or []
    return tuple(map(str, names)), setup.delegate_files


def _require(request: ExplainRequest, placement: Placement, *, is_explained: bool) -> None:
    """Check ``--require full``; *is_explained* says whether reasons are printed before the error.

    Raises:
        PlacementError: nodes stay behind.
    """
    if request.require == "full":
        from delegraph.delegation.rules import require_full

        is_told = is_explained and not request.as_json
        require_full(placement, instead="; see 'Left by'" if is_told else "")


def _print_changes(out: Console, difference: PlacementDifference) -> None:
    """Print the nodes that moved to another delegate."""
    from delegraph.delegation.placement import node_numbers

    groups: dict[tuple[object, ...], list[int]] = {}
    for change in difference.nodes:
        key = (change.subgraph, change.op, change.before, change.after, change.reason)
        groups.setdefault(key, []).append(change.index)
    columns = ("subgraph", "operator", "count", "nodes", "ran on", "runs on", "reason")
    rows = [
        (subgraph, op, len(nodes), node_numbers(nodes), before or REST, after or REST, reason)
        for (subgraph, op, before, after, reason), nodes in groups.items()
    ]
    first = 0 if any(row[0] for row in rows) else 1  # the main subgraph needs no column
    print_table(
        out,
        columns[first:],
        [row[first:] for row in rows],
        right=("subgraph", "count"),
        optional=(("count",),),
    )
