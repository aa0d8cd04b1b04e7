"""Options of the delegate; importing this module is fast, since it is imported with the plugin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class FlexOptions:
    """Options of the delegate: ``--delegate flex:executor=numpy``, or a dict in Python."""

    executor: Literal["auto", "tensorflow", "numpy"] = field(
        default="auto",
        metadata={"help": "what runs the operators; auto is TensorFlow where it is installed"},
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "operators to run although they reach files, other processes, Python, ..."
        },
    )
