"""Opens interpreters for a sweep's models, Delegraph's and the official one, with limits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.delegation.delegate import Delegate
from delegraph.errors import DelegraphError
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.options import Limits
from delegraph.schema.enums import TensorType
from delegraph.schema.reader import read_model
from delegraph.testing.conformance.differences import is_same
from delegraph.testing.sweep.judging import OFFICIAL, OURS, Announce, Run
from delegraph.testing.sweep.processor_limit import ProcessorLimit

if TYPE_CHECKING:
    from delegraph.native.litert.interpreter import LiteRtInterpreter

MEMORY_LIMIT = 64 << 20
"""Limit for tensors in bytes: large enough for interesting cases, small enough to fill quickly."""

TIME_LIMIT = 2.0
"""Seconds of processor time of a run, after which the runtime itself must stop it."""

WALL_LIMIT = 60.0
"""Seconds of elapsed time that a run may take, even on a busy machine."""


def open_ours(content: bytes, *delegates: Delegate, threads: int = 1) -> Interpreter:
    """Return Delegraph's interpreter for *content*, with limits and without default delegates."""
    return Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        delegates=delegates,
        num_threads=threads,
        limits=Limits(memory=MEMORY_LIMIT),
    )


def open_by_default(content: bytes, *, threads: int = 1) -> Interpreter:
    """Return Delegraph's interpreter for *content*, with default delegates and limits."""
    return Interpreter(
        model_content=content, num_threads=threads, limits=Limits(memory=MEMORY_LIMIT)
    )


def open_official(content: bytes) -> Any:
    """Return the official interpreter for a model file *content*, without a delegate."""
    official = interpreter_module(None)
    return official.Interpreter(
        model_content=content,
        experimental_op_resolver_type=official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        num_threads=1,
    )


def open_official_with(
    content: bytes, delegate: Delegate, *, threads: int = 1
) -> LiteRtInterpreter:
    """Return the official interpreter for *content*, with the Delegraph delegate *delegate*."""
    from delegraph.native.litert.interpreter import LiteRtInterpreter

    return LiteRtInterpreter(
        model_content=content,
        delegates=[delegate],
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        num_threads=threads,
    )


def run(
    open_it: Callable[[bytes], Any],
    content: bytes,
    invokes: int,
    feed: Callable[[Any, int], None],
    seconds: float = TIME_LIMIT,
) -> Run:
    """Open a model, feed and invoke it, and return the results.

    Args:
        open_it: function that returns an interpreter of a model file.
        content: bytes of the model file.
        invokes: number of invokes.
        feed: function that resizes, allocates and sets inputs, given the interpreter and the number
            of the invoke.
        seconds: processor time, in seconds, that the run may take.
    """
    outputs = []
    types: list[TensorType] = []
    taken: Sequence[str] = ()
    incidents: tuple[str, ...] = ()
    with ProcessorLimit(seconds, WALL_LIMIT) as limit:
        try:
            interpreter = limit.interpreter = open_it(content)
            for step in range(invokes):
                feed(interpreter, step)
                taken = taken or _taken(interpreter)
                interpreter.invoke()
                details = interpreter.get_output_details()
                outputs.append([np.array(_output(interpreter, detail)) for detail in details])
            types = [_type_of(detail["dtype"]) for detail in details]
            incidents = tuple(map(str, getattr(interpreter, "incidents", ())))
            if hasattr(interpreter, "close"):
                interpreter.close()
        except Exception as error:  # noqa: BLE001 - whatever it raises is judged
            return Run(outputs, types, limit.error_of(error), taken=taken)
    return Run(outputs, types, None, bool(taken), incidents, taken)


def _output(interpreter: Any, detail: dict[str, Any]) -> Any:
    """Return the output that *detail* describes; empty if the official interpreter has none."""
    try:
        return interpreter.get_tensor(detail["index"])
    except ValueError as error:
        if "Invalid tensor size" not in str(error):
            raise
        return np.empty(detail["shape"], detail["dtype"])


_TYPES: dict[np.dtype[Any], TensorType] = {
    np.dtype(dtype): type_ for type_, dtype in reversed(tuple(NUMPY_DTYPES.items()))
}


def _type_of(dtype: Any) -> TensorType:
    return _TYPES.get(np.dtype(dtype), TensorType.STRING)


def _taken(interpreter: Any) -> list[str]:
    """Return the operator of each node that the tested delegate took."""
    placement = getattr(interpreter, "placement", None)  # the official interpreter has none
    if placement is None:
        return []
    is_ours = isinstance(interpreter, Interpreter)  # LiteRT's own delegates are applied by default
    nodes = (node for node in placement.nodes if is_ours or not node.is_by_default)
    return [node.op for node in nodes if node.delegate is not None]


def operator_names(content: bytes) -> Sequence[str]:
    """Return the operator names in the model file *content*; empty if it cannot be read."""
    try:
        codes = read_model(np.frombuffer(content, np.uint8)).operator_codes or ()
    except DelegraphError:
        return ()
    return [str(code.custom_code or getattr(code.builtin_code, "name", "")) for code in codes]


_PERTURB = -6
"""Number of glibc's mallopt option M_PERTURB, which fills newly allocated memory with a pattern."""


def is_undefined(right: Run, run_official: Callable[[], Run], announce: Announce) -> bool:
    """Whether the official interpreter gives other results for a case if new memory differs.

    The interpreter's kernels may leave parts of outputs unwritten. To show this, glibc fills new
    memory with another pattern in each run.

    Args:
        right: results of the first run.
        run_official: function that runs the case in the official interpreter.
        announce: function that is called with the name of the phase that begins.
    """
    try:
        fill = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    announce(OFFICIAL)
    again = []
    for pattern in (0x2A, 0x55):
        fill(_PERTURB, pattern)
        again.append(run_official())
    fill(_PERTURB, 0)
    announce(OURS)
    return any(_differ(right, other) for other in again)


def _differ(a: Run, b: Run) -> bool:
    if (a.error is None) != (b.error is None) or len(a.outputs) != len(b.outputs):
        return True
    return not all(map(is_same, a.outputs, b.outputs))
