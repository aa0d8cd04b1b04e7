"""Custom operators written as Python functions, and their registration for the whole process.

::

    @custom_op("Scale")
    def scale(x, *, options):
        return x * options["factor"]

    @scale.shape
    def _(x, *, options):
        return x.shape
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from delegraph.errors import ArgumentError, ArgumentTypeError, OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.custom_options import options_as, options_kind, signature_of
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    Registration,
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

Function = Callable[..., Any]
Shape = tuple[int, ...]
ShapeFunction = TypeVar("ShapeFunction", bound=Function)


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """Type, shape and quantization of a tensor, known before the value is computed.

    Attributes:
        shape: dimensions; for an output, the dimensions that the model declares.
        dtype: dtype of the elements.
        value: elements of a constant, read-only; None for other tensors.
        scale: scale of a quantized tensor; 0.0 otherwise.
        zero_point: zero point of a quantized tensor; 0 otherwise.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    value: NDArray[Any] | None = None
    scale: float = 0.0
    zero_point: int = 0


class CustomOp:
    """A custom operator implemented in Python; :func:`custom_op` creates it from a function.

    It can be called like that function, for example in tests, and used in place of a
    ``Registration``: in ``register_custom_op(name, op)``, in ``Interpreter(custom_ops={name:
    op})``, and as the result of ``CustomOpSpec.load``.

    Attributes:
        name: name of the operator in model files (custom code).
        compute: the function that computes the outputs.
    """

    def __init__(self, name: str, compute: Function) -> None:
        self.name = name
        _require_function(f"custom operator {name!r}", compute)
        self.compute = compute
        self._shape: Function | None = None
        functools.update_wrapper(self, compute)

    def __call__(self, *arrays: Any, **keywords: Any) -> Any:
        """Call the operator's function directly and return its result."""
        return self.compute(*arrays, **keywords)

    def __repr__(self) -> str:
        return f"<CustomOp {self.name!r}: {getattr(self.compute, '__qualname__', self.compute)}>"

    def shape(self, function: ShapeFunction) -> ShapeFunction:
        """Register the decorated function as the function that computes the outputs' shapes.

        The function is called when tensors are allocated, with the arguments of ``compute``, but
        with a :class:`TensorDescription` in place of each array. It returns the output's shape, or
        a sequence of shapes for several outputs. None in place of a shape means that the shape is
        known only after ``compute``. Without a shape function, no output's shape is known earlier.

        Raises:
            ArgumentError: *function* cannot be called.
        """
        _require_function(f"shape of custom operator {self.name!r}", function)
        self._shape = function
        return function

    @property
    def registration(self) -> Registration:
        """The registration that the runtime uses for this operator."""
        return Registration(self.name, self._prepare)

    def _prepare(self, context: OpContext, node: Node) -> Eval:
        inputs = [optional_input(context, node, i) for i in range(len(node.inputs))]
        outputs = [output_tensor(context, node, i) for i in range(len(node.outputs))]
        _refuse_packed([*inputs, *outputs])
        shapes = self._shapes(context, node, inputs, outputs)
        compute = _bound(self.compute, node, inputs, outputs)

        def run() -> None:
            arrays = [None if x is None else _readable(x) for x in inputs]
            try:
                results = compute(*arrays)
            except ValueError as error:
                if "read-only" not in str(error):
                    raise
                advice = "inputs are read-only: write x = x + 1, not x += 1"
                raise OperatorError(f"ValueError: {error}; {advice}") from error
            results = _several(results, len(outputs), "array")
            for y, shape, result in zip(outputs, shapes, results, strict=True):
                _store(context, y, shape, result)

        return run

    def _shapes(
        self,
        context: OpContext,
        node: Node,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
    ) -> Sequence[Shape | None]:
        """Set the shapes of *outputs*, computed for *inputs*, and return them.

        An output whose shape is known only during invoke has None, and becomes dynamic.
        """
        shapes: list[Shape | None] = [None] * len(outputs)
        if self._shape is not None:
            described = [None if x is None else _described(x) for x in inputs]
            answer = _bound(self._shape, node, inputs, outputs)(*described)
            several = [answer] if len(outputs) == 1 else _several(answer, len(outputs), "shape")
            shapes = [None if shape is None else _checked_shape(shape) for shape in several]
        for y, shape in zip(outputs, shapes, strict=True):
            if shape is None:
                context.set_dynamic(y)
            else:
                context.resize_tensor(y, shape)
        return shapes


def custom_op(name: str) -> Callable[[Function], CustomOp]:
    """Make a function the implementation of a custom operator, for the whole process.

    The function gets the operator's inputs as arrays, in the model's order, with None for absent
    inputs. It returns the output, or a tuple of outputs. The arrays are the runtime's memory: they
    are read-only, except variables, and must not be kept. The function may also have these keyword
    arguments:

    - ``options``: the custom options: an instance of the dataclass with which the argument is
      annotated, the bytes in the file if it is annotated ``bytes``, otherwise
      :class:`~delegraph.operators.custom_options.CustomOptions`.
    - ``inputs`` and ``outputs``: a :class:`TensorDescription` of each tensor, for scales and zero
      points.

    The result must have the dtype of the model's output tensor, and the shape from the shape
    function (:meth:`CustomOp.shape`). Without a shape function, any shape is accepted.

    >>> @custom_op("TimesTwo")
    ... def times_two(x):
    ...     return x + x
    >>> times_two(np.float32([1, 2])).tolist()
    [2.0, 4.0]
    >>> unregister_custom_op("TimesTwo")

    Args:
        name: name of the operator in model files (custom code).

    Raises:
        ArgumentError: *name* is empty, or a function: the decorator needs a name. Or what it
            decorates is no function.
    """
    if callable(name):
        called = getattr(name, "__name__", "Name")
        raise ArgumentError(f"custom_op needs the operator's name: write @custom_op({called!r})")

    def decorate(compute: Function) -> CustomOp:
        made = CustomOp(name, compute)
        register_custom_op(name, made)
        return made

    return decorate


# -- the operators of this process -------------------------------------------------------------

AnyCustomOp = Registration | CustomOp
"""Implementation of a custom operator: a registration, or the result of :func:`custom_op`."""

_REGISTERED: dict[str, Registration] = {}


def register_custom_op(name: str, op: AnyCustomOp) -> None:
    """Make a custom operator available to every interpreter that is created later.

    Args:
        name: name of the operator in model files (custom code). A later registration replaces an
            earlier one.
        op: the implementation; its attribute ``name`` need not be *name*.

    Raises:
        ArgumentError: *name* is empty, or *op* is no implementation.
    """
    if not name:
        raise ArgumentError("a custom operator needs a name")
    _REGISTERED[name] = as_registration(op, name)


def unregister_custom_op(name: str) -> None:
    """Remove a custom operator that :func:`register_custom_op` or :func:`custom_op` registered.

    Existing interpreters keep the operator.

    Raises:
        ArgumentError: no operator is registered under *name*.
    """
    if name not in _REGISTERED:
        known = ", ".join(sorted(_REGISTERED)) or "none"
        raise ArgumentError(f"no custom operator {name!r} is registered; registered: {known}")
    del _REGISTERED[name]


def registered_custom_ops() -> Mapping[str, Registration]:
    """Return the custom operators registered in this process, by name."""
    return _REGISTERED


def as_registration(op: AnyCustomOp, name: str) -> Registration:
    """Return the registration of *op*, which may itself be a registration.

    Args:
        op: the implementation of the operator.
        name: name of the operator, for the message.

    Raises:
        ArgumentError: *op* is neither a registration nor a custom operator.
    """
    if name in BuiltinOperator.__members__:
        text = f"builtin {name} nodes never call custom operator {name!r}; a delegate may take them"
        warnings.warn(text, stacklevel=4)  # the caller of custom_op()
    if isinstance(op, CustomOp):
        return op.registration
    if isinstance(op, Registration):
        return op
    raise ArgumentError(
        f"custom operator {name!r} is {op!r}, expected a function with "
        f"@delegraph.custom_op({name!r}) above it, or a Registration"
    )


# -- calling the functions ---------------------------------------------------------------------


def _bound(
    function: Function, node: Node, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Function:
    """Return *function* with values for the keyword arguments it declares.

    They are ``options``, and descriptions of *inputs* and *outputs*; see :func:`custom_op`.

    Raises:
        OperatorError: *function* does not take the node's inputs, or the options do not fit.
    """
    signature = signature_of(function)
    keywords: dict[str, Any] = {}
    if "options" in signature.parameters:
        keywords["options"] = options_as(options_kind(function), node.custom_options)
    for name, tensors in (("inputs", inputs), ("outputs", outputs)):
        if name in signature.parameters:
            keywords[name] = [None if t is None else _described(t) for t in tensors]
    try:
        signature.bind(*inputs, **keywords)
    except TypeError as error:
        name, count = getattr(function, "__name__", "the function"), len(inputs)
        raise OperatorError(
            f"{name}{signature} does not take the node's inputs, there are {count}: {error}; a "
            "function takes an array for each, and the keywords options, inputs and outputs if it "
            "names them"
        ) from error
    return functools.partial(function, **keywords)


def _require_function(what: str, given: object) -> None:
    if not callable(given):
        raise ArgumentTypeError(f"{what} is a function, not {given!r}")


def _described(tensor: Tensor) -> TensorDescription:
    value = tensor.data if tensor.is_constant_or_persistent else None
    return TensorDescription(tensor.shape, tensor.dtype, value, tensor.scale, tensor.zero_point)


def _readable(tensor: Tensor) -> NDArray[Any]:
    """Return a read-only view of a tensor's data, since other nodes read the same memory."""
    view: NDArray[Any] = tensor.data.view()
    if not tensor.is_variable:
        view.flags.writeable = False
    return view


def _several(answer: Any, count: int, what: str) -> Sequence[Any]:
    """A function's *answer* as a sequence of *count* items, one an output; errors name *what*."""
    if count == 0 and answer is None:
        return ()
    if count == 1 and not isinstance(answer, tuple):
        answer = (answer,)
    if not isinstance(answer, tuple | list) or len(answer) != count:
        found = f"{len(answer)} {what}s" if isinstance(answer, tuple | list) else _kind(answer)
        advice = _NO_RETURN if answer is None else ""
        raise OperatorError(
            f"the function returned {found}, expected {count}: one for each output of the "
            f"node{advice}"
        )
    return answer


def _store(context: OpContext, y: Tensor, shape: Shape | None, returned: Any) -> None:
    """Write *returned* to tensor *y* after checking dtype and shape; None allows any shape."""
    if returned is None:
        raise OperatorError(f"the function returned None{_NO_RETURN}")
    result = np.asarray(returned)
    if y.type == TensorType.STRING:
        result = _strings(result)
    if result.dtype != y.dtype or shape not in (None, result.shape):
        expected = y.dtype.name if shape is None else f"{y.dtype.name} {list(shape)}"
        cast = _OPEN if result.dtype == y.dtype else _conversion(returned, y.dtype.name)
        kind = _kind(returned) if isinstance(returned, list) else _kind(result)
        raise OperatorError(
            f"the function returned {kind}, the model's output tensor {y.index} "
            f"{y.name!r} expects {expected}{cast}"
        )
    if shape is None:
        context.resize_tensor(y, result.shape)
    np.copyto(y.data, result)


_OPEN = "; a shape function that returns None allows any shape"
_NO_RETURN = "; does it end with 'return'?"


def _conversion(returned: Any, dtype: str) -> str:
    """Advice on how to convert what a function returned to *dtype*."""
    if isinstance(returned, np.ndarray | np.generic):
        return f"; .astype({dtype!r}) converts it"
    return f"; np.asarray(..., {dtype!r}) makes it an array"


def _refuse_packed(tensors: Sequence[Tensor | None]) -> None:
    for tensor in tensors:
        if tensor is not None and tensor.is_packed:
            raise OperatorError(f"{tensor!r} has no NumPy dtype that a Python function could take")


def _checked_shape(shape: Any) -> tuple[int, ...]:
    try:
        dims = tuple(operator.index(dim) for dim in shape)
    except TypeError:
        dims = (-1,)
    if min(dims, default=0) < 0:
        raise OperatorError(f"the shape function returned {shape!r}, expected a tuple of lengths")
    return dims


def _strings(result: NDArray[Any]) -> NDArray[Any]:
    """Return *result* as an array of ``bytes`` objects."""
    strings = result.astype(object) if result.dtype.kind == "S" else result
    if strings.dtype == object:
        for value in strings.flat:
            if not isinstance(value, bytes):
                raise OperatorError(f"the function returned {value!r} as a string, expected bytes")
    return strings


def _kind(value: Any) -> str:
    """Describe *value* for a message: dtype and shape of an array, None, or the type's name."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype.name} {list(value.shape)}"
    return type(value).__name__
