"""What this distribution offers; Delegraph imports it to list plugins, so it stays light."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from delegraph import (
    CompilerSpec,
    DelegateContext,
    DelegateParams,
    DelegateSpec,
    PartitionModel,
    hookimpl,
)
from delegraph_openvino.options import OpenvinoOptions

if TYPE_CHECKING:
    from delegraph_openvino.delegate import OpenvinoDelegate
    from delegraph_openvino.kernel import OpenvinoKernel

DELEGRAPH_API = 1


def _load() -> type[OpenvinoDelegate]:
    from delegraph_openvino.delegate import OpenvinoDelegate

    return OpenvinoDelegate


def _compile(model: PartitionModel, options: OpenvinoOptions) -> bytes:
    from delegraph_openvino.kernel import compile_partition

    return compile_partition(model, options)


def _load_compiled(blob: bytes, context: DelegateContext, params: DelegateParams) -> OpenvinoKernel:
    from delegraph_openvino.kernel import load_compiled

    return load_compiled(blob, context, params)


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return the delegate."""
    summary = "partitions compiled by OpenVINO, for CPU, GPU and NPU of Intel"
    return [DelegateSpec("openvino", summary, _load, OpenvinoOptions, rank=10)]


@hookimpl
def delegraph_compilers() -> list[CompilerSpec]:
    """Return what compiles its partitions ahead of time, for one version of OpenVINO."""
    return [CompilerSpec("openvino", _compile, _load_compiled, lambda: version("openvino"))]
