"""Error about compiled partitions that no delegate runs in an official interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delegraph.delegation.compiled_partition import CUSTOM_OP, compiled_partitions
from delegraph.errors import UnresolvedOpError
from delegraph.graph.model import Model
from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.runtime.delegates.compiled_partitions import not_applied


def unloaded_error(model: Model, delegates: Sequence[LiteRtDelegate]) -> UnresolvedOpError:
    """Return the error for a file with compiled partitions that no delegate has taken.

    Args:
        model: the loaded model file.
        delegates: the applied delegates.
    """
    partitions = compiled_partitions(model)
    reasons = list(dict.fromkeys(_reasons(delegates))) or [not_applied(partitions.values())]
    lines = [f"Encountered unresolved custom op: {CUSTOM_OP}.", *(f"  {why}" for why in reasons)]
    first = min(partitions)[1]
    return UnresolvedOpError("\n".join(lines), node_index=first, op=CUSTOM_OP)


def _reasons(delegates: Sequence[LiteRtDelegate]) -> Iterator[str]:
    for delegate in delegates:
        for claims in delegate.claims.values():
            for node, rejection in claims.rejections.items():
                operator = claims.operators.get(node)
                is_own = operator is not None and operator.name == CUSTOM_OP
                if is_own and rejection.constraint != "op":
                    yield f"delegate {delegate.delegate_name!r} refuses it: {rejection}"
