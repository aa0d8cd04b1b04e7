"""The operator interface: registration, node, and the context of a kernel."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from enum import IntFlag
from typing import TYPE_CHECKING, Any, Protocol

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass, field
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; 3.10 never runs it

    from numpy.typing import DTypeLike, NDArray

    from delegraph.graph.model import OperatorSpec
    from delegraph.operators.numerics import Numerics

Eval = Callable[[], None]
"""Function without arguments that computes a node's outputs; called at every invoke."""


@dataclass(frozen=True, slots=True)
class NativeEval:
    """An :data:`Eval` that runs native code and no NumPy code.

    A ``Registration.prepare`` may return an object of this class. A host that runs only native
    evaluations need not make NumPy ignore float errors, which takes as long as a small operator.

    Attributes:
        run: function that computes the outputs; calling the object calls this function.
        rescue: function that is called with an error of ``run``. It returns None if it has computed
            the outputs in another way, or else the error to raise. If ``rescue`` is None, errors of
            ``run`` are raised.
    """

    run: Eval
    rescue: Callable[[Exception], Exception | None] | None = None

    def __call__(self) -> None:
        """Run the evaluation; on an error call ``rescue``, if there is one."""
        try:
            self.run()
        except Exception as error:
            if self.rescue is None:
                raise
            left = self.rescue(error)
            if left is not None:
                raise left from left.__cause__


@dataclass(frozen=True, slots=True)
class TensorEval:
    """An :data:`Eval` that can be made again for equal nodes with other tensors.

    A ``Registration.prepare`` may return an object of this class if its decisions depend only on
    the operator, its version and options, and the tensors' types, shapes and quantization. For
    other nodes in which all of these are equal, a host may call ``make`` instead of ``prepare``.

    Attributes:
        make: function that returns the evaluation of a node, given its input tensors and then its
            output tensors.
        run: evaluation of the node that was prepared; calling the object calls this function.
    """

    make: Callable[..., Eval]
    run: Eval

    def __call__(self) -> None:
        """Run the evaluation."""
        self.run()


Prepare = Callable[["OpContext", "Node"], Eval]
"""Function that checks a node, sets its outputs' shapes, and returns its :data:`Eval`."""


class InPlace(IntFlag):
    """Inputs that may share memory with output 0.

    Source:
        TfLiteInPlaceOp, tflite/core/c/common.h.
    """

    NONE = 0
    DATA_UNMODIFIED = 1
    INPUT_0 = 4
    INPUT_1 = 8
    INPUT_2 = 16


@dataclass(frozen=True, slots=True)
class Registration:
    """An operator's implementation. Source: TfLiteRegistration, tflite/core/c/common.h.

    Attributes:
        name: ``CONV_2D``, a custom operator's name, or a delegate's name.
        prepare: called at each (re)allocation, with the node's input shapes known and constants
            readable. It checks the node. It calls ``context.resize_tensor`` for each output whose
            shape it knows, and ``context.set_dynamic`` for the others. It decides everything that
            depends on shapes, scales and options, and returns the function that computes the
            outputs. Arena tensors have no data yet: the returned function reads ``tensor.data``
            when it runs.
        builtin_code: ``CUSTOM`` for custom operators, ``DELEGATE`` for delegate kernels.
        versions: first and last operator version that is implemented.
        inplace: inputs that may share memory with output 0.
        init: called once before the first prepare; its result becomes ``node.user_data``.
        free: called with ``node.user_data`` when the node is deleted.
        is_unresolved: whether the operator is a custom operator without an implementation.
        uses_blas: whether the operator multiplies matrices, so that BLAS must respect
            ``num_threads``.
        plugin: name of the plugin that offers the custom operator; empty for other operators.
    """

    name: str
    prepare: Prepare
    builtin_code: BuiltinOperator = BuiltinOperator.CUSTOM
    versions: tuple[int, int] = (1, 1)
    inplace: InPlace = InPlace.NONE
    init: Callable[[OpContext, Node], Any] | None = None
    free: Callable[[Any], None] | None = None
    is_unresolved: bool = False
    uses_blas: bool = False
    plugin: str = ""

    @property
    def custom_name(self) -> str:
        """The name of a custom operator or delegate; empty for builtin operators."""
        custom = (BuiltinOperator.CUSTOM, BuiltinOperator.DELEGATE)
        return self.name if self.builtin_code in custom else ""


_OURS = {"builtin_data": "options", "custom_initial_data": "custom_options"}
"""Mapping from fields of TfLiteNode to the attributes of :class:`Node`."""


@dataclass(slots=True, eq=False)
class Node:
    """One node of a running subgraph. Source: TfLiteNode, tflite/core/c/common.h.

    Attributes:
        index: position in the subgraph's node list; delegate nodes come after the model's.
        inputs: tensor indices, -1 for an absent optional input.
        outputs: tensor indices.
        intermediates: indices of tensors that only have the quantization of inner values.
        options: typed options (``Conv2DOptions``); ``DelegateParams`` for a delegate node.
        custom_options: a custom operator's raw bytes.
        version: operator version.
        user_data: object that ``Registration.init`` returned.
        delegate: the delegate that owns this node; None if there is none.
    """

    index: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()
    options: Any = None
    custom_options: bytes = b""
    version: int = 1
    user_data: Any = field(default=None, repr=False)
    delegate: object | None = None

    if not TYPE_CHECKING:  # it would give the class every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError, because a node has no attribute *name*.

            If *name* is a field of ``TfLiteNode``, the message gives the attribute to use instead.
            """
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            ours = _OURS.get(name)
            raise AttributeError(f"{text}; use node.{ours}" if ours else text)

    @classmethod
    def from_operator(cls, operator: OperatorSpec | tuple[Any, ...]) -> Self:
        """Return the node that *operator* declares, an ``OperatorSpec`` or its fields."""
        node = cls.__new__(cls)  # does the same as __init__ in less time
        (node.index, _, _, node.version, node.inputs, node.outputs, node.intermediates,
         node.options, custom) = operator  # fmt: skip
        node.custom_options = b"" if custom is None else custom.tobytes()
        node.user_data = node.delegate = None
        return node


class Scratch(Protocol):
    """Working memory of one node; nodes share it, so its content is lost between invokes."""

    @property
    def data(self) -> NDArray[Any]:
        """The array of the requested shape and dtype; its content is undefined at first."""


class CallableSubgraph(Protocol):
    """A subgraph of a running model, for control-flow kernels and tools that call it."""

    @property
    def inputs(self) -> Sequence[int]:
        """Indices of the subgraph's input tensors."""

    @property
    def outputs(self) -> Sequence[int]:
        """Indices of the subgraph's output tensors."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index.

        Tensors of an interpreter, except constants, may get other memory until the next
        ``allocate``: set ``data`` to an array of the same shape and dtype.
        """

    @property
    def operators(self) -> Sequence[OperatorSpec]:
        """The subgraph's nodes in the model file, in file order, before delegates replaced any."""

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape is known only while invoking; valid after ``allocate``."""

    def resize_input(self, tensor_index: int, shape: tuple[int, ...]) -> None:
        """Set the shape of the input with *tensor_index*; call ``allocate`` afterwards."""

    def allocate(self) -> None:
        """Prepare the subgraph's nodes and plan its memory; fast if nothing has changed."""

    def invoke(self) -> None:
        """Run the subgraph, which reads its inputs' ``data`` and writes its outputs' ``data``."""

    def readable(self, tensor_index: int) -> Tensor:
        """Return tensor *tensor_index*; its ``data`` is up to date.

        The data is copied from a delegate's buffer if needed.
        """


class OpContext(Protocol):
    """Services that the host gives to a kernel.

    Every host of delegates and custom operators implements this protocol.
    """

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""

    @property
    def num_threads(self) -> int:
        """Number of threads that a kernel may use, at least 1."""

    @property
    def numerics(self) -> Numerics:
        """Official kernels whose rounding a kernel reproduces, where official kernels differ."""

    @property
    def memory_limit(self) -> MemoryLimit:
        """Limit that a kernel must check before it allocates memory of a model-dependent size.

        The host checks tensors and :meth:`scratch`. The limit may change when the user resizes an
        input, so kernels must keep the object, not its number of bytes.
        """

    @property
    def resources(self) -> MutableMapping[Any, Any]:
        """Resources of the interpreter (variables, tables), which all subgraphs share."""

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set the shape of a tensor.

        While preparing, memory is allocated later. While invoking, only dynamic tensors may be
        resized; when the call returns, their ``data`` is a new, uninitialised array.

        Raises:
            OperatorError: a dimension is negative, there are too many bytes, or while invoking, the
                tensor is not dynamic.
        """

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare that a tensor's shape is known only while invoking."""

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Reserve an array of *shape* and *dtype*, 64-byte aligned, as the node's working memory.

        The call is allowed only while the node is prepared.
        """

    def subgraph(self, index: int) -> CallableSubgraph:
        """Return subgraph *index* of the model, for the node to call.

        Raises:
            OperatorError: the subgraph does not exist, or contains the node.
        """


def is_only_checked(context: OpContext) -> bool:
    """Whether nodes are prepared only to find errors, so that their evaluations never run.

    A kernel may then leave out what only its evaluation needs, such as converted weights.
    """
    return getattr(context, "is_only_checked", False)


def input_tensor(context: OpContext, node: Node, i: int) -> Tensor:
    """Return the tensor of input *i* of *node*.

    Raises:
        OperatorError: the node has fewer inputs, or this input is absent.
    """
    tensor = optional_input(context, node, i)
    if tensor is None:
        raise OperatorError(f"input {i} is required and absent")
    return tensor


def optional_input(context: OpContext, node: Node, i: int) -> Tensor | None:
    """Return the tensor of input *i* of *node*; None if the input is absent."""
    if i >= len(node.inputs) or node.inputs[i] < 0:
        return None
    return context.tensors[node.inputs[i]]


def variable_input(context: OpContext, node: Node, i: int) -> Tensor:
    """Return the tensor of input *i*, a variable that the node also writes.

    Raises:
        OperatorError: the input is absent or no variable.
    """
    tensor = input_tensor(context, node, i)
    if not tensor.is_variable:
        raise OperatorError(f"state {tensor.name!r} (input {i}) is not a variable tensor")
    return tensor


def output_tensor(context: OpContext, node: Node, i: int = 0) -> Tensor:
    """Return the tensor of output *i* of *node*.

    Raises:
        OperatorError: the node has fewer outputs, or this output is absent.
    """
    if i >= len(node.outputs) or node.outputs[i] < 0:
        raise OperatorError(f"output {i} is required and absent")
    return context.tensors[node.outputs[i]]


def nothing() -> None:
    """Do nothing; the evaluation of a node whose output was computed during prepare."""
