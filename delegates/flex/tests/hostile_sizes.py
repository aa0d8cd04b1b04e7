"""Asks every operator of the NumPy executor for far more memory than there is.

Run as a program, in a process of its own: it limits its memory, so that whatever is taken without
asking ends in a ``MemoryError``. It prints what did, a line each.
"""

from __future__ import annotations

import dataclasses
import itertools
import resource
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special  # noqa: F401 - loaded before memory is limited

import flex_cases
from delegraph.operators.memory_limit import MemoryLimit
from delegraph_flex.memory import LIMIT
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from flex_cases import Case

MEGABYTE = 1 << 20
LIMIT_BYTES = 8 * MEGABYTE
ROOM_BYTES = 256 * MEGABYTE
"""What a process may take beside what it has: working arrays are a few times the limit."""

HUGE = 2_000_000_000
LONG = 20_000
SECONDS = 0.5


class TooLongError(Exception):
    """Many small steps are no matter of memory."""


def _with_input(case: Case, i: int, array: NDArray[Any]) -> Case:
    inputs = list(case.inputs)
    inputs[i] = array
    return dataclasses.replace(case, inputs=inputs)


def _along(x: NDArray[Any], axis: int, rank: int) -> NDArray[Any]:
    """Return the first element of *x* as a long axis of an array, in no memory of its own."""
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
    """Yield the case with two inputs that broadcast, or combine, to a large matrix."""
    full = [i for i, x in enumerate(case.inputs) if x.size]
    for i, j in itertools.permutations(full[:4], 2):
        inputs = list(case.inputs)
        inputs[i], inputs[j] = _along(inputs[i], 0, 2), _along(inputs[j], 1, 2)
        yield f"inputs {i} and {j} crossed", dataclasses.replace(case, inputs=inputs)


def hostile(case: Case) -> Iterator[tuple[str, Case]]:
    """Yield the case with sizes that nobody has the memory for."""
    yield from _huge_numbers(case)
    yield from _huge_attributes(case)
    yield from _crossed(case)


def one_case_each() -> dict[str, Case]:
    """Return a case of every operator that has one."""
    found: dict[str, Case] = {}
    for _, case in flex_cases.all_cases():
        for call in case.calls:
            found.setdefault(call.op, case)
    return found


def outcome(case: Case) -> str:
    """Return what memory was taken without asking; empty where none was."""
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        results = flex_cases.run(case, NumpyExecutor())
        signal.setitimer(signal.ITIMER_REAL, 0)
    except MemoryError as error:
        return f"MemoryError: {error}"
    except Exception:  # noqa: BLE001 - whatever else is wrong with it is no matter of memory
        return ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    large = [list(y.shape) for y in results if y.base is None and y.nbytes > 2 * LIMIT_BYTES]
    return f"gave {large}" if large else ""


def _stop(*_: object) -> None:
    raise TooLongError


def main() -> None:
    """Print what every operator takes without asking."""
    cases = one_case_each()
    LIMIT.set(MemoryLimit(LIMIT_BYTES, is_default=False))
    signal.signal(signal.SIGALRM, _stop)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    room = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    count = 0
    for op, case in sorted(cases.items()):
        for name, changed in hostile(case):
            words = outcome(changed)
            count += 1
            if words:
                print(f"{op}: {name}: {words}", flush=True)
    print(f"{len(cases)} operators, {count} requests", flush=True)


if __name__ == "__main__":
    main()
