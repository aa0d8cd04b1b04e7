"""``delegraph diff --bisect``: finds and prints the nodes that cause a difference."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from delegraph.cli.answers.diff import print_side
from delegraph.cli.answers.printing import (
    console,
    heading,
    print_json,
    print_paragraph,
    print_table,
)
from delegraph.cli.failure import CheckFailed
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.delegation.tolerance import Tolerance
    from delegraph.tools.differing.difference import Difference
    from delegraph.tools.differing.faulty_nodes import Bisection, Culprit
    from delegraph.tools.progress import Progress
    from delegraph.tools.setup import Setup

_FEW = 3
"""Number of culprits that are printed in full; others are numbers."""

_XNNPACK = (
    "XNNPACK has all nodes that a delegate has, and cannot be bisected, since it follows no rules"
)


def bisect_and_print(
    setup: Setup,
    reference: Setup | None,
    tolerances: dict[str, Tolerance] | None,
    given: dict[str, Any],
    progress: Progress,
    *,
    as_json: bool,
) -> None:
    """Search for the faulty nodes, and print them.

    The *reference* None means Delegraph's kernels. *tolerances* are by output; None means the
    numerics profile. *given* has further arguments of ``bisect``, by name.

    Raises:
        CheckFailed: the result is wrong.
        KeyboardInterrupt: an interrupt ended the search, whose culprits so far are printed.
    """
    from delegraph.native.litert.placement import RUNTIME_DELEGATE
    from delegraph.tools.differing.difference import diff
    from delegraph.tools.differing.faulty_nodes import Bisection, bisect

    def compared() -> Difference:
        words = {name: given[name] for name in ("inputs", "runs", "signature")}
        return diff(setup, reference, tolerance=tolerances, progress=progress, **words)

    is_official = setup.runtime != "delegraph"
    whole = compared() if is_official and not setup.requested_delegates() else None
    if whole is not None and whole.test_placement.delegates == (RUNTIME_DELEGATE,):
        _judge_xnnpack(whole, Bisection(whole.test, whole.reference), as_json=as_json)
        return
    found = bisect(setup, reference, tolerance=tolerances, progress=progress, **given)
    if not found.candidates and is_official:
        whole = whole or compared()
        if RUNTIME_DELEGATE in whole.test_placement.delegates:
            _judge_xnnpack(whole, found, as_json=as_json)
            return
    if as_json:
        print_json(found.to_json())
    else:
        print_bisection(console(), found, has_tolerance=tolerances is not None)
    if found.is_right:
        return
    if found.is_interrupted:
        raise KeyboardInterrupt
    if found.has_right_nodes:
        raise CheckFailed("the result is further off than the tolerance: by roundings alone")
    count = plural(len(found.culprits), "culprit") if found.culprits else "no node is to blame"
    raise CheckFailed(f"the result is wrong: {count}")


def _judge_xnnpack(whole: Difference, found: Bisection, *, as_json: bool) -> None:
    """Print whether outputs are right when only LiteRT's XNNPACK has nodes.

    A bisection cannot search these nodes, because no placement rule takes nodes from XNNPACK. So
    *found*, the search without XNNPACK, had no nodes; *whole* is the outputs' difference with it.

    Raises:
        CheckFailed: outputs are beyond the tolerance, by default the numerics profile.
    """
    from delegraph.tools.differing.command_line import layers_command
    from delegraph.tools.differing.verdict import verdict_of

    verdict = verdict_of(whole)
    if as_json:
        print_json(found.to_json() | {"verdict": verdict.to_json()})
    else:
        out = console()
        out.print(verdict.text, style="bold")
        print_paragraph(out, f"nothing to search: {_XNNPACK}", indent=0)
        command = layers_command(whole.test, whole.reference, whole.signature)
        out.print(f"each node of XNNPACK alone: {command}", soft_wrap=True)
        out.print()
        print_side(out, "test", whole.test)
        print_side(out, "reference", whole.reference)
    if verdict.word == "differs":
        raise CheckFailed(f"the result is wrong: {'; '.join(whole.failures) or verdict.text}")


def print_bisection(out: Console, found: Bisection, *, has_tolerance: bool = True) -> None:
    """Print the faulty nodes, and the files that reproduce each fault.

    *has_tolerance* tells whether the user gave a tolerance.
    """
    out.print(_verdict(found, "tolerance" if has_tolerance else "numerics profile"), style="bold")
    out.print()
    print_side(out, "test", found.setup)
    print_side(out, "reference", found.reference)
    out.print(f"{_candidates(found)}, {plural(len(found.probes), 'probe')}")
    if found.culprits:
        heading(out, "Culprits")
        columns = ("nodes", "operators", "delegate", "what happens")
        print_table(out, columns, [_row(c) for c in found.culprits[:_FEW]])
        if more := found.culprits[_FEW:]:
            nodes = "; ".join(" and ".join(_numbers(culprit)) for culprit in more)
            print_paragraph(out, f"{len(more)} more, which --json has in full: nodes {nodes}")
    for culprit in found.culprits[:_FEW]:
        _print_files(out, culprit)
    if found.rules_file:
        start = "right without" if found.is_complete else "without"
        out.print(f"{start} their delegates: --rules {found.rules_file}", soft_wrap=True)
    for remark in found.remarks:
        print_paragraph(out, f"note: {remark}", indent=0)


def _verdict(found: Bisection, bound: str) -> str:
    """Return a sentence that names the wrong nodes, or says that no node is wrong."""
    if not found.candidates:
        return "nothing to search: no delegate has a node"
    if found.is_right:
        takers = {node.delegate for node in found.candidates if node.is_by_default}
        is_rest = all(node.is_by_default for node in found.candidates)
        taken = f"{takers.pop()} takes by default" if is_rest else "delegates take"
        return f"right: outputs are within the {bound} with all nodes that {taken}"
    blame = _blame(found)
    if found.cause is not None and found.has_right_nodes:
        return f"further off than the {bound}: {found.cause['text']}"
    kinds = {culprit.outcome.kind for culprit in found.culprits}
    return f"further off than the {bound}: {blame}" if kinds == {"differs"} else f"wrong: {blame}"


def _blame(found: Bisection) -> str:
    if not found.culprits:
        return f"no node is to blame: {found.baseline or found.remarks[0]}"
    named = [_in_words(culprit) for culprit in found.culprits[:_FEW]]
    more = len(found.culprits) - len(named)
    return "; ".join([*named, *([f"{more} more"] if more else [])])


def _in_words(culprit: Culprit) -> str:
    nodes = " and ".join(map(str, culprit.nodes))
    return f"{nodes} together" if len(culprit.nodes) > 1 else nodes


def _candidates(found: Bisection) -> str:
    """Return text with the number of delegated nodes, and how many are with default delegates."""
    rest = Counter(node.delegate for node in found.candidates if node.is_by_default)
    shares = " and ".join(f"{count} of {name}, by default" for name, count in rest.items())
    text = f"{plural(len(found.candidates), 'node')} with delegates"
    return f"{text} ({shares})" if shares else text


def _row(culprit: Culprit) -> tuple[object, ...]:
    return (
        ", ".join(_numbers(culprit)),
        ", ".join(node.op for node in culprit.nodes),
        ", ".join(dict.fromkeys(node.delegate or "" for node in culprit.nodes)),
        str(culprit.outcome),
    )


def _numbers(culprit: Culprit) -> list[str]:
    """Return the number of each node, with that of its subgraph if one is not the first."""
    several = any(node.subgraph for node in culprit.nodes)
    return [f"{n.subgraph}:{n.index}" if several else str(n.index) for n in culprit.nodes]


def _print_files(out: Console, culprit: Culprit) -> None:
    files = culprit.reproduction
    if files is not None:
        nodes = "node" if len(culprit.nodes) == 1 else "nodes"
        indices = ", ".join(str(node.index) for node in culprit.nodes)
        how = "shown by the whole model" if files.is_whole else f"shown alone by {files.model}"
        out.print(f"{nodes} {indices} {how}:", soft_wrap=True)
        out.print(f"  {files.command}", soft_wrap=True, style="dim")
