"""Base class of delegates that give whole partitions to an engine, which compiles and runs them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

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
        """Read *inputs* and write *outputs* at each run from now on.

        They are the arrays of ``PartitionModel.inputs`` and ``outputs``, in that order, in the
        host's own memory. Called before the first run, and when the memory is another.
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

    What was compiled is kept in ``context.cache``, under the partition's digest, the options and
    :attr:`version`. Without flags a program is for fixed shapes: a resize takes the delegate off
    and applies it again. With ``ALLOW_DYNAMIC_TENSORS | REQUIRE_PROPAGATED_SHAPES`` it stays, and
    partitions are compiled again for the new shapes.

    Args:
        options: of the delegate; their ``repr`` tells those apart that compile to something else.

    Attributes:
        options: those.
        version: of the compiler; what another version has compiled is not loaded.
    """

    options: Any
    version: str

    def __init__(self, options: object = None) -> None:
        self.options = options

    @abstractmethod
    def compile(self, model: PartitionModel) -> bytes:
        """Return a partition in the engine's own form, with all that :meth:`load` needs.

        Called where nothing compiled is kept, also ahead of time. The shapes are those of the file.

        Raises:
            PartitionRejected: the engine does not take it; its nodes go to others.
        """

    @abstractmethod
    def load(self, compiled: bytes, context: DelegateContext) -> EngineProgram:
        """Program that runs a partition which :meth:`compile` compiled, maybe long ago."""

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return whether a claim covers the node and its features, and no tensor is a variable.

        The state of a variable would be in the engine, where the host cannot reset it.
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
        delegate: says how to compile and load.

    Attributes:
        program: what the engine has loaded; None before it has.
    """

    program: Any = None  # an EngineProgram from the first prepare on

    def __init__(self, delegate: EngineDelegate) -> None:
        self._delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Load the partition from the cache or compile it; delay this if input shapes are unknown.

        Raises:
            PartitionRejected: the engine does not take it.
        """
        self._take(context, params)
        if not any(context.tensors[i].is_dynamic for i in self._inputs):
            self._load(self._compiled(context), context)

    def init_compiled(
        self, context: DelegateContext, params: DelegateParams, compiled: bytes
    ) -> None:
        """Take a partition that was compiled ahead of time, in place of :meth:`init`."""
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
        key = f"{model.digest} {delegate.options}"
        return kept.read_or_make(key, lambda: delegate.compile(model))

    def _load(self, compiled: bytes, context: DelegateContext) -> None:
        self.close()
        self.program = self._delegate.load(compiled, context)
        self._shapes = self._input_shapes(context)


def inputs_of(context: DelegateContext, params: DelegateParams) -> tuple[int, ...]:
    """Return the tensors that a partition is given: ``PartitionModel.inputs``."""
    tensors = context.tensors
    return tuple(
        i for i in params.input_tensors if not tensors[i].is_constant and not tensors[i].is_variable
    )
