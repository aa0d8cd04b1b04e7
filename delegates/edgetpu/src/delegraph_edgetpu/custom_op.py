"""``edgetpu-custom-op`` as a custom operator that runs without a delegate."""

from __future__ import annotations

from delegraph import Eval, Node, OpContext, Registration
from delegraph_edgetpu.compiled_node import CompiledNode, Operands
from delegraph_edgetpu.custom_options import CUSTOM_OP
from delegraph_edgetpu.errors import NeedsDevice
from delegraph_edgetpu.options import EdgeTpuOptions
from delegraph_edgetpu.real_executables import device_library


def edgetpu_custom_op(device: str = ":0", via: str = "", twin: str = "") -> Registration:
    """Return the implementation of ``edgetpu-custom-op``.

    The installed package registers it for every interpreter. Use this function for another device
    or delegate::

        Interpreter(path, custom_ops={"edgetpu-custom-op": edgetpu_custom_op(":1")})

    Args:
        device: name of the simulated device that runs the operator.
        via: name of the delegate that computes, with options, such as ``numba_cpu:num_threads=2``;
            empty means Delegraph's kernels.
        twin: path of the uncompiled model, which runs in place of executables that need a real
            device.

    Raises:
        ArgumentError: the device does not exist.

    Source:
        edgetpu::RegisterCustomOp, tflite/public/edgetpu.h of google-coral/libedgetpu.
    """
    options = EdgeTpuOptions(device, via, twin)
    return Registration(
        CUSTOM_OP,
        _prepare,
        init=lambda context, node: CompiledNode.of(node, options),
        free=CompiledNode.close,
    )


def _prepare(context: OpContext, node: Node) -> Eval:
    compiled: CompiledNode = node.user_data
    try:
        return compiled.prepare(context, Operands.of(context, node), context.num_threads)
    except NeedsDevice as error:
        if device_library() is None:
            raise
        return _refusing(error)


def _refusing(reason: NeedsDevice) -> Eval:
    """Return an evaluation that raises *reason* when the node is invoked."""

    def refuse() -> None:
        raise reason

    return refuse
