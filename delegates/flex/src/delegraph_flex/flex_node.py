"""A Flex operator as executors use it: name, attributes, tensor types, shared environment."""

from __future__ import annotations

import builtins
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import Function, NodeDef, Shape


class Unsupported(Exception):
    """Error: an executor cannot run a node. The message tells users which part is unsupported.

    Args:
        message: the found property, and the supported properties.
        constraint: permanent short identifier of the reason, as in ``Rejection``.
    """

    def __init__(self, message: str, constraint: str = "attribute") -> None:
        super().__init__(message)
        self.constraint = constraint


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """Types and declared shapes of a function's inputs and outputs; a function is a subgraph."""

    input_types: tuple[TensorType, ...]
    input_shapes: tuple[Shape, ...]
    output_types: tuple[TensorType, ...]
    output_shapes: tuple[Shape, ...]


Call = Callable[[str, Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]
"""Function that runs a function of the model, given by name, on arrays."""


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """Objects shared by the nodes of one interpreter: resources, functions, threads, stop requests.

    Attributes:
        resources: values that all subgraphs of the interpreter share; a key begins with ``"flex"``.
        call: function that runs a model's function; the caller may keep its results. Calls must not
            run at the same time. A call may come from another thread while a step waits for the
            result.
        functions: function that returns the signature of the model's function with a name; it
            raises KeyError for an unknown name.
        num_threads: number of threads for an executor; below 1 if the user sets none.
        raise_if_requested: function that raises an error if the running call was requested to stop.
            Code that may never end must call it regularly.
    """

    resources: MutableMapping[Any, Any] = field(default_factory=dict)
    call: Call | None = None
    functions: Callable[[str], FunctionSignature] | None = None
    num_threads: int = -1
    raise_if_requested: Callable[[], None] = lambda: None

    def function(self, name: str) -> tuple[FunctionSignature, Call]:
        """Return the signature of the model's function *name*, and the function that calls one.

        Raises:
            Unsupported: the model lacks the function, or the host cannot run functions.
        """
        if self.call is None or self.functions is None:
            raise Unsupported(f"function {name!r}: this host runs no functions", "function")
        try:
            return self.functions(name), self.call
        except KeyError as error:
            raise Unsupported(
                f"function {name!r}: the model has no subgraph of that name", "function"
            ) from error


KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "float": (float,),
    "func": (Function,),
    "int": (int,),
    "list": (list,),
    "shape": (tuple, type(None)),
    "string": (bytes,),
    "tensor": (np.ndarray,),
    "type": (DataType,),
}
"""Mapping from an attribute's kind, as in TensorFlow's OpDefs, to the types of its values."""


@dataclass(frozen=True, slots=True)
class FlexNode:
    """One Flex operator of the model, with typed access to its attributes.

    The methods that read attributes (:meth:`int`, :meth:`ints`, ...) return the default if the
    NodeDef lacks the attribute, as TensorFlow does.

    Attributes:
        index: index of the node in its subgraph.
        node_def: TensorFlow's operator and its attributes.
        input_types: types of the inputs, as in the ``.tflite`` file.
        output_types: types of the outputs, as in the ``.tflite`` file.
        around: environment that the node shares with other nodes.
    """

    index: int
    node_def: NodeDef
    input_types: tuple[TensorType, ...]
    output_types: tuple[TensorType, ...]
    around: NodeEnvironment = field(default_factory=NodeEnvironment)

    @property
    def op(self) -> str:
        """TensorFlow's name of the operator."""
        return self.node_def.op

    def type(self, name: str, default: DataType | None = None) -> DataType:
        """Return the attribute *name*, an element type; *default* if the operator lacks it."""
        value: DataType = self._attr(name, "type", default)
        return value

    def int(self, name: str, default: builtins.int | None = None) -> builtins.int:
        """Return the attribute *name*, an integer; *default* if the operator lacks it."""
        value: builtins.int = self._attr(name, "int", default)
        return value

    def float(self, name: str, default: builtins.float | None = None) -> builtins.float:
        """Return the attribute *name*, a float; *default* if the operator lacks it."""
        value: builtins.float = self._attr(name, "float", default)
        return value

    def bool(self, name: str, default: builtins.bool | None = None) -> builtins.bool:
        """Return the attribute *name*, true or false; *default* if the operator lacks it."""
        value: builtins.bool = self._attr(name, "bool", default)
        return value

    def bytes(self, name: str, default: builtins.bytes | None = None) -> builtins.bytes:
        """Return the attribute *name*, a string as bytes; *default* if the operator lacks it."""
        value: builtins.bytes = self._attr(name, "string", default)
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return the attribute *name*, a string as text; *default* if the operator lacks it."""
        value = self.bytes(name, None if default is None else default.encode())
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise Unsupported(f"attribute {name!r} is {value!r}, expected text") from error

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return the attribute *name*, one of *choices*; *default* if the operator lacks it.

        Raises:
            Unsupported: the value is not in *choices*.
        """
        value = self.text(name, default)
        if value not in choices:
            raise Unsupported(
                f"attribute {name!r} is {value!r}, expected " + " or ".join(map(repr, choices))
            )
        return value

    def shape(self, name: str) -> Shape:
        """Return the value of the attribute *name*, a shape."""
        value: Shape = self._attr(name, "shape", ())
        return value

    def function(self, name: str) -> Function:
        """Return the value of the attribute *name*, the name of a function with its attributes."""
        value: Function = self._attr(name, "func", None)
        return value

    def ints(
        self, name: str, default: Sequence[builtins.int] | None = None
    ) -> tuple[builtins.int, ...]:
        """Return the attribute *name*, a list of integers; *default* if the operator lacks it."""
        return tuple(self._list(name, "int", default))

    def floats(self, name: str) -> tuple[builtins.float, ...]:
        """Return the value of the attribute *name*, a list of floats."""
        return tuple(self._list(name, "float"))

    def strings(self, name: str) -> tuple[builtins.bytes, ...]:
        """Return the value of the attribute *name*, a list of strings as bytes."""
        return tuple(self._list(name, "string"))

    def types(self, name: str) -> tuple[DataType, ...]:
        """Return the value of the attribute *name*, a list of element types."""
        return tuple(self._list(name, "type"))

    def shapes(self, name: str) -> tuple[Shape, ...]:
        """Return the value of the attribute *name*, a list of shapes."""
        return tuple(self._list(name, "shape"))

    def _list(self, name: str, kind: str, default: Sequence[Any] | None = None) -> list[Any]:
        values: list[Any] = self._attr(name, "list", default)
        for value in values:
            self._check(name, value, kind, "a list of ")
        return values

    def _attr(self, name: str, kind: str, default: Any) -> Any:
        if name not in self.node_def.attrs:
            if default is None:
                raise Unsupported(f"attribute {name!r} is missing, and it has no default")
            return default
        value = self.node_def.attrs[name]
        self._check(name, value, kind)
        return value

    def _check(self, name: str, value: Any, kind: str, prefix: str = "") -> None:
        """Check that *value*, of the attribute *name*, is of *kind*; a bool is no int.

        *prefix* stands before the kind in the error.
        """
        if type(value) not in KINDS[kind]:
            raise Unsupported(f"attribute {name!r} is {value!r}, expected {prefix}{kind}")
