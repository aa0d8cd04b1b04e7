"""Cases for TensorFlow's operators: inputs and attributes, without any expected result.

Every module here has a function ``cases()``. What TensorFlow makes of the cases is recorded beside
the tests, so that tests need no TensorFlow; where it is installed, they ask it.

A record belongs to inputs of certain bits, so every processor must make the same ones: with BLAS
and with functions like ``exp`` only from numbers for which the result is exact.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flex_functions
from delegraph import TensorType
from delegraph.graph import NUMPY_DTYPES
from delegraph.operators import MemoryLimit
from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Executor
from delegraph_flex.flex_node import FlexNode, NodeEnvironment
from delegraph_flex.memory import LIMIT
from delegraph_flex.node_def import AttrValue, NodeDef

_TYPES = {
    dtype: type
    for type, dtype in NUMPY_DTYPES.items()
    if type.name in DataType.__members__ and not dtype.hasobject
}


FLOATS = (DataType.FLOAT32, DataType.FLOAT64, DataType.FLOAT16, DataType.BFLOAT16)
INTEGERS = (
    DataType.INT8,
    DataType.INT16,
    DataType.INT32,
    DataType.INT64,
    DataType.UINT8,
    DataType.UINT16,
)


@dataclass(frozen=True)
class Call:
    """One operator of a case.

    Attributes:
        op: TensorFlow's name.
        attrs: its attributes.
        inputs: positions among the values: the case's inputs, then every output of earlier calls.
        output_types: of its outputs.
    """

    op: str
    attrs: dict[str, AttrValue]
    inputs: tuple[int, ...]
    output_types: tuple[TensorType, ...]


@dataclass(frozen=True)
class Case:
    """Operators called in order, with their inputs and the outputs to compare.

    Attributes:
        name: unique in its module.
        inputs: arrays; strings as ``bytes`` in arrays of dtype object.
        calls: the operators.
        outputs: positions of the values that are compared.
        tolerance: relative to the largest magnitude of the right result; 0 means equal bits.
        runs: how often the calls are made, one after the other, with the state that they leave.
    """

    name: str
    inputs: list[NDArray[Any]]
    calls: list[Call]
    outputs: tuple[int, ...]
    tolerance: float = 0.0
    runs: int = 1


def type_of(array: NDArray[Any]) -> TensorType:
    """Return the tensor type of an array."""
    return TensorType.STRING if array.dtype.hasobject else _TYPES[array.dtype]


def strings(values: Sequence[Any] | bytes) -> NDArray[Any]:
    """Return (nested lists of) bytes as an array of strings."""
    return np.array(values, object)


def one(
    op: str,
    *inputs: Any,
    out: TensorType | Sequence[TensorType] | None = None,
    tolerance: float = 0.0,
    name: str = "",
    **attrs: AttrValue,
) -> Case:
    """Return the case of a single operator.

    Args:
        op: TensorFlow's name.
        inputs: arrays, or what ``np.asarray`` makes arrays of.
        out: type of its output, or types of its outputs; None for one like the first input.
        tolerance: see :class:`Case`.
        name: tells cases of the same operator apart, where the attributes do not.
        attrs: its attributes.
    """
    arrays = [np.array(value) for value in inputs]  # a copy: whoever made them may go on
    types = (type_of(arrays[0]),) if out is None else (out,) if isinstance(out, TensorType) else out
    first = len(arrays)
    call = Call(op, attrs, tuple(range(first)), tuple(types))
    return Case(name or op, arrays, [call], tuple(range(first, first + len(types))), tolerance)


@contextmanager
def memory_limit(count: int) -> Iterator[None]:
    """Context in which operators may need at most *count* bytes."""
    token = LIMIT.set(MemoryLimit(count, is_default=False))
    try:
        yield
    finally:
        LIMIT.reset(token)


def all_cases() -> Iterator[tuple[str, Case]]:
    """Yield every case, with a unique name."""
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        seen: dict[str, int] = {}
        for case in importlib.import_module(f"{__name__}.{module}").cases():
            seen[case.name] = seen.get(case.name, -1) + 1
            yield f"{module}.{case.name}.{seen[case.name]}", case


def run(
    case: Case, executor: Executor, around: NodeEnvironment | None = None
) -> list[NDArray[Any]]:
    """Return the outputs of a case by *executor*, for every run.

    Args:
        case: the case.
        executor: binds and runs its calls.
        around: what they share; None for nothing but functions.
    """
    around = around or NodeEnvironment({}, flex_functions.call, flex_functions.signature)
    types = [type_of(array) for array in case.inputs]
    steps = []
    for index, call in enumerate(case.calls):
        node_def = NodeDef(call.op, call.attrs, len(call.inputs))
        inputs = tuple(types[i] for i in call.inputs)
        steps.append(executor.bind(FlexNode(index, node_def, inputs, call.output_types, around)))
        types += call.output_types
    results = []
    for _ in range(case.runs):
        values = [
            executor.enter(array, type) for array, type in zip(case.inputs, types, strict=False)
        ]
        for call, step in zip(case.calls, steps, strict=True):
            with np.errstate(all="ignore"):
                made = step(*(values[i] for i in call.inputs))
            single = len(call.output_types) == 1 and not isinstance(made, list | tuple)
            values += [made] if single else list(made if call.output_types else [])
        results += [executor.leave(values[i], types[i]) for i in case.outputs]
    return results
