"""Options of the delegate; importing this module is fast, since it is imported with the plugin."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class EdgeTpuOptions:
    """Options of the delegate: ``--delegate edgetpu:device=usb``, or a dict in Python."""

    device: str = field(
        default=":0",
        metadata={"help": "a simulated device: ':0', ':1', 'usb', 'usb:0', 'pci', 'pci:0'"},
    )
    via: str = field(
        default="",
        metadata={"help": "a delegate that computes, 'numba_cpu'; empty: Delegraph's kernels"},
    )
    twin: str = field(
        default="",
        metadata={"help": "the uncompiled model, run in place of what only a real device can run"},
    )

    def __post_init__(self) -> None:
        from delegraph_edgetpu.devices import device_named

        device_named(self.device)
        if self.twin and not os.path.isfile(self.twin):
            raise ValueError(f"there is no file {self.twin!r}, for the option twin")
