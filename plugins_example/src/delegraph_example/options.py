"""Options of ``add_sub``; Delegraph shows them to users without loading the delegate."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AddSubOptions:
    """Options of ``add_sub``: ``--delegate add_sub:min_nodes=2``, or a dict in Python."""

    min_nodes: int = field(
        default=1, metadata={"help": "leave partitions with fewer nodes", "minimum": 1}
    )
