"""Asks every operator of the NumPy executor for far more memory than there is.

Run as a program, in a process of its own: it limits its memory, so that whatever is taken without
asking ends in a ``MemoryError``. It prints what did, a line each. ``hostile_sizes.py 0 4`` asks the
first of every four operators, by name.
"""

from __future__ import annotations

import dataclasses
import itertools
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special  # noqa: F401 - loaded before memory is limited

import flex_cases
from delegraph.operators import MemoryLimit
from delegraph_flex.data_types import DataType
from delegraph_flex.memory import LIMIT
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from delegraph_flex.numpy_executor.registry import OPERATORS
from flex_cases import Case
from flex_cases.datasets import Reading
from flex_cases.resources import F32, HANDLE, I32, Program

MEGABYTE = 1 << 20
LIMIT_BYTES = 8 * MEGABYTE
ROOM_BYTES = 256 * MEGABYTE
"""What a process may take beside what it has: working arrays are a few times the limit."""

HUGE = 2_000_000_000
LONG = 20_000
SECONDS = 0.2


class TooLongError(Exception):
    """Error: the operator takes too many small steps, which is not a matter of memory."""


def _with_input(case: Case, i: int, array: NDArray[Any]) -> Case:
    inputs = list(case.inputs)
    inputs[i] = array
    return dataclasses.replace(case, inputs=inputs)


def _along(x: NDArray[Any], axis: int, rank: int) -> NDArray[Any]:
    """Return an array with a long axis that repeats the first element of *x* without memory."""
    shape = [1] * rank
    shape[axis] = LONG
    return np.broadcast_to(x.reshape(-1)[:1].reshape([1] * rank), shape)


def _huge_numbers(case: Case) -> Iterator[tuple[str, Case]]:
    for i, x in enumerate(case.inputs):
        if x.dtype.kind in "iu" and x.size and x.dtype.itemsize >= 4:
            yield f"input {i} huge", _with_input(case, i, np.full_like(x, HUGE))
            first = x.copy()
            first.reshape(-1)[0] = HUGE
            yield f"input {i} begins huge", _with_input(case, i, first)


def _huge_attributes(case: Case) -> Iterator[tuple[str, Case]]:
    for i, call in enumerate(case.calls):
        for name, value in call.attrs.items():
            values: list[Any] = []
            if type(value) is int:
                values = [HUGE]
            elif isinstance(value, list) and value and all(type(v) is int for v in value):
                values = [[*value[:j], HUGE, *value[j + 1 :]] for j in range(len(value))]
            for huge in values:
                changed = dataclasses.replace(call, attrs={**call.attrs, name: huge})
                calls = [*case.calls[:i], changed, *case.calls[i + 1 :]]
                yield f"attribute {name} huge", dataclasses.replace(case, calls=calls)


def _crossed(case: Case) -> Iterator[tuple[str, Case]]:
    """Yield the case with two inputs whose broadcast or combination is a large matrix."""
    full = [i for i, x in enumerate(case.inputs) if x.size]
    for i, j in itertools.permutations(full[:4], 2):
        inputs = list(case.inputs)
        inputs[i], inputs[j] = _along(inputs[i], 0, 2), _along(inputs[j], 1, 2)
        yield f"inputs {i} and {j} crossed", dataclasses.replace(case, inputs=inputs)


def hostile(case: Case) -> Iterator[tuple[str, Case]]:
    """Yield the case with sizes that need more memory than any machine has."""
    yield from _huge_numbers(case)
    yield from _huge_attributes(case)
    yield from _crossed(case)
    yield from _long(case)


def _long(case: Case) -> Iterator[tuple[str, Case]]:
    """Yield the case with an input that is long in one dimension, as for a diagonal matrix."""
    for i, x in enumerate(case.inputs):
        if x.size and not x.dtype.hasobject:
            for axis in range(x.ndim):
                yield f"input {i} long", _with_input(case, i, _along(x, axis, x.ndim))


NO_SIZES = {
    "DestroyResourceOp": "gives nothing",
    "Print": "gives its input; texts are as long as inputs",
    "PrintV2": "gives nothing; texts are as long as inputs",
    "SentencepieceDetokenizeOp": "texts are as long as inputs",
    "SentencepieceOp": "holds a model that its library reads",
    "SentencepieceTokenizeOp": "pieces are no more than letters of inputs",
    "SentencepieceVocabSizeOp": "gives a number",
    "Timestamp": "gives a number",
    "WhitespaceTokenizeWithOffsets": "words are no more than letters of inputs",
}
"""Operators that have no size to ask for, and why; only they need no case."""


def own_cases() -> Iterator[Case]:
    """Yield cases of operators without recorded results of TensorFlow."""
    rows = np.ones((2, 3), np.float32)
    yield flex_cases.one("TopK", rows, out=[F32, I32], k=1, T=DataType.FLOAT32)
    p = Program("rows", x=rows, at=np.array([0, 1], np.int32))
    kind = {"dtype": DataType.FLOAT32}
    handle = p.call("VarHandleOp", out=HANDLE, shared_name=b"r", shape=(-1, -1), **kind)
    p.call("AssignVariableOp", handle, "x", **kind)
    yield p.case(p.call("ResourceGather", handle, "at", out=F32, **kind))
    p = Program("table", keys=np.array([1, 2]), default=np.ones(LONG, np.float32))
    types = {"key_dtype": DataType.INT64, "value_dtype": DataType.FLOAT32}
    table = p.call("MutableHashTableOfTensorsV2", out=HANDLE, value_shape=(LONG,), **types)
    pair = {"Tin": DataType.INT64, "Tout": DataType.FLOAT32}
    yield p.case(p.call("LookupTableFindV2", table, "keys", "default", out=F32, **pair))
    batch = Reading("batch", 0, 1 << 62, size=np.int64(9), most=np.int64(99))
    yield batch.then("BatchDataset", "size").then("TakeDataset", "most").end()


def one_case_each() -> dict[str, Case]:
    """Return a case of each operator that has one."""
    found: dict[str, Case] = {}
    for case in itertools.chain((case for _, case in flex_cases.all_cases()), own_cases()):
        for call in case.calls:
            found.setdefault(call.op, case)
    return found


def without_a_case(cases: dict[str, Case]) -> list[str]:
    """Return the operators of the executor that have no case here."""
    return sorted(OPERATORS.keys() - cases.keys() - NO_SIZES.keys())


def outcome(case: Case) -> str:
    """Return the memory that was allocated without a check of the limit; empty if none."""
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        results = flex_cases.run(case, NumpyExecutor())
    except MemoryError as error:
        return f"MemoryError: {error}"
    except Exception:  # noqa: BLE001 - whatever else is wrong with it is no matter of memory
        return ""
    finally:
        _end_timer()
    large = [list(y.shape) for y in results if y.base is None and y.nbytes > 2 * LIMIT_BYTES]
    return f"gave {large}" if large else ""


def _end_timer() -> None:
    """Stop the timer; an alarm that NumPy's loop held back until now is no error any more."""
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TooLongError:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(*_: object) -> None:
    raise TooLongError


def main() -> None:
    """Print, for each operator, the memory that it allocates without a check of the limit."""
    cases = one_case_each()
    for op in without_a_case(cases):
        print(f"{op}: no case", flush=True)
    LIMIT.set(MemoryLimit(LIMIT_BYTES, is_default=False))
    signal.signal(signal.SIGALRM, _stop)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    room = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    count = 0
    asked = sorted(cases.items())[int(sys.argv[1]) :: int(sys.argv[2])]
    for op, case in asked:
        for name, changed in hostile(case):
            words = outcome(changed)
            count += 1
            if words:
                print(f"{op}: {name}: {words}", flush=True)
    print(f"{len(asked)} operators, {count} requests", flush=True)


if __name__ == "__main__":
    main()
