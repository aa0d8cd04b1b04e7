"""Options of the delegate ``jax``; this module does not import JAX."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class JaxOptions:
    """Options of the delegate: ``--delegate jax:device=gpu``, or a dict in Python."""

    device: str = field(
        default="cpu", metadata={"help": "platform of JAX, cpu, gpu or tpu; gpu:1 is the second"}
    )
    min_nodes: int = field(default=1, metadata={"help": "leave partitions with fewer nodes"})

    def __post_init__(self) -> None:
        platform, colon, number = self.device.partition(":")
        if not platform or (colon and not number.isdecimal()):
            raise ValueError(f"device is {self.device!r}, expected PLATFORM or PLATFORM:NUMBER")
        if self.min_nodes < 1:
            raise ValueError(f"min_nodes is {self.min_nodes}, expected 1 or more")
