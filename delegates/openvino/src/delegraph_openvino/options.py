"""Options of the delegate ``openvino``; this module does not import OpenVINO."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class OpenvinoOptions:
    """Options of the delegate: ``--delegate openvino:device=GPU``, or a dict in Python."""

    device: str = field(
        default="CPU", metadata={"help": "what computes: CPU, GPU, NPU, or another OpenVINO device"}
    )
    precision: Literal["f32", "f16", "bf16"] = field(
        default="f32", metadata={"help": "what floats are computed in"}
    )
    quantized: bool = field(
        default=False, metadata={"help": "take 8-bit nodes too; results differ by some units"}
    )
    num_threads: int = field(
        default=0,
        metadata={"help": "threads on the CPU; 0: as many as the interpreter has", "minimum": 0},
    )
    min_nodes: int = field(
        default=1, metadata={"help": "leave partitions with fewer nodes", "minimum": 1}
    )
