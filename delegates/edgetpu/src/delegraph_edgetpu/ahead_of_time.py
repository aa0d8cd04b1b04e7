"""Compiles partitions for ``delegraph compile --delegate edgetpu``, and runs them."""

from __future__ import annotations

from delegraph import (
    DelegateContext,
    DelegateParams,
    Node,
    PartitionModel,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import PartitionRejected
from delegraph.graph import parse_model
from delegraph.operators import Eval
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.chip import NEWEST_RUNTIME
from delegraph_edgetpu.compiled_node import CompiledNode, Operands
from delegraph_edgetpu.devices import CACHE_BYTES
from delegraph_edgetpu.executable import FORMAT_VERSION
from delegraph_edgetpu.options import EdgeTpuOptions
from delegraph_edgetpu.partition import executable_of, obstacle_to, token_of


def compile_partition(model: PartitionModel, options: EdgeTpuOptions) -> bytes:
    """Return the bytes of the executable for *model*, a partition, in the form for devices.

    The *options* have no effect.

    Raises:
        PartitionRejected: the partition cannot run on the Edge TPU.
    """
    obstacle = obstacle_to(model.content, model.nodes)
    if obstacle is not None:
        raise PartitionRejected(f"the mapped part cannot run: {obstacle}", constraint="cannot-run")
    subgraph = parse_model(model.content).subgraphs[0]
    calls = [Call(operator, subgraph.tensors) for operator in subgraph.operators]
    token = token_of([model.content])
    return executable_of(model.content, calls, token, CACHE_BYTES, NEWEST_RUNTIME).pack()


def load_compiled(
    blob: bytes, context: DelegateContext, params: DelegateParams
) -> SimpleDelegateKernelInterface:
    """Return a kernel that runs the executable *blob* on the first simulated device."""
    return LoadedKernel(blob)


def version() -> str:
    """Return the version of the executable's format."""
    return f"executable {FORMAT_VERSION}"


class LoadedKernel(SimpleDelegateKernelInterface):
    """Delegate kernel that runs an executable from :func:`compile_partition`.

    Args:
        executable: bytes of the executable, which are checked at the first prepare.
    """

    _run: Eval

    def __init__(self, executable: bytes) -> None:
        self._node = CompiledNode(EdgeTpuOptions(), lambda: executable)

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        pass

    def prepare(self, context: DelegateContext, node: Node) -> None:
        threads = context.recommended_num_threads
        self._run = self._node.prepare(
            context, Operands.of(context, node), threads if threads > 0 else None
        )

    def eval(self, context: DelegateContext, node: Node) -> None:
        self._run()

    def close(self) -> None:
        self._node.close()
