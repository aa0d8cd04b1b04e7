"""The options of ``openvino``; users read about them without loading OpenVINO."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OpenvinoOptions:
    """What users may set: ``--delegate openvino:device=GPU``, or a dict in Python."""

    device: str = field(
        default="CPU", metadata={"help": "what computes: CPU, GPU, NPU, or another OpenVINO device"}
    )
    precision: str = field(
        default="f32", metadata={"help": "what floats are computed in: f32, f16 or bf16"}
    )
    quantized: bool = field(
        default=False, metadata={"help": "take 8-bit nodes too; results differ by some units"}
    )
    num_threads: int = field(
        default=0, metadata={"help": "threads on the CPU; 0: as many as the interpreter has"}
    )
    min_nodes: int = field(default=1, metadata={"help": "leave partitions with fewer nodes"})

    def __post_init__(self) -> None:
        if self.precision not in ("f32", "f16", "bf16"):
            raise ValueError(f"precision is {self.precision!r}, expected f32, f16 or bf16")
        if self.num_threads < 0:
            raise ValueError(f"num_threads is {self.num_threads}, expected 0 or more")
        if self.min_nodes < 1:
            raise ValueError(f"min_nodes is {self.min_nodes}, expected 1 or more")
