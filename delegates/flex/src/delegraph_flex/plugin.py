"""What this distribution offers; Delegraph imports it to list plugins, so it stays light."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from delegraph import DelegateSpec, hookimpl

if TYPE_CHECKING:
    from delegraph_flex.delegate import FlexDelegate

DELEGRAPH_API = 1


@dataclass(frozen=True)
class FlexOptions:
    """What users may set: ``--delegate flex:executor=numpy``, or a dict in Python."""

    executor: Literal["auto", "tensorflow", "numpy"] = field(
        default="auto",
        metadata={"help": "what runs the operators; auto is TensorFlow where it is installed"},
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata={"help": "operators to run although they are unsafe or not on the allowlist"},
    )


def _load() -> type[FlexDelegate]:
    from delegraph_flex.delegate import FlexDelegate

    return FlexDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return what this plugin offers."""
    return [
        DelegateSpec(
            "flex",
            "TensorFlow operators (SELECT_TF_OPS), by TensorFlow or by NumPy",
            _load,
            FlexOptions,
            rank=-100,
            custom_ops=("Flex*",),
        )
    ]
