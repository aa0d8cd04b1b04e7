"""Errors about operators that neither a delegate nor the official runtime can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from delegraph.delegation.compiled_partition import CUSTOM_OP, compiled_partitions
from delegraph.delegation.placement import Placement
from delegraph.errors import UnresolvedOpError
from delegraph.graph.model import Model
from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.operators.op_table import OP_TABLE
from delegraph.runtime.delegates.compiled_partitions import not_applied
from delegraph.runtime.unresolved_ops import advice_lines, remedy
from delegraph.schema.enums import BuiltinOperator


def unloaded_error(model: Model, delegates: Sequence[LiteRtDelegate]) -> UnresolvedOpError:
    """Return the error for a file with compiled partitions that no delegate can run."""
    partitions = compiled_partitions(model)
    reasons = list(dict.fromkeys(_reasons(delegates))) or [not_applied(partitions.values())]
    lines = [f"Encountered unresolved custom op: {CUSTOM_OP}.", *(f"  {why}" for why in reasons)]
    first = min(partitions)[1]
    return UnresolvedOpError("\n".join(lines), node_index=first, op=CUSTOM_OP)


def require_resolved(model: Model, delegates: Sequence[LiteRtDelegate], found: Placement) -> None:
    """Raise an error if a custom operator has neither a delegate nor a kernel of the runtime.

    Raises:
        UnresolvedOpError: an operator has neither; the error names all of them and gives advice.
    """
    nodes = [node for node in found.nodes if node.delegate is None and _is_foreign(node.op)]
    if any(node.op == CUSTOM_OP for node in nodes):
        raise unloaded_error(model, delegates)
    if nodes:
        counts = Counter(node.op for node in nodes)
        advice = {name: (count, remedy(name)) for name, count in counts.items()}
        lines = [f"Encountered unresolved custom op: {nodes[0].op}.", *advice_lines(advice)]
        raise UnresolvedOpError("\n".join(lines), node_index=nodes[0].index, op=nodes[0].op)


def _is_foreign(op: str) -> bool:
    return op not in OP_TABLE and op not in BuiltinOperator.__members__


def _reasons(delegates: Sequence[LiteRtDelegate]) -> Iterator[str]:
    for delegate in delegates:
        for claims in delegate.claims.values():
            for node, rejection in claims.rejections.items():
                operator = claims.operators.get(node)
                is_own = operator is not None and operator.name == CUSTOM_OP
                if is_own and rejection.constraint != "op":
                    yield f"delegate {delegate.delegate_name!r} refuses it: {rejection}"
