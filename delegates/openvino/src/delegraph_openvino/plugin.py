"""What this distribution offers; Delegraph imports it to list plugins, so it stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph import DelegateSpec, hookimpl
from delegraph_openvino.options import OpenvinoOptions

if TYPE_CHECKING:
    from delegraph_openvino.delegate import OpenvinoDelegate

DELEGRAPH_API = 1


def _load() -> type[OpenvinoDelegate]:
    from delegraph_openvino.delegate import OpenvinoDelegate

    return OpenvinoDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return what this plugin offers."""
    return [
        DelegateSpec(
            "openvino",
            "partitions compiled by OpenVINO, for CPU, GPU and NPU of Intel",
            _load,
            OpenvinoOptions,
            rank=10,
        )
    ]
