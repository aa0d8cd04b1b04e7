"""Asks every kernel for far more memory than there is.

Run as a program, in a process of its own: it limits its memory, so that whatever is taken without
asking ends in a ``MemoryError``. It prints what did, a line each.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from itertools import islice

import numpy as np
from flatbuffers import flexbuffers

from delegraph import Interpreter, Limits
from delegraph.operators.flexbuffer_options import flexbuffer_value
from delegraph.schema import tables, write_model
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases import MAKERS, cases
from delegraph.testing.outputs import outputs_of

MEGABYTE = 1 << 20
LIMIT_BYTES = 8 * MEGABYTE
ROOM_BYTES = 256 * MEGABYTE
"""What a process may take beside what it has: working arrays are a few times the limit."""

HUGE = 2_000_000_000
SECONDS = 0.5

Change = tuple[str, tables.Model, tuple[np.ndarray, ...]]


class TooLongError(Exception):
    """Many small steps are no matter of memory."""


def _huge(values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "huge", np.full_like(values, HUGE)
    for i in (0, -1):
        changed = values.copy()
        changed.reshape(-1)[i] = HUGE
        yield f"huge at {i}", changed


def _huge_inputs(case: OperatorCase) -> Iterator[Change]:
    first = case.steps[0]
    for i, x in enumerate(first):
        if x.dtype in (np.int32, np.int64) and x.size:
            for name, array in _huge(x):
                yield f"input {i} {name}", case.records, (*first[:i], array, *first[i + 1 :])


def _huge_constants(case: OperatorCase) -> Iterator[Change]:
    buffers = case.records.buffers or ()
    for tensor in (case.records.subgraphs or ())[0].tensors or ():
        data = buffers[tensor.buffer].data
        if data is None or not len(data) or tensor.type.name not in ("INT32", "INT64"):
            continue
        values = np.frombuffer(bytes(data), tensor.type.name.lower())
        for name, array in _huge(values):
            changed = tables.Buffer(data=np.frombuffer(array.tobytes(), np.uint8))
            every = (*buffers[: tensor.buffer], changed, *buffers[tensor.buffer + 1 :])
            yield (
                f"constant {tensor.name} {name}",
                case.records.replace(buffers=every),
                case.steps[0],
            )


def _huge_options(case: OperatorCase) -> Iterator[Change]:
    graph, *others = case.records.subgraphs or ()
    for i, node in enumerate(graph.operators or ()):
        for slot in ("builtin_options", "builtin_options_2"):
            options = getattr(node, slot)
            for field in () if options is None else type(options).FIELDS:
                if type(getattr(options, field.name)) is not int:
                    continue
                changed = node.replace(**{slot: options.replace(**{field.name: HUGE})})
                nodes = (*graph.operators[:i], changed, *graph.operators[i + 1 :])
                graphs = (graph.replace(operators=nodes), *others)
                yield f"{field.name} huge", case.records.replace(subgraphs=graphs), case.steps[0]


def _huge_custom_options(case: OperatorCase) -> Iterator[Change]:
    graph, *others = case.records.subgraphs or ()
    for i, node in enumerate(graph.operators or ()):
        raw = node.custom_options
        options = {} if raw is None else flexbuffer_value(bytes(raw))
        for name, value in options.items() if isinstance(options, dict) else ():
            if type(value) is not int:
                continue
            changed = bytes(flexbuffers.Dumps({**options, name: HUGE}))
            node = node.replace(custom_options=np.frombuffer(changed, np.uint8))
            nodes = (*graph.operators[:i], node, *graph.operators[i + 1 :])
            graphs = (graph.replace(operators=nodes), *others)
            yield f"{name} huge", case.records.replace(subgraphs=graphs), case.steps[0]


def hostile(case: OperatorCase) -> Iterator[Change]:
    """Yield the case with sizes that nobody has the memory for."""
    yield from _huge_custom_options(case)
    yield from _huge_inputs(case)
    yield from _huge_constants(case)
    yield from _huge_options(case)


def outcome(records: tables.Model, arrays: tuple[np.ndarray, ...]) -> str:
    """Return what memory was taken without asking; empty where none was."""
    try:
        model = write_model(records)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        outputs_of(
            Interpreter(model_content=model, delegates=[], limits=Limits(memory=LIMIT_BYTES)),
            arrays,
        )
    except Exception as error:  # noqa: BLE001 - whatever else is wrong with it is no matter of memory
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError) and "limit of" not in str(error):
                return f"{type(error).__name__}: {error}"
            cause = cause.__cause__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def _stop(*_: object) -> None:
    raise TooLongError


def main() -> None:
    """Print what every kernel takes without asking."""
    signal.signal(signal.SIGALRM, _stop)
    chosen = [(op, case) for op in sorted(MAKERS) for case in islice(cases(op, count=3), 3)]
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    room = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    count = 0
    for op, case in chosen:
        for name, records, arrays in hostile(case):
            words = outcome(records, arrays)
            count += 1
            if words:
                print(f"{op}: {name}: {words}", flush=True)
    print(f"{len(MAKERS)} operators, {count} requests", flush=True)


if __name__ == "__main__":
    main()
