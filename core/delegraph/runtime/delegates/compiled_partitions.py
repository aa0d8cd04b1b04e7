"""Delegates for the partitions in a model file that were compiled ahead of time.

Each of these delegates runs the partitions that one delegate has compiled, with the plugin that the
file names. If the plugin cannot be used, the nodes are rejected with the reason; no other kernel
can run them.
"""

from __future__ import annotations

from collections.abc import Iterable

from delegraph.delegation.compiled_partition import (
    CUSTOM_OP,
    CompiledPartition,
    Shape,
    compiled_partitions,
    read_custom_options,
)
from delegraph.delegation.delegate import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
)
from delegraph.delegation.driver import SimpleDelegate, prepared_kernel
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import (
    CallCancelledError,
    MalformedModelError,
    OperatorError,
    PartitionRejected,
    PluginError,
    UnknownDelegateError,
    in_words,
)
from delegraph.graph.model import Model
from delegraph.lazy_dataclass import replace
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.creation import compiler_version, load_compiled
from delegraph.plugins.plugin_set import Offer, installed
from delegraph.quantities import plural


def compilers_of(model: Model) -> list[DelegateAddress]:
    """Return the delegates that compiled partitions of *model*, in order of occurrence.

    Raises:
        MalformedModelError: a compiled partition is damaged.
    """
    return list(dict.fromkeys(map(_compiler_of, compiled_partitions(model).values())))


def compiled_delegate(compiler: DelegateAddress, *, loads: bool = True) -> Delegate:
    """Return the delegate that runs the partitions compiled by *compiler*.

    Args:
        compiler: a delegate and its distribution.
        loads: False for a delegate that claims the nodes but cannot run them, which is enough to
            compute shapes.
    """
    kind = _LoadingDelegate if loads else _ShapingDelegate
    return kind(CompiledDelegate(compiler, loads))


def not_applied(partitions: Iterable[CompiledPartition]) -> str:
    """Text that says why no delegate runs the compiled *partitions*."""
    made = dict.fromkeys(f"{found.delegate!r} of {found.provider}" for found in partitions)
    return (
        f"compiled by delegate {', '.join(made)}, which was not applied as the file's own "
        "delegates are switched off"
    )


def _compiler_of(partition: CompiledPartition) -> DelegateAddress:
    return DelegateAddress(partition.delegate, partition.distribution)


class _LoadingDelegate(SimpleDelegate):
    """Replaces each compiled node by a delegate node, whose kernel the plugin loads."""

    def replace(self, context: DelegateContext, nodes: list[int]) -> None:
        """Replace each of *nodes* separately, since one kernel loads one blob."""
        for index in nodes:
            super().replace(context, [index])

    def new_kernel(
        self, context: DelegateContext, params: DelegateParams
    ) -> SimpleDelegateKernelInterface:
        """Return the kernel that the plugin loads from the blob of the compiled node."""
        try:
            return _loaded(context, params)
        except (PartitionRejected, CallCancelledError):
            raise
        except Exception as error:
            raise self.init_error(in_words(error), params) from error

    def prepare_node(self, context: DelegateContext, node: Node) -> Eval:
        """Prepare the loaded kernel of *node*, which sees the tensors of the compiled partition."""
        return prepared_kernel(node.user_data, context, _as_compiled(context, node))


class _ShapingDelegate(_LoadingDelegate):
    """Gives compiled nodes their output shapes without loading them; they cannot run."""

    new_kernel = SimpleDelegate.new_kernel


class CompiledDelegate(SimpleDelegateInterface):
    """A delegate that claims the nodes which another delegate compiled ahead of time.

    Args:
        compiler: the delegate and its distribution.
        loads: whether the nodes are claimed only if the plugin can load them.
    """

    def __init__(self, compiler: DelegateAddress, loads: bool) -> None:
        self._compiler = compiler
        self._loads = loads
        self._claimed: dict[tuple[int, int], CompiledPartition] = {}  # by subgraph and node

    def name(self) -> str:
        """Name of the delegate that compiled the nodes."""
        return self._compiler.name

    def note(self) -> str:
        """Text with the number of compiled nodes, and the distributions of their compilers."""
        claimed = self._claimed.values()
        count = f"{plural(sum(each.nodes for each in claimed), 'node')} " if claimed else ""
        providers = ", ".join(dict.fromkeys(each.provider for each in claimed))
        return f"{count}compiled by {providers or self._compiler.distribution}"

    def flags(self) -> DelegateFlags:
        """Flags that allow dynamic tensors; a compiled node still requires its compiled shapes."""
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return True if this delegate compiled *node* and can load it, else a rejection."""
        if registration.name != CUSTOM_OP:
            return Rejection("op", "not compiled ahead of time")
        partition = read_custom_options(node.custom_options)
        if _compiler_of(partition) != self._compiler:
            return Rejection("op", f"compiled by {partition.provider}")
        if self._loads:
            try:
                offer_of(partition)
            except PartitionRejected as error:
                return Rejection(error.constraint, str(error))
        self._claimed[context.subgraph_index, node.index] = partition
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        """Return a kernel that cannot run; the plugin makes the real kernels."""
        return _Unloaded()


def offer_of(partition: CompiledPartition) -> Offer:
    """Return the installed plugin's offer of the delegate that loads a compiled partition.

    Raises:
        PartitionRejected: no installed delegate loads the partition, or only a delegate of another
            version; the message says what to do.
    """
    name, version = partition.distribution, partition.distribution_version
    install = f"pip install '{name}{f'=={version}' if version else ''}'"
    compiled = f"it was compiled by {partition.provider}"
    try:
        offer = installed().find(DelegateAddress(partition.delegate, name))
        present = None if offer.compiler is None else compiler_version(offer.compiler, offer.plugin)
    except UnknownDelegateError as error:
        raise PartitionRejected(
            f"{compiled}, whose delegate {partition.delegate!r} is not installed: {install}",
            constraint="missing-package",
        ) from error
    except PluginError as error:
        raise PartitionRejected(f"{compiled}; {error}", constraint="unusable-package") from error
    if present is None:
        raise PartitionRejected(
            f"{compiled}; {offer.plugin} loads no compiled partitions: {install}",
            constraint="missing-compiler",
        )
    if present != partition.version:
        again = f"delegraph compile MODEL -d {partition.address} -o OUT.tflite"
        other = "" if offer.plugin.version == version else f", or go back with: {install}"
        raise PartitionRejected(
            f"{compiled} as version {partition.version!r}, installed is {offer.plugin} of version "
            f"{present!r}; compile the model again with: {again}{other}",
            constraint="compiled-version",
        )
    return offer


def _compiled_node(
    context: DelegateContext, params: DelegateParams
) -> tuple[CompiledPartition, DelegateParams, Tensor]:
    """Return the record of the compiled node in *params*, its parameters, and its blob.

    The parameters are a copy of *params* in which the blob is not among the inputs.
    """
    (index,) = params.nodes_to_replace
    compiled, _ = context.get_node_and_registration(index)
    *inputs, blob = compiled.inputs
    border = replace(params, input_tensors=tuple(inputs), output_tensors=compiled.outputs)
    return read_custom_options(compiled.custom_options), border, context.tensors[blob]


def _loaded(context: DelegateContext, params: DelegateParams) -> SimpleDelegateKernelInterface:
    """Check the blob of the compiled node in *params*, and return the kernel loaded from it."""
    partition, border, blob = _compiled_node(context, params)
    offer = offer_of(partition)
    assert offer.compiler is not None  # offer_of has checked it
    try:
        content = partition.blob(blob)
    except MalformedModelError as error:
        raise PartitionRejected(
            f"the file is damaged: {error}; compile the model again", constraint="damaged-blob"
        ) from error
    return load_compiled(offer.compiler, content, context, border, offer.plugin)


def _as_compiled(context: DelegateContext, node: Node) -> Node:
    """Return *node* as a delegate node, and give its outputs the shapes of the compilation.

    Returns:
        A delegate node with the tensors of the partition, without the tensor of compiled data.
    """
    partition, border, _ = _compiled_node(context, node.options)
    for index, shape in zip(border.input_tensors, partition.inputs, strict=True):
        _require_shape(context.tensors[index], shape, partition)
    for index, output in zip(border.output_tensors, partition.outputs, strict=True):
        if output is not None:
            context.resize_tensor(context.tensors[index], output)
    return replace(node, inputs=border.input_tensors, outputs=border.output_tensors, options=border)


class _Unloaded(SimpleDelegateKernelInterface):
    """Kernel of a compiled partition that is not loaded, so that it cannot run."""

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Do nothing, since no blob is loaded."""

    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Do nothing, since the outputs have their shapes already."""

    def eval(self, context: DelegateContext, node: Node) -> None:
        """Raise an error: the compiled partition was not loaded."""
        raise OperatorError("this compiled partition was not loaded")


def _require_shape(tensor: Tensor, shape: Shape, partition: CompiledPartition) -> None:
    if tensor.shape != shape:
        raise OperatorError(
            f"input {tensor!r} of shape {list(tensor.shape)} was compiled as {list(shape)}, and "
            "compiled code keeps its shapes: resize the uncompiled model, write it, and compile "
            f"that for {partition.address}"
        )
