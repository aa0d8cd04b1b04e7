"""Options of the delegate that users may set."""

from __future__ import annotations

from typing import Literal

from delegraph.lazy_dataclass import dataclass, field


@dataclass(frozen=True)
class NumbaCpuOptions:
    """Options of the delegate: ``--delegate numba_cpu:exact=false``, or a dict in Python."""

    exact: bool = field(
        default=True,
        metadata={"help": "integer results bit for bit; false allows 1 unit per operator"},
    )
    num_threads: int = field(
        default=0,
        metadata={
            "help": "threads, at most 8 for each processor; "
            "0 means the interpreter's, or all cores when it says nothing",
            "minimum": 0,
        },
    )
    cpu: Literal[
        "auto",
        "amx_int8",
        "avx512_vbmi",
        "avx512_vnni",
        "avx_vnni",
        "avx2",
        "neon_i8mm",
        "neon_dotprod",
        "neon",
        "generic",
    ] = field(
        default="auto", metadata={"help": "instructions to use; auto takes the best there are"}
    )

    kept_programs: bool = field(
        default=True,
        metadata={
            "help": "keep what is decided for a model in Delegraph's cache, for quick starts; "
            "false, or DELEGRAPH_NUMBA_KEEP=0, neither writes nor reads it"
        },
    )

    def __post_init__(self) -> None:
        if not isinstance(self.num_threads, int) or isinstance(self.num_threads, bool):
            raise ValueError(f"num_threads is {self.num_threads!r}, expected an int")
        if self.num_threads < 0:
            raise ValueError(f"num_threads is {self.num_threads}, expected 0 or more")
