"""Base class of delegates that give whole partitions to an engine, which compiles and runs them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from delegraph.delegation.code_state import edited_state
from delegraph.delegation.delegate import DelegateContext, DelegateParams
from delegraph.delegation.partition_model import PartitionModel
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.operators.registration import Node, Registration


class EngineProgram(Protocol):
    """A compiled partition that an engine has loaded; any class with these methods will do."""

    def bind(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        """Set the arrays that each later run reads and writes.

        The arrays belong to ``PartitionModel.inputs`` and ``outputs``, in that order, and are the
        host's own memory. Called before the first run, and again when the host has moved the
        memory.
        """

    def run(self) -> None:
        """Compute the outputs; called at each invoke."""

    def close(self) -> None:
        """Release the engine's resources; called once, after the last run."""


class EngineDelegate(SimpleDelegateInterface):
    """Hands each partition to an engine as a ``.tflite`` file; a subclass says how.

    ::

        class ChipDelegate(EngineDelegate):
            version = chip.VERSION

            def name(self):
                return "chip"

            def capabilities(self):
                return Capabilities([Claim(chip.OPERATORS, "FLOAT32")])

            def compile(self, model):
                return chip.compile(model.content)

            def load(self, compiled, context):
                return chip.Program(compiled)

    Compiled partitions are kept in ``context.cache``, under the partition's digest, the options,
    :attr:`version` and, while the package's sources can be edited, their state. Without flags a
    program is for fixed shapes: a resize removes the delegate and applies it again. With
    ``ALLOW_DYNAMIC_TENSORS | REQUIRE_PROPAGATED_SHAPES`` the delegate stays, and its partitions are
    compiled again for the new shapes.

    Args:
        options: options of the delegate; options with the same ``repr`` must compile to the same
            program.

    Attributes:
        options: the argument *options*.
        version: version of the compiler; partitions compiled by another version are not loaded.
    """

    options: Any
    version: str

    def __init__(self, options: object = None) -> None:
        self.options = options

    @abstractmethod
    def compile(self, model: PartitionModel) -> bytes:
        """Return a partition in the engine's own form, with all that :meth:`load` needs.

        Called when the cache has no compiled form of the partition, and when compiling ahead of
        time. The shapes are those in *model*.

        Raises:
            PartitionRejected: the engine cannot compute the partition; its nodes go to other
                delegates.
        """

    @abstractmethod
    def load(self, compiled: bytes, context: DelegateContext) -> EngineProgram:
        """Load a partition that :meth:`compile` has compiled, and return its program."""

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return whether a claim covers the node and its features, and no tensor is a variable.

        A variable's value would be in the engine, where the host cannot reset it.
        """
        tensors = [context.tensors[i] for i in (*node.inputs, *node.outputs) if i >= 0]
        for tensor in tensors:
            if tensor.is_variable:
                return Rejection("variable", "it keeps no state", tensor=tensor.index)
        claimed = self.capabilities()
        answer = claimed.check(registration, node, context)
        return answer and claimed.check_features(registration, node, context)

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        """Return whether the partition has inputs: engines run no program without any."""
        if inputs_of(context, params):
            return True
        return Rejection("inputs", "its inputs are all constant")

    def create_delegate_kernel_interface(self) -> EngineKernel:
        """Return a kernel that compiles and runs a partition with this delegate's methods."""
        return EngineKernel(self)


class EngineKernel(SimpleDelegateKernelInterface):
    """Computes one partition with the engine of an :class:`EngineDelegate`.

    Args:
        delegate: the delegate, which compiles and loads.

    Attributes:
        program: the program that the engine has loaded; None before that.
    """

    program: Any = None  # an EngineProgram from the first prepare on

    def __init__(self, delegate: EngineDelegate) -> None:
        self._delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Load the partition from the cache or compile it; delay this if input shapes are unknown.

        Raises:
            PartitionRejected: the engine cannot compute the partition.
        """
        self._take(context, params)
        if not any(context.tensors[i].is_dynamic for i in self._inputs):
            self._load(self._compiled(context), context)

    def init_compiled(
        self, context: DelegateContext, params: DelegateParams, compiled: bytes
    ) -> None:
        """Load a partition that was compiled ahead of time; called in place of :meth:`init`."""
        self._take(context, params)
        self._load(compiled, context)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Compile the partition again if the input shapes have changed."""
        if self.program is None or self._shapes != self._input_shapes(context):
            self._load(self._compiled(context), context)

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        """Bind the program to the memory of inputs and outputs."""
        inputs = [context.tensors[i].data for i in self._inputs]
        self.program.bind(inputs, [context.tensors[i].data for i in self._params.output_tensors])

    def eval(self, context: DelegateContext, node: Node) -> None:
        """Run the compiled program of the partition."""
        self.program.run()

    def close(self) -> None:
        """Close the compiled program, if one was loaded."""
        if self.program is not None:
            self.program.close()
        self.program = None

    def _take(self, context: DelegateContext, params: DelegateParams) -> None:
        self._params = params
        self._inputs = inputs_of(context, params)

    def _input_shapes(self, context: DelegateContext) -> list[tuple[int, ...]]:
        return [context.tensors[i].shape for i in self._inputs]

    def _compiled(self, context: DelegateContext) -> bytes:
        delegate, model = self._delegate, self._params.partition_model()
        kept = context.cache(delegate.name(), delegate.version)
        key = f"{model.digest} {delegate.options}{edited_state(type(delegate))}"
        return kept.read_or_make(key, lambda: delegate.compile(model))

    def _load(self, compiled: bytes, context: DelegateContext) -> None:
        self.close()
        self.program = self._delegate.load(compiled, context)
        self._shapes = self._input_shapes(context)


def inputs_of(context: DelegateContext, params: DelegateParams) -> tuple[int, ...]:
    """Return the tensors that a partition reads while it runs: ``PartitionModel.inputs``."""
    tensors = context.tensors
    return tuple(
        i for i in params.input_tensors if not tensors[i].is_constant and not tensors[i].is_variable
    )
