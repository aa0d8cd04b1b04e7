"""Variables: named tensors, shared by all subgraphs of an interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.node_def import Shape
from delegraph_flex.numpy_executor.handles import of_kind, shared
from delegraph_flex.numpy_executor.indices import check_range
from delegraph_flex.numpy_executor.operators.tensor_lists import merged
from delegraph_flex.numpy_executor.registry import functions, operator, step_of

Array = NDArray[Any]


@dataclass(slots=True)
class Variable:
    """Value and properties of a TensorFlow variable.

    Attributes:
        name: name in the variable's handle.
        type: type of the variable's values.
        shape: declared shape, with -1 for unknown dimensions.
        value: present value; None before the first assignment.
    """

    name: str
    type: DataType
    shape: Shape
    value: Array | None = None

    def read(self) -> Array:
        """Return the present value of the variable.

        Raises:
            ValueError: the variable has no value yet.
        """
        if self.value is None:
            raise ValueError(f"variable {self.name!r} is read before it is assigned")
        return self.value

    def assign(self, value: Array) -> None:
        """Set the value to a copy of *value*."""
        merged(self.shape, np.shape(value))
        self.value = np.array(value, self.type.dtype)


def _variable(handle: Any) -> Variable:
    return of_kind(handle, Variable, "variable")


@operator("VarHandleOp")
def handle(node: FlexNode) -> Step:
    """Return a function that returns the handle of the variable with the node's name."""
    type, shape = node.type("dtype"), node.shape("shape")
    if type in (DataType.RESOURCE, DataType.VARIANT):
        raise Unsupported(f"a variable of {type.name}", "dtype")
    variable = shared(node, "variable", lambda name: Variable(name, type, shape))
    if variable.type != type:
        raise Unsupported(f"variable {variable.name!r} is {variable.type.name}, not {type.name}")
    return lambda: variable


functions(
    {
        "ReadVariableOp": lambda handle: _variable(handle).read(),
        "VarIsInitializedOp": lambda handle: np.array(_variable(handle).value is not None),
    }
)


@step_of("AssignVariableOp")
def assign(handle: Any, value: Array) -> tuple[()]:
    """Set the value of a variable."""
    _variable(handle).assign(value)
    return ()


def _updating(function: Any) -> Step:
    def run(handle: Any, value: Array) -> tuple[()]:
        variable = _variable(handle)
        stored = variable.read()
        if np.shape(value) != stored.shape:
            raise ValueError(f"value is {np.shape(value)}, the variable {stored.shape}")
        variable.value = function(stored, value)
        return ()

    return run


functions({"AssignAddVariableOp": _updating(np.add), "AssignSubVariableOp": _updating(np.subtract)})


@operator("VariableShape")
def variable_shape(node: FlexNode) -> Step:
    """Return a function that returns the shape of a variable's value."""
    dtype = node.type("out_type", DataType.INT32).dtype
    return lambda handle: np.array(_variable(handle).read().shape, dtype)


@step_of("DestroyResourceOp")
def destroy(handle: Any) -> tuple[()]:
    """Remove the value of a variable."""
    if isinstance(handle, Variable):
        handle.value = None
    return ()


@operator("ResourceGather")
def resource_gather(node: FlexNode) -> Step:
    """Return a function that returns rows of a variable's value, by index."""
    if node.int("batch_dims", 0) != 0:
        raise Unsupported("batch_dims other than 0")

    def run(handle: Any, indices: Array) -> Array:
        stored = _variable(handle).read()
        check_range(indices, len(stored))
        require((*np.shape(indices), *stored.shape[1:]), stored.dtype)
        return stored[indices]

    return run
