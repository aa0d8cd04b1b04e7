"""Plugin of this distribution; importing it is fast, since Delegraph imports it to list plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph import CompilerSpec, DelegateSpec, hookimpl
from delegraph_jax.options import JaxOptions

if TYPE_CHECKING:
    from delegraph import DelegateContext, DelegateParams, PartitionModel
    from delegraph_jax.delegate import JaxDelegate
    from delegraph_jax.kernel import ExecutableKernel

DELEGRAPH_API = 1


def _load() -> type[JaxDelegate]:
    from delegraph_jax.delegate import JaxDelegate

    return JaxDelegate


def _compile(model: PartitionModel, options: JaxOptions) -> bytes:
    from delegraph_jax.ahead_of_time import compile_partition

    return compile_partition(model, options)


def _load_compiled(
    blob: bytes, context: DelegateContext, params: DelegateParams
) -> ExecutableKernel:
    from delegraph_jax.ahead_of_time import load_compiled

    return load_compiled(blob, context, params)


def _version() -> str:
    from delegraph_jax.compiling import version

    return version()


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return the specs of this plugin's delegates."""
    return [
        DelegateSpec("jax", "any device of JAX, by functions that XLA compiles", _load, JaxOptions)
    ]


@hookimpl
def delegraph_compilers() -> list[CompilerSpec]:
    """Return the specs of the compilers.

    A compiled partition fits one version of JAX and one kind of processor.
    """
    return [CompilerSpec("jax", _compile, _load_compiled, _version)]
