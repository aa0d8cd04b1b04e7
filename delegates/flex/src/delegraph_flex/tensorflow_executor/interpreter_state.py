"""State of an interpreter in TensorFlow's process-wide lists, and its removal."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import Call, FunctionSignature, NodeEnvironment
from delegraph_flex.node_def import Shape

KEY = "flex.tensorflow"
"""Key of the state in the resources of an interpreter."""

Callback = Callable[[str, FunctionSignature, "InterpreterState"], Callable[..., Any]]
"""Function that returns a function of eager tensors, which runs a function of the model."""

_abandoned: deque[tuple[dict[str, Any], list[str]]] = deque()
_numbers = itertools.count(1)


class InterpreterState:
    """Names of one interpreter's resources and functions in TensorFlow's process-wide lists.

    TensorFlow keeps resources and functions until the process ends. Resources of an interpreter
    that no longer exists are removed when the next node is bound.

    Attributes:
        container: name of the container for variables, tables and other resources.
        failure: exception of a function of the model, stored because TensorFlow only reports its
            text.
        function_names: names of the functions that are registered with TensorFlow.
    """

    def __init__(self) -> None:
        self.container = f"delegraph.{next(_numbers)}"
        self.failure: Exception | None = None
        self._handles: dict[str, Any] = {}
        self.function_names: list[str] = []
        self._functions: dict[str, tuple[str, Any]] = {}
        self._calls: dict[str, Call] = {}
        self._nodes = itertools.count(1)
        rest = (self._handles, self.function_names)
        weakref.finalize(self, _abandoned.append, rest).atexit = False

    @classmethod
    def of(cls, around: NodeEnvironment) -> InterpreterState:
        """Return the state of the interpreter to which *around* belongs.

        The first call creates the state.
        """
        state = around.resources.get(KEY)
        if state is None:
            state = around.resources[KEY] = cls()
        assert isinstance(state, cls)
        return state

    def unique_name(self) -> str:
        """Return a name that is unique in the process."""
        return f"{self.container}.node{next(self._nodes)}"

    def keep_handle(self, owner: str, handle: Any) -> None:
        """Store the *handle* of a node's resource under *owner*, a unique name.

        The resource is destroyed with the interpreter.
        """
        self._handles[owner] = handle

    def add_definition(self, definition: Any) -> None:
        """Register *definition*, a FunctionDef, until the end of the interpreter."""
        _context().add_function_def(definition)
        self.function_names.append(definition.signature.name)

    def function(self, name: str, around: NodeEnvironment, callback: Callback) -> str:
        """Return TensorFlow's name of the function *name* of the model, registered if necessary.

        *around* is the environment of the nodes. *callback* makes the function that TensorFlow
        calls.

        Raises:
            Unsupported: the model lacks the function.
        """
        if name not in self._functions:
            signature, self._calls[name] = around.function(name)
            concrete = _concrete(signature, callback(name, signature, self))
            definition = type(concrete.function_def)()
            definition.CopyFrom(concrete.function_def)
            definition.signature.name = f"{self.container}.{name}".replace(".", "_")
            self.add_definition(definition)
            self._functions[name] = (definition.signature.name, concrete)
        return self._functions[name][0]

    def run(self, name: str, arrays: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        """Run the function *name* of the model on *arrays*, and return its results."""
        return self._calls[name](name, arrays)


def _concrete(signature: FunctionSignature, callback: Callable[..., Any]) -> Any:
    """Return the TensorFlow function of *signature* that calls *callback*, a Python function."""
    types = [_tensorflow_type(type) for type in signature.output_types]

    def body(*values: Any) -> list[Any]:
        results = tf.py_function(callback, values, types) if types else []
        return [
            tf.ensure_shape(result, _tensorflow_shape(shape))
            for result, shape in zip(results, signature.output_shapes, strict=True)
        ]

    specs = [
        tf.TensorSpec(_tensorflow_shape(shape), _tensorflow_type(type))
        for shape, type in zip(signature.input_shapes, signature.input_types, strict=True)
    ]
    return tf.function(body, input_signature=specs, autograph=False).get_concrete_function()


def _tensorflow_type(type: Any) -> Any:
    return tf.dtypes.as_dtype(int(DataType.of(type)))


def _tensorflow_shape(shape: Shape) -> Any:
    return tf.TensorShape(shape and [None if size < 0 else size for size in shape])


def _context() -> Any:
    from tensorflow.python.eager import context

    current = context.context()
    current.ensure_initialized()
    return current


def sweep() -> None:
    """Destroy resources and functions of closed interpreters in TensorFlow.

    The function must be called while TensorFlow is idle. A finalizer may run while TensorFlow
    works, holds locks or builds a graph, so finalizers only record the resources to destroy.
    """
    while _abandoned:
        handles, names = _abandoned.popleft()
        with tf.init_scope():
            for handle in handles.values():
                tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
        for name in names:
            _context().remove_function(name)
