"""Compiles partitions ahead of time with an engine delegate's own run-time compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from delegraph.plugins.options import make_options
from delegraph.plugins.specs import CompilerSpec, DelegateSpec

if TYPE_CHECKING:
    from delegraph.delegation.delegate import DelegateContext, DelegateParams
    from delegraph.delegation.engine_delegate import EngineKernel
    from delegraph.delegation.partition_model import PartitionModel


def engine_compiler(
    delegate: DelegateSpec, version: Callable[[], str] | None = None
) -> CompilerSpec:
    """Return a compiler spec that compiles partitions of an ``EngineDelegate`` ahead of time.

    The compiler calls the delegate's methods ``compile`` and ``load``, with the options that are
    stored in the model file.

    Args:
        delegate: spec whose ``load`` returns a subclass of ``EngineDelegate``.
        version: function that returns the version of compiled partitions, without importing the
            engine; None for the ``version`` of that class.
    """

    def made(options: object) -> Any:
        factory = delegate.load()
        return factory() if delegate.options is None else factory(options)

    def compile_partition(model: PartitionModel, options: object) -> bytes:
        from delegraph.delegation.engine_delegate import compiled_by  # lazy: few models need it

        engine = made(options)
        with engine.refusing():
            return compiled_by(engine, model)

    def load_compiled(
        compiled: bytes, context: DelegateContext, params: DelegateParams
    ) -> EngineKernel:
        options = make_options(delegate, _options_in_file(context, params))
        kernel: EngineKernel = made(options).create_delegate_kernel_interface()
        kernel.init_compiled(context, params, compiled)
        return kernel

    def version_of_class() -> str:
        from delegraph.delegation.engine_delegate import version_of  # lazy, too

        engine: Any = delegate.load()
        return version_of(engine)

    return CompilerSpec(
        delegate.name, compile_partition, load_compiled, version or version_of_class
    )


def _options_in_file(context: DelegateContext, params: DelegateParams) -> str:
    """Return the options with which a partition of the model file was compiled."""
    from delegraph.delegation.compiled_partition import read_custom_options

    (index,) = params.nodes_to_replace
    node, _ = context.get_node_and_registration(index)
    return read_custom_options(node.custom_options).options
