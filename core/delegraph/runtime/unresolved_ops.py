"""The error for custom operators without an implementation, with advice for the user."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from delegraph.delegation.compiled_partition import CUSTOM_OP, read_custom_options
from delegraph.delegation.placement import Placement
from delegraph.delegation.rejections import NO_REASON
from delegraph.errors import UnresolvedOpError, did_you_mean
from delegraph.operators.custom_op import registered_custom_ops
from delegraph.operators.registration import Node
from delegraph.plugins.foreign_operators import likely_provider
from delegraph.plugins.known_packages import install_command
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegated_plan import DelegatedPlan, delegate_name
from delegraph.runtime.delegates.compiled_partitions import not_applied


def check_resolved(placement: Placement, plans: Sequence[DelegatedPlan]) -> None:
    """Raise an error if any node has neither a kernel nor a delegate.

    Raises:
        UnresolvedOpError: some nodes have neither a kernel nor a delegate; the error names all
            their operators and gives advice.
    """
    for node in placement.unresolved():
        plan = plans[node.subgraph]
        raise unresolved_op_error(plan, plan.node(node.index)[0])


def unresolved_op_error(plan: DelegatedPlan, node: Node) -> UnresolvedOpError:
    """Return the error that lists all custom operators without an implementation."""
    missing: dict[str, list[Node]] = {}
    for found, registration in plan.steps():
        if registration.is_unresolved:
            missing.setdefault(registration.name, []).append(found)
    first = plan.node(node.index)[1].name
    advice = {
        name: (len(nodes), _refusals(plan, nodes) or _remedy(name, nodes))
        for name, nodes in missing.items()
    }
    lines = [f"Encountered unresolved custom op: {first}.", *advice_lines(advice)]
    return UnresolvedOpError("\n".join(lines), node_index=node.index, op=first)


def advice_lines(advice: Mapping[str, tuple[int, str]]) -> list[str]:
    """Lines of advice on custom operators; equal advice is given once, for all its operators.

    >>> advice_lines({"B": (1, "install it"), "A": (2, "install it")})
    ['  A, B (3 nodes): install it']

    Args:
        advice: mapping from an operator's name to its number of nodes and the advice.
    """
    names = defaultdict[str, list[str]](list)
    counts = Counter[str]()
    for name, (count, text) in sorted(advice.items()):
        names[text].append(name)
        counts[text] += count
    return [
        f"  {', '.join(names[text])} ({count} node{'s' * (count > 1)}): {text}"
        for text, count in counts.items()
    ]


def _refusals(plan: DelegatedPlan, nodes: Sequence[Node]) -> str:
    """Text with the reasons why the delegates of *plan* that know the operator rejected *nodes*."""
    ignored = ["op", NO_REASON.constraint]
    if likely_provider(plan.node(nodes[0].index)[1].name) is not None:
        ignored.append("not-well-formed")  # no delegate here can run the node at all
    reasons = {
        f"delegate {delegate_name(applied.delegate)!r} refuses it: {rejection}": None
        for applied in plan.applied
        for node in nodes
        if (rejection := applied.rejections.get(node.index, NO_REASON)).constraint not in ignored
    }
    return "; ".join(reasons)


def _remedy(custom_op: str, nodes: Sequence[Node]) -> str:
    if custom_op == CUSTOM_OP:
        return not_applied(read_custom_options(node.custom_options) for node in nodes)
    return remedy(custom_op)


def remedy(custom_op: str) -> str:
    """Text that says how to get an implementation of the custom operator *custom_op*."""
    offers = installed().for_custom_ops([custom_op])
    if offers:
        name = offers[0].spec.name
        return f"delegate {name!r} is there for it and was not applied: delegates=[{name!r}]"
    command = install_command(custom_op)
    if command is not None:
        return command
    provider = likely_provider(custom_op)
    if provider is not None:
        return f"{provider}"
    advice = "it needs register_custom_op(), or a delegate that claims it"
    return advice + _registered_hint(custom_op)


def _registered_hint(custom_op: str) -> str:
    """Suggestion of a registered operator of a similar name, which may differ only in case."""
    known = sorted(registered_custom_ops())
    same = [name for name in known if name.lower() == custom_op.lower()]
    return f" (did you mean {same[0]!r}?)" if same else did_you_mean(custom_op, known)
