"""The options of ``add_sub``; users read about them without loading the delegate."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AddSubOptions:
    """What users may set: ``--delegate add_sub:min_nodes=2``, or a dict in Python."""

    min_nodes: int = field(default=1, metadata={"help": "leave partitions with fewer nodes"})

    def __post_init__(self) -> None:
        if self.min_nodes < 1:
            raise ValueError(f"min_nodes is {self.min_nodes}, expected 1 or more")
