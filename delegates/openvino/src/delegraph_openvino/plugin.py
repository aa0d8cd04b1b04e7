"""Plugin of this distribution; importing it is fast, since Delegraph imports it to list plugins."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from delegraph import CompilerSpec, DelegateSpec, engine_compiler, hookimpl
from delegraph_openvino.options import OpenvinoOptions

if TYPE_CHECKING:
    from delegraph_openvino.delegate import OpenvinoDelegate

DELEGRAPH_API = 1


def _load() -> type[OpenvinoDelegate]:
    from delegraph_openvino.delegate import OpenvinoDelegate

    return OpenvinoDelegate


SUMMARY = "partitions compiled by OpenVINO, for CPU, GPU and NPU of Intel"
DELEGATE = DelegateSpec("openvino", SUMMARY, _load, OpenvinoOptions, rank=10)


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return the spec of this plugin's delegate."""
    return [DELEGATE]


@hookimpl
def delegraph_compilers() -> list[CompilerSpec]:
    """Return the spec of the ahead-of-time compiler.

    Compiled partitions depend on the version of OpenVINO.
    """
    return [engine_compiler(DELEGATE, lambda: version("openvino"))]
