"""Compiles partitions for ``delegraph compile``, and loads them from model files."""

from __future__ import annotations

from delegraph import DelegateContext, DelegateParams, PartitionModel
from delegraph.errors import PartitionRejected, PluginOptionError
from delegraph_jax.devices import device_named
from delegraph_jax.executable import compiled, contents_of
from delegraph_jax.kernel import ExecutableKernel
from delegraph_jax.options import JaxOptions


def compile_partition(model: PartitionModel, options: JaxOptions) -> bytes:
    """Return the bytes of the partition *model*, compiled for its shapes, with builtin rounding."""
    return compiled(model, device_named(options.device), "builtin")


def load_compiled(
    blob: bytes, context: DelegateContext, params: DelegateParams
) -> ExecutableKernel:
    """Return a delegate kernel for *blob*, an executable from :func:`compile_partition`.

    Raises:
        PartitionRejected: the executable's device does not exist here, or its rounding is not the
            host's.
    """
    contents = contents_of(blob)
    if context.numerics != contents.numerics:
        raise PartitionRejected(
            f"it rounds like the {contents.numerics} kernels, asked for are the "
            f"{context.numerics} ones; run the uncompiled model for those",
            constraint="numerics",
        )
    try:
        kernel = ExecutableKernel(device_named(contents.device))
    except PluginOptionError as error:
        raise PartitionRejected(str(error), constraint="device") from error
    kernel.init(context, params)
    kernel.load(blob)
    return kernel
