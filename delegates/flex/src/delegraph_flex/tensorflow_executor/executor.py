"""TensorFlow executor, whose values are eager tensors."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.framework import op_def_registry

from delegraph import TensorType
from delegraph_flex.data_types import HANDLES, DataType, boxed
from delegraph_flex.executor import Executor, Step
from delegraph_flex.extras import install_command
from delegraph_flex.flex_node import FlexNode, FunctionSignature, Unsupported
from delegraph_flex.node_def import AttrValue
from delegraph_flex.side_effects import side_effects
from delegraph_flex.tensorflow_executor import attributes
from delegraph_flex.tensorflow_executor.borrowed_memory import BorrowedMemory
from delegraph_flex.tensorflow_executor.eager_call import eager_call, message_of, named_call
from delegraph_flex.tensorflow_executor.interpreter_state import InterpreterState, sweep
from delegraph_flex.tensorflow_executor.own_function import own_function

try:  # it borrows an aligned array's memory, and copies others; tf.constant always copies, in 7 us
    from tensorflow.python.framework.ops import EagerTensor
except ImportError:
    EagerTensor = None

logger = logging.getLogger(__name__)

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
"""Device on which all operators run; the arrays are in its memory."""

BORROWED_BYTES = 1 << 15
"""Number of bytes below which arrays are copied, since tracking them would take longer."""

_CODES = {type: int(DataType.of(type)) for type in TensorType if type.name in DataType.__members__}


class TensorFlowExecutor(Executor):
    """Executor that runs operators eagerly, one by one, on the CPU.

    Each interpreter has its own resources, functions and states of seeded generators. TensorFlow's
    threads belong to the process, so ``num_threads`` has an effect only if the process has not used
    TensorFlow before.
    """

    name = "tensorflow"

    def __init__(self) -> None:
        self._borrowed = BorrowedMemory()

    def bind(self, node: FlexNode) -> Step:
        sweep()
        op_def = _op_def(node.op)
        attrs = attributes.checked_attributes(node, op_def)
        attributes.check_types(node, op_def, attrs)
        _limit_threads(node.around.num_threads)
        state = InterpreterState.of(node.around)
        call = self._call(node, op_def, _with_names(node, op_def, attrs, state), state)
        call = _stored(node, op_def, attrs, call)
        if op_def.is_stateful or not HANDLES.isdisjoint(node.input_types + node.output_types):
            call = self._keeping(call)
        if TensorType.RESOURCE in node.output_types and "container" in _names(op_def):
            call = _owned(call, state)
        return _reporting(call, state)

    def enter(self, array: NDArray[Any], type: TensorType) -> Any:
        if type in HANDLES:
            return array.item().value
        if EagerTensor is None:
            return tf.constant(array, tf.dtypes.as_dtype(_CODES[type]))
        if array.nbytes < BORROWED_BYTES or type is TensorType.STRING:
            return EagerTensor(np.array(array), DEVICE, _CODES[type])
        array = np.ascontiguousarray(array)
        self._borrowed.add(array)
        return EagerTensor(array, DEVICE, _CODES[type])

    def leave(self, value: Any, type: TensorType) -> NDArray[Any]:
        if type in HANDLES:
            return boxed(Handle(value))
        result = _memory(value)
        if type is TensorType.STRING:
            return np.array(result, object)
        array = np.asarray(result)
        if array.nbytes >= BORROWED_BYTES and self._borrowed.holds(array):
            return array.copy()
        array.flags.writeable = False
        return array

    def describe(self) -> str:
        return f"{self.name} {tf.__version__}"

    def _call(
        self,
        node: FlexNode,
        op_def: Any,
        attrs: Mapping[str, AttrValue],
        state: InterpreterState,
    ) -> Step:
        functions = {
            name: state.function(name, node.around, self._callback)
            for name in attributes.function_names(attrs)
        }
        count = len(node.output_types)
        if attributes.has_tensors(attrs) or (op_def.is_stateful and _is_seeded(attrs)):
            name = state.unique_name().replace(".", "_")
            state.add_definition(own_function(name, node, op_def, attrs, functions))
            return named_call(name, count, ("config_proto", b""), DEVICE)
        flat = itertools.chain.from_iterable(
            (name, attributes.eager_attribute(value, functions)) for name, value in attrs.items()
        )
        return eager_call(op_def, count, tuple(flat), DEVICE)

    def _callback(
        self, name: str, signature: FunctionSignature, state: InterpreterState
    ) -> Callable[..., Any]:
        """Return the function of eager tensors that runs the model's function *name*.

        *signature* has the types of the function's inputs and outputs. *state* is the state of the
        interpreter.
        """
        # TensorFlow keeps this function forever, so it must not keep the interpreter alive.
        reference = weakref.ref(state)
        # Datasets may call from several threads, but a subgraph runs once at a time. Another
        # subgraph may run meanwhile, because this subgraph may wait for its result.
        lock = threading.RLock()

        def call(*values: Any) -> list[Any]:
            state = reference()
            if state is None:
                raise ReferenceError(f"function {name!r} outlived its interpreter")
            arrays = [self.leave(v, t) for v, t in zip(values, signature.input_types, strict=True)]
            try:
                with lock:
                    results = state.run(name, arrays)
            except Exception as error:
                state.failure = error
                raise
            return [
                self._copied(self.enter(result, type))
                for result, type in zip(results, signature.output_types, strict=True)
            ]

        return call

    def _keeping(self, call: Step) -> Step:
        """Return *call*, extended to copy inputs whose memory the interpreter will overwrite."""
        copied = self._copied

        def run(*values: Any) -> Any:
            return call(*map(copied, values))

        return run

    def _copied(self, value: Any) -> Any:
        """Return *value*, or a copy if it is in the interpreter's memory."""
        if value.dtype in (tf.resource, tf.variant, tf.string):
            return value
        array = np.asarray(_memory(value))
        if array.nbytes < BORROWED_BYTES or not self._borrowed.holds(array):
            return value
        return EagerTensor(array.copy(), DEVICE, value.dtype.as_datatype_enum)


class Handle:
    """Wrapper of a resource or variant tensor, to pass it between partitions in an array.

    The wrapper hides the tensor from NumPy, which would otherwise convert it to numbers.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _op_def(op: str) -> Any:
    """Return TensorFlow's definition of the operator *op*; TensorFlow Text is imported if needed.

    Raises:
        Unsupported: TensorFlow lacks the operator.
    """
    found = op_def_registry.get(op)
    effect = side_effects().get(op)
    if found is None and effect is not None and effect.name == "text":
        if importlib.util.find_spec("tensorflow_text") is None:
            raise Unsupported(
                f"{op} belongs to TensorFlow Text, which is not installed: "
                f"{install_command('text')}",
                "executor",
            )
        importlib.import_module("tensorflow_text")
        found = op_def_registry.get(op)
    if found is None:
        raise Unsupported(f"TensorFlow {tf.__version__} does not have {op}", "executor")
    return found


def _memory(value: Any) -> Any:
    """Return the values of *value*, an eager tensor, as an array.

    The values are not copied if this version of TensorFlow allows that.
    """
    read = getattr(value, "_numpy", value.numpy)
    return read()


def _limit_threads(num_threads: int) -> None:
    """Limit operators to *num_threads* threads, unless this process has used TensorFlow before."""
    if num_threads < 1 or tf.config.threading.get_intra_op_parallelism_threads() != 0:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(num_threads)
    except RuntimeError:
        logger.debug("TensorFlow runs already, so num_threads=%d is not for it", num_threads)


def _names(op_def: Any) -> frozenset[str]:
    return frozenset(attr.name for attr in op_def.attr)


def _with_names(
    node: FlexNode, op_def: Any, attrs: Mapping[str, AttrValue], state: InterpreterState
) -> Mapping[str, AttrValue]:
    """Return *attrs* with the interpreter's container, and with names for unnamed resources.

    *op_def* is the operator's definition; *state* is the state of the interpreter.

    All variables without a name are the same variable; any other unnamed resource belongs to its
    node only.
    """
    names = _names(op_def)
    if "container" not in names:
        return attrs
    container = attrs.get("container", b"")
    assert isinstance(container, bytes)
    result = {**attrs, "container": b"/".join(filter(None, (state.container.encode(), container)))}
    if "shared_name" in names and node.op != "VarHandleOp" and not attrs.get("shared_name"):
        result["shared_name"] = state.unique_name().encode()
    return result


def _is_seeded(attrs: Mapping[str, AttrValue]) -> bool:
    return bool(attrs.get("seed") or attrs.get("seed2"))


def _owned(call: Step, state: InterpreterState) -> Step:
    """Return *call*, extended so that its resources are removed with the interpreter."""
    owner = state.unique_name()

    def run(*values: Any) -> Any:
        results = call(*values)
        for i, result in enumerate(results if isinstance(results, list) else [results]):
            if result.dtype == tf.resource:
                state.keep_handle(f"{owner}:{i}", result)
        return results

    return run


def _stored(node: FlexNode, op_def: Any, attrs: Mapping[str, AttrValue], call: Step) -> Step:
    """Return *call*, adapted for quantized types, which the file stores as plain integers."""
    sides = [
        attributes.argument_types(op_def, args, attrs) or []
        for args in (op_def.input_arg, op_def.output_arg)
    ]
    takes, gives = ([t is not None and t.name.startswith("Q") for t in side] for side in sides)
    if not any(takes + gives):
        return call
    inputs = [
        tf.dtypes.as_dtype(int(t or 0)) if q else None for t, q in zip(sides[0], takes, strict=True)
    ]
    outputs = [
        tf.dtypes.as_dtype(_CODES[type]) if q else None
        for type, q in zip(node.output_types, gives, strict=True)
    ]

    def run(*values: Any) -> Any:
        results = call(*(_as(v, type) for v, type in zip(values, inputs, strict=True)))
        if len(outputs) == 1:
            return _as(results, outputs[0])
        return [_as(v, type) for v, type in zip(results, outputs, strict=True)]

    return run


def _as(value: Any, type: Any) -> Any:
    return value if type is None else tf.bitcast(value, type)


def _reporting(call: Step, state: InterpreterState) -> Step:
    """Return *call* with shorter errors, or the error of a function of the model that it called."""

    def run(*values: Any) -> Any:
        try:
            return call(*values)
        except Exception as error:
            failure, state.failure = state.failure, None
            if failure is not None:
                raise failure from None
            raise ValueError(message_of(error)) from error

    return run
