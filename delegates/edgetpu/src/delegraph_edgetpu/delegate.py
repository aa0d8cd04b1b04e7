"""The delegate: claims every ``edgetpu-custom-op``, as libedgetpu's delegate does."""

from __future__ import annotations

from delegraph import (
    Capabilities,
    Claim,
    Delegate,
    DelegateContext,
    DelegateFlags,
    Eval,
    Node,
    NodeByNodeKernel,
    NodeCall,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    Tolerance,
    load_delegate,
)
from delegraph.errors import ArgumentError
from delegraph_edgetpu.compiled_node import CompiledNode, Operands
from delegraph_edgetpu.custom_options import CUSTOM_OP, read_custom_options
from delegraph_edgetpu.devices import device_named
from delegraph_edgetpu.errors import ExecutableError
from delegraph_edgetpu.executable import RealExecutable, parse
from delegraph_edgetpu.options import EdgeTpuOptions
from delegraph_edgetpu.real_executables import explain_refusal

VERSION = 1
"""The only version of the operator."""

TYPES = ("INT8", "UINT8", "INT16")
"""Types of inputs and outputs: 8 bits, or 16 bits for the state of recurrent layers."""


_NOT_COMPILED = (
    "it is not compiled for the Edge TPU: 'delegraph edgetpu compile MODEL' compiles what the chip "
    "can compute"
)

_SHAPES = ("dynamic-shapes", "empty", "many-dims", "scalar")


class EdgeTpuDelegate(SimpleDelegateInterface):
    """Delegate that runs every ``edgetpu-custom-op`` of a graph on one simulated device.

    Args:
        options: see :class:`~delegraph_edgetpu.options.EdgeTpuOptions`.

    Raises:
        ArgumentError: the simulated device does not exist.
        PluginError: the delegate of the option ``via``, which computes the nodes, is not installed.
    """

    def __init__(self, options: EdgeTpuOptions | None = None) -> None:
        self._options = options or EdgeTpuOptions()
        self._device = device_named(self._options.device)
        self._via = _delegate_of(self._options.via)

    def name(self) -> str:
        return "edgetpu"

    def note(self) -> str:
        by = f", by {self._options.via}" if self._options.via else ""
        return f"simulated device {self._device.name}{by}"

    def flags(self) -> DelegateFlags:
        # Shapes may become known late, but they must be those for which the executable was
        # compiled.
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def capabilities(self) -> Capabilities:
        via = self._via.capabilities().tolerance if self._via else {}
        tolerance = {name: via[name] for name in TYPES if name in via}
        return Capabilities(
            [Claim(CUSTOM_OP, TYPES, *_SHAPES, versions=(1, VERSION))],
            tolerance={**dict.fromkeys(TYPES, Tolerance()), **tolerance},
        )

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        if registration.name != CUSTOM_OP:
            return Rejection("op", _NOT_COMPILED)
        claimed = self.capabilities().check(registration, node, context)
        if not claimed:
            return claimed
        try:
            executable = parse(read_custom_options(node.custom_options))
        except ExecutableError as error:
            return Rejection("executable", str(error))
        if isinstance(executable, RealExecutable) and not self._options.twin:
            return Rejection("real-executable", explain_refusal(executable))
        return True

    def create_delegate_kernel_interface(self) -> EdgeTpuKernel:
        return EdgeTpuKernel(self._options)


class EdgeTpuKernel(NodeByNodeKernel):
    """Kernel of one partition, usually a single node, because compilers make only one.

    Args:
        options: options of the delegate.

    Attributes:
        compiled_nodes: the runner of each node, by node index.
    """

    def __init__(self, options: EdgeTpuOptions) -> None:
        self._options = options
        self.compiled_nodes: dict[int, CompiledNode] = {}

    def prepare_node(self, call: NodeCall) -> Eval:
        made = CompiledNode.of(call.node, self._options)
        compiled = self.compiled_nodes.setdefault(call.index, made)
        threads = call.context.recommended_num_threads
        inputs = [call.input(i) for i in range(len(call.inputs))]
        operands = Operands(inputs, call.outputs, call.resize)
        return compiled.prepare(call.context, operands, threads if threads > 0 else None)

    def close(self) -> None:
        for compiled in self.compiled_nodes.values():
            compiled.close()


def _delegate_of(via: str) -> Delegate | None:
    """Return the delegate named by option ``via``; None for Delegraph's own kernels."""
    if via.split(":")[0] == "edgetpu":
        raise ArgumentError(f"via={via!r} would run the Edge TPU by itself; name another delegate")
    return load_delegate(via) if via else None
