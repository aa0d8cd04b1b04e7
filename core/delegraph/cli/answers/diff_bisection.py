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

_XNNPACK = (
    "XNNPACK has all nodes that a delegate has, and cannot be bisected, since it follows no rules: "
    "--layers --inner alone tells more"
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

    Args:
        setup: the tested set-up.
        reference: the set-up with right results; None means Delegraph's kernels.
        tolerances: tolerance of each output, by name; None means the numerics profile.
        given: further arguments of ``bisect``, by name.
        progress: function that is called with the number of finished probes.
        as_json: whether to print JSON.

    Raises:
        CheckFailed: the result is wrong.
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
    raise CheckFailed(f"the result is wrong: {_blame(found)}")


def _judge_xnnpack(whole: Difference, found: Bisection, *, as_json: bool) -> None:
    """Print whether outputs are right where XNNPACK alone has nodes, which no rule takes from it.

    Args:
        whole: difference of the outputs, computed with XNNPACK.
        found: the search without XNNPACK, which had no nodes to search.
        as_json: whether to print JSON.

    Raises:
        CheckFailed: outputs are beyond the tolerance, or without one beyond the numerics profile.
    """
    from delegraph.tools.differing.verdict import verdict_of

    verdict = verdict_of(whole)
    if as_json:
        print_json(found.to_json() | {"verdict": verdict.to_json()})
    else:
        out = console()
        out.print(verdict.text, style="bold")
        print_paragraph(out, f"nothing to search: {_XNNPACK}", indent=0)
        out.print()
        print_side(out, "test", whole.test)
        print_side(out, "reference", whole.reference)
    if verdict.word == "differs":
        raise CheckFailed(f"the result is wrong: {'; '.join(whole.failures) or verdict.text}")


def print_bisection(out: Console, found: Bisection, *, has_tolerance: bool = True) -> None:
    """Print the faulty nodes, and the files that reproduce each fault.

    Args:
        out: the terminal.
        found: the faulty nodes.
        has_tolerance: whether the user gave a tolerance.
    """
    out.print(_verdict(found, "tolerance" if has_tolerance else "numerics profile"), style="bold")
    out.print()
    print_side(out, "test", found.setup)
    print_side(out, "reference", found.reference)
    out.print(f"{_candidates(found)}, {plural(len(found.probes), 'probe')}")
    if found.culprits:
        heading(out, "Culprits")
        columns = ("nodes", "operators", "delegate", "what happens")
        print_table(out, columns, [_row(c) for c in found.culprits])
    for culprit in found.culprits:
        _print_files(out, culprit)
    if found.rules_file:
        out.print(f"right without delegates on them: --rules {found.rules_file}", soft_wrap=True)
    for remark in found.remarks:
        print_paragraph(out, f"note: {remark}", indent=0)


def _verdict(found: Bisection, bound: str) -> str:
    """Return which nodes are wrong, or that none is."""
    if not found.candidates:
        return "nothing to search: no delegate has a node"
    if found.is_right:
        return f"right: outputs are within the {bound} with all nodes that delegates take"
    blame = _blame(found)
    kinds = {culprit.outcome.kind for culprit in found.culprits}
    return f"further off than the {bound}: {blame}" if kinds == {"differs"} else f"wrong: {blame}"


def _blame(found: Bisection) -> str:
    if not found.culprits:
        return f"no node is to blame: {found.baseline or found.remarks[0]}"
    return "; ".join(_in_words(culprit) for culprit in found.culprits)


def _in_words(culprit: Culprit) -> str:
    nodes = " and ".join(map(str, culprit.nodes))
    return f"{nodes} together" if len(culprit.nodes) > 1 else nodes


def _candidates(found: Bisection) -> str:
    """Return text that counts the nodes of delegates, and among them those of the default."""
    rest = Counter(node.delegate for node in found.candidates if node.is_by_default)
    shares = " and ".join(f"{count} of {name}, by default" for name, count in rest.items())
    text = f"{plural(len(found.candidates), 'node')} with delegates"
    return f"{text} ({shares})" if shares else text


def _row(culprit: Culprit) -> tuple[object, ...]:
    several = any(node.subgraph for node in culprit.nodes)
    names = [f"{n.subgraph}:{n.index}" if several else str(n.index) for n in culprit.nodes]
    return (
        ", ".join(names),
        ", ".join(node.op for node in culprit.nodes),
        ", ".join(dict.fromkeys(node.delegate or "" for node in culprit.nodes)),
        str(culprit.outcome),
    )


def _print_files(out: Console, culprit: Culprit) -> None:
    files = culprit.reproduction
    if files is not None:
        nodes = "node" if len(culprit.nodes) == 1 else "nodes"
        indices = ", ".join(str(node.index) for node in culprit.nodes)
        how = "shown by the whole model" if files.is_whole else f"shown alone by {files.model}"
        out.print(f"{nodes} {indices} {how}:", soft_wrap=True)
        out.print(f"  {files.command}", soft_wrap=True, style="dim")
