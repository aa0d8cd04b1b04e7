"""Base class of delegates that give whole partitions to an engine, which compiles and runs them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateContext, DelegateFlags, DelegateParams
from delegraph.delegation.engine_attributes import check_attributes
from delegraph.delegation.hashing import edited_state
from delegraph.delegation.partition_model import PartitionModel
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    claims_of,
)
from delegraph.errors import DelegateError, DelegraphError, PartitionRejected
from delegraph.operators.registration import Node, Registration
from delegraph.operators.roles import operands

_SHAPED_BY_VALUES = frozenset({"SEGMENT_SUM", "UNIQUE", "WHERE"})
"""Operators whose output shapes depend on the values of non-parameter inputs."""

_SHAPING = frozenset({
    "axis", "begin", "block_shape", "crops", "delta", "depth", "dims", "end", "fft_length", "k",
    "limit", "max_output_size", "multiples", "num_samples", "num_segments", "output_shape",
    "paddings", "perm", "shape", "size", "size_splits", "start", "strides",
})  # fmt: skip
"""Roles of inputs whose values decide an output shape."""

Shapes = tuple[tuple[int, ...], ...]
"""Shapes of a partition's inputs."""


class EngineProgram(Protocol):
    """A compiled partition that an engine has loaded; any class with these methods fits."""

    def bind(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        """Set the arrays that each later run reads and writes.

        The arrays are the host's memory of the tensors ``PartitionModel.inputs`` and ``outputs``,
        in that order. The method is called before the first run, and again when the host has moved
        the memory.
        """

    def run(self) -> None:
        """Compute the output arrays from the input arrays; called at each invoke."""

    def close(self) -> None:
        """Release the engine's resources; called once, after the last run."""


EngineFunction = Callable[..., Sequence[NDArray[Any]]]
"""Function that computes a partition's output arrays from its input arrays."""


class _FunctionProgram:
    """Program that calls an :data:`EngineFunction` and copies its results."""

    def __init__(self, function: EngineFunction) -> None:
        self._function: EngineFunction | None = function

    def bind(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        self._inputs, self._outputs = list(map(_read_only, inputs)), outputs

    def run(self) -> None:
        assert self._function is not None  # it is not closed
        returned: object = self._function(*self._inputs)
        results = [np.asarray(x) for x in returned] if isinstance(returned, Iterable) else []
        if [(a.dtype, a.shape) for a in results] != [(a.dtype, a.shape) for a in self._outputs]:
            wanted = _in_words(self._outputs)
            if isinstance(returned, np.ndarray) or not isinstance(returned, Iterable):
                found = type(returned).__name__
                raise DelegateError(f"the engine returned {found}, expected a list of {wanted}")
            raise DelegateError(f"the engine returned {_in_words(results)}, expected {wanted}")
        for array, result in zip(self._outputs, results, strict=True):
            array[...] = result

    def close(self) -> None:
        self._function = None


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of *array* that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def _in_words(arrays: Sequence[NDArray[Any]]) -> str:
    """Number of *arrays*, with dtype and shape of each."""
    each = "; ".join(f"{array.dtype} {list(array.shape)}" for array in arrays)
    return f"{len(arrays)} array{'s' * (len(arrays) != 1)}{': ' * bool(each)}{each}"


class EngineDelegate(SimpleDelegateInterface):
    """Base class of delegates that give each partition to an engine as a ``.tflite`` file.

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
                return chip.Program(compiled).compute

    Compiled partitions are stored in ``context.cache``. Their key has the partition's digest, the
    options, :attr:`version` and, if the package's sources can be edited, the sources' state.

    A program is for fixed shapes. After a resize the delegate stays, and its partitions are
    compiled for the new shapes. If the claims name the feature ``dynamic-shapes``, partitions whose
    shapes are known only while invoking are compiled while invoking. If the delegate does not claim
    some shapes, or the engine rejects them, Delegraph's kernels compute the partition.

    Args:
        options: options of the delegate; equal ``repr`` must mean equal compiled programs.

    Attributes:
        options: the argument *options*.
        version: version of the compiler; partitions compiled by another version are not loaded.
        refusals: types of the engine's errors that mean that it cannot compute a partition. If
            :meth:`compile` or :meth:`load` raises one, the partition's nodes go to other delegates.
        allows_dynamic_shapes: False for an engine that must not compile during an invoke. Then a
            resize removes the delegate and applies it again, and the delegate cannot be applied to
            graphs with dynamic tensors.
        max_programs: largest number of programs that a partition keeps loaded, one for each set of
            input shapes. The least recently used program is closed first.
    """

    options: Any
    version: str
    refusals: tuple[type[Exception], ...] = ()
    allows_dynamic_shapes: bool = True
    max_programs: int = 4

    def __init__(self, options: object = None) -> None:
        self.options = options

    def initialize(self, context: DelegateContext) -> None:
        """Check the attributes of the class; an overriding method calls this one."""
        check_attributes(self)
        version_of(self)

    @abstractmethod
    def compile(self, model: PartitionModel) -> bytes:
        """Return a partition in the engine's own binary form, for :meth:`load`.

        The method is called when the cache has no compiled form of the partition, and when
        compiling ahead of time. The shapes are those in *model*.

        Raises:
            PartitionRejected: the engine cannot compute the partition; its nodes go to other
                delegates.
        """

    @abstractmethod
    def load(self, compiled: bytes, context: DelegateContext) -> EngineProgram | EngineFunction:
        """Load a partition that :meth:`compile` has compiled, and return its program.

        A function that returns the output arrays for the input arrays is a program, too. It gets
        read-only views of the host's memory, and its results are copied to the host's memory.
        Arrays of a program with ``bind`` are the host's own: it may write outputs only.
        """

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Context in which the errors of :attr:`refusals` become ``PartitionRejected``.

        The reason is the last line of the error's text. Other errors get advice on refusals.

        Raises:
            PartitionRejected: the engine cannot compute the partition.
            DelegateError: the engine failed by an error of another type.
        """
        try:
            yield
        except DelegraphError:
            raise
        except self.refusals as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
            raise PartitionRejected(reason, constraint="compile") from error
        except Exception as error:
            kind = type(error).__name__
            raise DelegateError(
                f"{kind}: {error}; if it means that the engine cannot compute the partition, write "
                f"refusals = ({kind},) in {type(self).__name__}, or raise PartitionRejected"
            ) from error

    def flags(self) -> DelegateFlags:
        """Flags for dynamic shapes, according to the attributes of the class."""
        if not self.allows_dynamic_shapes:
            return DelegateFlags.NONE
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Whether a claim covers the node and its features, and a program can compute it.

        A program has fixed output shapes, so output shapes must not depend on tensor values. Nor
        may an operand be a variable: its value would be in the engine, where the host cannot reset
        it.
        """
        tensors = [context.tensors[i] for i in (*node.inputs, *node.outputs) if i >= 0]
        for tensor in tensors:
            if tensor.is_variable:
                return Rejection("variable", "it keeps no state", tensor=tensor.index)
        claimed = claims_of(self)
        answer = claimed.check(registration, node, context)
        answer = answer and claimed.check_features(registration, node, context)
        return answer and _check_output_shapes(registration.name, node, context)

    def check_partition(self, context: DelegateContext, params: DelegateParams) -> bool | Rejection:
        """Whether the partition *params* has inputs, which engines require."""
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
        program: the engine's loaded program for the present shapes; None before loading.
    """

    program: Any = None  # an EngineProgram from the first prepare on

    def __init__(self, delegate: EngineDelegate) -> None:
        self._delegate = delegate
        self._programs: dict[Shapes, Any] = {}  # the least recently used first

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Load the partition from the cache or compile it; if shapes are unknown, do nothing yet.

        Raises:
            PartitionRejected: the engine cannot compute the partition.
        """
        self._take(context, params)
        if not any(context.tensors[i].is_dynamic for i in self._inputs):
            self._load(self._compiled(context), context)

    def init_compiled(
        self, context: DelegateContext, params: DelegateParams, compiled: bytes
    ) -> None:
        """Load the partition *params* from *compiled*, the bytes compiled ahead of time.

        The method is called in place of :meth:`init`.
        """
        self._take(context, params)
        self._load(compiled, context)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Select the program for the present input shapes; load or compile it if necessary.

        Raises:
            PartitionRejected: the delegate or its engine does not compute these shapes.
        """
        shapes = self._input_shapes(context)
        if shapes not in self._programs:
            self._require_supported(context)
            self._load(self._compiled(context), context)
        self.program = self._programs[shapes] = self._programs.pop(shapes)

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        """Bind the program to the memory of inputs and outputs."""
        inputs = [context.tensors[i].data for i in self._inputs]
        self.program.bind(inputs, [context.tensors[i].data for i in self._params.output_tensors])

    def eval(self, context: DelegateContext, node: Node) -> None:
        """Run the compiled program of the partition."""
        self.program.run()

    def close(self) -> None:
        """Close all programs that were loaded."""
        self.program = None
        self._close_oldest(len(self._programs))

    def _close_oldest(self, count: int) -> None:
        for shapes in list(self._programs)[: max(count, 0)]:
            self._programs.pop(shapes).close()

    def _take(self, context: DelegateContext, params: DelegateParams) -> None:
        self._params = params
        self._inputs = inputs_of(context, params)

    def _input_shapes(self, context: DelegateContext) -> Shapes:
        return tuple(context.tensors[i].shape for i in self._inputs)

    def _require_supported(self, context: DelegateContext) -> None:
        """Check that the delegate still supports all nodes; features depend on shapes."""
        for index in self._params.nodes_to_replace:
            node, registration = context.get_node_and_registration(index)
            answer = self._delegate.is_node_supported_by_delegate(registration, node, context)
            if isinstance(answer, Rejection):
                raise PartitionRejected(str(answer), constraint=answer.constraint)

    def _compiled(self, context: DelegateContext) -> bytes:
        delegate, model = self._delegate, self._params.partition_model()
        kept = context.cache(delegate.name(), version_of(delegate))
        key = f"{model.digest} {delegate.options}{edited_state(type(delegate))}"
        with delegate.refusing():
            return kept.read_or_make(key, lambda: compiled_by(delegate, model))

    def _load(self, compiled: bytes, context: DelegateContext) -> None:
        self._close_oldest(len(self._programs) + 1 - self._delegate.max_programs)
        with self._delegate.refusing():
            program: Any = self._delegate.load(compiled, context)
        if not (hasattr(program, "bind") or callable(program)):
            raise DelegateError(
                f"{_method(self._delegate, 'load')} returned {type(program).__name__}, expected a "
                "function of the input arrays, or an object with bind, run and close"
            )
        self.program = program if hasattr(program, "bind") else _FunctionProgram(program)
        self._programs[self._input_shapes(context)] = self.program


def compiled_by(delegate: EngineDelegate, model: PartitionModel) -> bytes:
    """Return the bytes that the *delegate* compiles from the partition *model*.

    Raises:
        DelegateError: the delegate's ``compile`` returned another type.
        PartitionRejected: the engine cannot compute the partition.
    """
    compiled: object = delegate.compile(model)
    if not isinstance(compiled, bytes | bytearray | memoryview):
        found = type(compiled).__name__
        raise DelegateError(f"{_method(delegate, 'compile')} returned {found}, expected bytes")
    return bytes(compiled)


def version_of(delegate: EngineDelegate | type[EngineDelegate]) -> str:
    """Return the version of the *delegate* or its class.

    Raises:
        DelegateError: the class has none, or it is no text.
    """
    version: object = getattr(delegate, "version", None)
    kind = delegate if isinstance(delegate, type) else type(delegate)
    if version is None:
        raise DelegateError(
            f"{kind.__name__} has no version: write version = '1' in the class; partitions that "
            "another version compiled are compiled again"
        )
    if not isinstance(version, str):
        text = f"{kind.__name__}.version is {version!r}, expected a text"
        raise DelegateError(f"{text}: write version = '{version}'")
    return version


def _method(delegate: EngineDelegate, name: str) -> str:
    return f"{type(delegate).__name__}.{name}"


def inputs_of(context: DelegateContext, params: DelegateParams) -> tuple[int, ...]:
    """Return the tensor indices in ``PartitionModel.inputs`` for the partition *params*.

    They are those of its inputs that are neither constants nor variables.
    """
    tensors = context.tensors
    return tuple(
        i for i in params.input_tensors if not tensors[i].is_constant and not tensors[i].is_variable
    )


def _check_output_shapes(operator: str, node: Node, context: DelegateContext) -> bool | Rejection:
    """Whether a node's output shapes depend only on input shapes and constants."""
    if operator in _SHAPED_BY_VALUES:
        return Rejection("shape", f"the output shape of {operator} depends on computed values")
    for role, index in operands(operator, node):
        if role in _SHAPING and not context.tensors[index].is_constant:
            return Rejection("shape", f"{role} decides a shape and is not constant", tensor=index)
    return True
