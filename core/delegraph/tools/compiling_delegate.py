"""A delegate that claims nodes like another delegate, and only compiles the partitions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.compiled_partition import CUSTOM_OP, CompiledPartition
from delegraph.delegation.delegate import (
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
)
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import (
    DelegateError,
    OperatorError,
    PartitionRejected,
    PluginError,
)
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.plugins import creation
from delegraph.plugins.options import options_text
from delegraph.plugins.plugin_set import Offer
from delegraph.plugins.specs import CompilerSpec
from delegraph.schema.custom_nodes import CustomNode
from delegraph.tools.progress import Progress


@dataclass(frozen=True, slots=True)
class CompiledNode:
    """A compiled partition, as the custom operator that the file will contain.

    Attributes:
        partition: description of the partition in the file.
        blob: compiled data of the partition.
        nodes: indices of the operators that it replaces.
        inputs: indices of the input tensors, without the blob's tensor.
        outputs: indices of the output tensors.
        called: indices of subgraphs that its nodes call, and that it computes as well.
    """

    partition: CompiledPartition
    blob: bytes = field(repr=False)
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    called: tuple[int, ...]

    def custom_node(self) -> CustomNode:
        """Return the custom operator of the partition."""
        name = f"{self.partition.delegate}/{self.partition.blob_digest[:16]}"
        options = self.partition.custom_options()
        return CustomNode(CUSTOM_OP, options, self.inputs, self.outputs, self.blob, name)


class CompilingDelegate(SimpleDelegate):
    """Claims nodes as another delegate does, and compiles its partitions instead of running them.

    Attributes:
        compiled: mapping from a subgraph's index and its nodes to the compiled node; it may hold
            partitions that are not part of the final plan.
    """

    def __init__(self, inner: SimpleDelegateInterface, compiler: Compiler) -> None:
        self.compiled: dict[tuple[int, tuple[int, ...]], CompiledNode] = {}
        super().__init__(_Compiling(inner, self._compile))
        self._compiler = compiler

    def _compile(self, context: DelegateContext, params: DelegateParams) -> None:
        key = context.subgraph_index, params.nodes_to_replace
        self.compiled[key] = self._compiler.compiled(context, params)
        for index in self.compiled[key].called:
            context.mark_subgraph_as_delegation_skippable(index)


def compiling_delegate(
    offer: Offer, options: object, spec: CompilerSpec, progress: Progress
) -> CompilingDelegate:
    """Return a delegate that compiles the partitions of an installed delegate.

    Args:
        offer: the plugin's offer of the delegate.
        options: options of the delegate.
        spec: spec of the delegate's compiler.
        progress: function that is called before each partition is compiled.

    Raises:
        PluginError: the delegate is broken, or does its own partitioning.
    """
    claiming = replace(offer.spec, load=spec.load_claims or offer.spec.load)
    delegate = creation.make_delegate(claiming, options, offer.plugin)
    if not isinstance(delegate, SimpleDelegate):
        raise PluginError(
            f"delegate {offer.spec.name!r} of {offer.plugin} does its own partitioning; only a "
            "SimpleDelegateInterface can be compiled ahead of time"
        )
    return CompilingDelegate(delegate.simple, Compiler(offer, spec, options, progress))


class Compiler:
    """Compiles partitions of one delegate and counts them.

    Args:
        offer: the plugin's offer of the delegate.
        spec: spec of the delegate's compiler.
        options: options of the delegate.
        progress: function that is called before each partition is compiled.
    """

    def __init__(
        self, offer: Offer, spec: CompilerSpec, options: object, progress: Progress
    ) -> None:
        self._offer, self._spec, self._options = offer, spec, options
        self._version = creation.compiler_version(spec, offer.plugin)
        self._progress, self._count = progress, 0

    def compiled(self, context: DelegateContext, params: DelegateParams) -> CompiledNode:
        """Compile the partition *params* and return the node that holds it.

        Raises:
            PartitionRejected: the partition cannot be compiled, and stays with the host.
            PluginLoadError: the compiler failed.
        """
        self._count += 1
        size = len(params.nodes_to_replace)
        what = f"{self._spec.name}: compiling partition {self._count}, {size} nodes"
        self._progress(what, self._count - 1, None)
        try:
            model = params.partition_model()
        except DelegateError as error:
            raise PartitionRejected(str(error), constraint="no-model") from error
        variables = (i for i in params.input_tensors if context.tensors[i].is_variable)
        inputs = (*model.inputs, *variables)
        shapes = [_fixed_shape(context.tensors[index]) for index in inputs]
        plugin = self._offer.plugin
        blob = creation.compile_partition(self._spec, model, self._options, plugin)
        registrations = (context.get_node_and_registration(i)[1] for i in model.nodes)
        partition = CompiledPartition(
            self._spec.name,
            plugin.distribution,
            plugin.version,
            self._version,
            "" if self._options is None else options_text(self._offer.spec, self._options),
            dict(Counter(registration.name for registration in registrations)),
            tuple(shapes),
            tuple(_output_shape(context.tensors[index]) for index in model.outputs),
            model.digest,
            hashlib.sha256(blob).hexdigest(),
            len(blob),
        )
        partition.custom_options()  # raises now what readers of the file would reject
        return CompiledNode(partition, blob, model.nodes, inputs, model.outputs, model.called)


def _fixed_shape(tensor: Tensor) -> tuple[int, ...]:
    if tensor.is_dynamic:
        raise PartitionRejected(
            f"the shape of its input {tensor!r} is known only while invoking; compiling ahead of "
            "time needs fixed shapes",
            constraint="dynamic-shape",
        )
    return tuple(tensor.shape)


def _output_shape(tensor: Tensor) -> tuple[int, ...] | None:
    return None if tensor.is_dynamic else tuple(tensor.shape)


class _Compiling(SimpleDelegateInterface):
    """Claims nodes like another delegate, with kernels that only compile partitions."""

    def __init__(
        self,
        inner: SimpleDelegateInterface,
        compile: Callable[[DelegateContext, DelegateParams], None],
    ) -> None:
        self._inner = inner
        self._compile = compile

    def name(self) -> str:
        return self._inner.name()

    def initialize(self, context: DelegateContext) -> None:
        self._inner.initialize(context)

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return self._inner.is_node_supported_by_delegate(registration, node, context)

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        return self._inner.check_partition(context, params)

    def delegate_options(self) -> DelegateOptions:
        return self._inner.delegate_options()

    def flags(self) -> DelegateFlags:
        return self._inner.flags()

    def capabilities(self) -> Capabilities:
        return self._inner.capabilities()

    def note(self) -> str:
        return self._inner.note()

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _CompilingKernel(self._compile)


class _CompilingKernel(SimpleDelegateKernelInterface):
    def __init__(self, compile: Callable[[DelegateContext, DelegateParams], None]) -> None:
        self._compile = compile

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self._compile(context, params)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Do nothing: the outputs keep the shapes that the host's kernels gave them."""

    def eval(self, context: DelegateContext, node: Node) -> None:
        raise OperatorError("it is compiled ahead of time and not run")
