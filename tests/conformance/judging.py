"""Whether Delegraph and the official interpreter agree on a case, found out in a child process.

The official interpreter may crash on a case, so it runs in a child that is replaced when it dies.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter

PERTURB = -6
"""M_PERTURB of glibc's mallopt: fill memory that is allocated."""

TIME_LIMIT = 60.0
"""Seconds after which a case counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """Result of an interpreter for a case: outputs of each step, or the error."""

    outputs: list[list[NDArray[Any]]] | None
    error: BaseException | None = None
    stage: str = ""

    @property
    def is_refusal(self) -> bool:
        return self.error is not None


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case.

    Attributes:
        passed: whether Delegraph does what the official interpreter does.
        kind: ``same``, ``refused`` by both, ``crash`` of the official one, ``undefined`` where the
            official one leaves its output unwritten, ``absent`` where the kernels followed lack
            the operator, ``listed`` where docs/differences.md says why, or what is wrong.
        detail: what differs, in words.
        apart: how the other official kernels differ from those followed; empty if they agree.
    """

    passed: bool
    kind: str
    detail: str = ""
    apart: str = ""


@dataclass(frozen=True)
class Task:
    """A request to the child process."""

    model: bytes
    steps: Sequence[Sequence[NDArray[Any]]]
    is_random: bool = False
    tolerance: float = 1e-5
    numerics: str = "builtin"
    differs: bool = False


KERNELS = {"builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "reference": "BUILTIN_REF"}
"""The official kernels that each profile of Delegraph follows."""


def ours(numerics: str) -> Callable[[bytes], Any]:
    return lambda model: Interpreter(model_content=model, numerics=numerics)


def official(kernels: str) -> Callable[[bytes], Any]:
    from ai_edge_litert import interpreter as litert  # no wheel for every Python

    return lambda model: litert.Interpreter(
        model_content=model,
        experimental_op_resolver_type=litert.OpResolverType[kernels],
        num_threads=1,
    )


def outcome(make: Callable[[bytes], Any], task: Task) -> Outcome:
    """Return the outcome of an interpreter for a case."""
    stage = "load"
    try:
        interpreter = make(task.model)
        stage = "allocate"
        details = interpreter.get_input_details()
        for detail, array in zip(details, task.steps[0], strict=True):
            if tuple(detail["shape"]) != array.shape:
                interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        stage = "invoke"
        return Outcome([_invoke(interpreter, details, arrays) for arrays in task.steps])
    except Exception as error:  # noqa: BLE001 - whatever it raises is the outcome
        return Outcome(None, error, stage)


def _invoke(interpreter: Any, details: Any, arrays: Any) -> list[NDArray[Any]]:
    for detail, array in zip(details, arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [_read(interpreter, detail) for detail in interpreter.get_output_details()]


def _read(interpreter: Any, detail: Any) -> NDArray[Any]:
    """Return an output; the official interpreter has no array for an empty dynamic one."""
    try:
        return np.array(interpreter.get_tensor(detail["index"]))
    except ValueError as error:
        if "Invalid tensor size" not in str(error):
            raise
        return np.empty(detail["shape"], detail["dtype"])


def difference(mine: Outcome, theirs: Outcome, task: Task) -> str:
    """Return a description of the difference between two outcomes; empty if there is none."""
    if mine.is_refusal != theirs.is_refusal:
        who = "refused" if mine.is_refusal else "accepted"
        at = mine if mine.is_refusal else theirs
        return f"{who} alone, at {at.stage}: {str(at.error).strip()[-160:]!r}"
    if mine.outputs is None or theirs.outputs is None:
        return ""
    for step, pair in enumerate(zip(mine.outputs, theirs.outputs, strict=True)):
        for i, (a, b) in enumerate(zip(*pair, strict=True)):
            found = _array_difference(a, b, task)
            if found:
                return f"output {i}, step {step}: {found}"
    return ""


def _array_difference(a: NDArray[Any], b: NDArray[Any], task: Task) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape}, expected {b.shape}"
    if a.dtype.kind not in "OS" and a.dtype != b.dtype:
        return f"dtype {a.dtype}, expected {b.dtype}"
    if task.is_random:
        return ""
    if a.dtype.kind in "OS":
        same = np.array([x == y for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)], bool)
    elif a.dtype.kind in "biu":
        same = (a == b).reshape(-1)
    else:
        same = _close(a, b, task.tolerance).reshape(-1)
    if same.all():
        return ""
    first = int(np.flatnonzero(~same)[0])
    x, y = a.reshape(-1)[first], b.reshape(-1)[first]
    place = np.unravel_index(first, a.shape)
    return f"{int((~same).sum())} of {a.size} differ, at {list(map(int, place))}: {x!r}, not {y!r}"


def _close(a: NDArray[Any], b: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Whether floats agree: to *tolerance*, or to a tenth of it relative to the largest."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    half = a.dtype.itemsize == 2
    a, b = a.astype(wide), b.astype(wide)
    relative = max(tolerance, 2**-7 if half else 0)
    finite = np.abs(b[np.isfinite(b)])
    largest = float(finite.max()) if finite.size else 0.0
    with np.errstate(all="ignore"):
        return np.isclose(a, b, relative, relative / 10 * max(1.0, min(largest, 1e30)), True)


def judge(task: Task, report: Callable[[str], None] = lambda stage: None) -> Verdict:
    """Return the verdict on a case; *report* is called before each interpreter runs."""
    report("ours")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine = outcome(ours(task.numerics), task)
    if mine.error is not None and not isinstance(mine.error, ValueError | RuntimeError):
        return Verdict(False, "error", f"{type(mine.error).__name__} at {mine.stage}: {mine.error}")
    official_outcomes = {}
    for numerics, kernels in KERNELS.items():
        report(f"official {numerics}")
        official_outcomes[numerics] = outcome(official(kernels), task)
    followed = official_outcomes.pop(task.numerics)
    (other,) = official_outcomes.values()
    if any(text in str(followed.error) for text in ("Didn't find op", "unresolved custom op")):
        return Verdict(True, "absent")  # the reference kernels lack some operators and versions
    found = verdict(mine, followed, other, task)
    if task.differs and not mine.is_refusal:
        return Verdict(True, "listed", found.detail)
    if not found.passed and not mine.is_refusal and _is_undefined(task):
        return Verdict(True, "undefined", found.detail)
    return found


def _is_undefined(task: Task) -> bool:
    """Whether the official kernel leaves parts of its outputs unwritten.

    It runs twice in memory that is filled with different bytes; only where the C library can do
    that (glibc) is anything found out.
    """
    try:
        fill = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    runs = []
    for pattern in (0x2A, 0x55):
        fill(PERTURB, pattern)
        runs.append(outcome(official(KERNELS[task.numerics]), task))
    fill(PERTURB, 0)
    return bool(difference(*runs, task))


def verdict(mine: Outcome, followed: Outcome, other: Outcome, task: Task) -> Verdict:
    """Return the verdict; floats may also be those of the other set of official kernels."""
    apart = difference(other, followed, task)
    wrong = difference(mine, followed, task)
    if (wrong and not _has_floats(followed)) or mine.is_refusal != followed.is_refusal:
        kind = wrong.split(",")[0] if "alone" in wrong else "differs"
        return Verdict(False, kind, wrong, apart)
    if wrong and difference(mine, other, task):
        return Verdict(False, "differs", wrong, apart)
    return Verdict(True, "refused" if followed.is_refusal else "same", "", apart)


def _has_floats(found: Outcome) -> bool:
    outputs = found.outputs or [[]]
    return any(array.dtype.kind in "fcV" for array in outputs[0])


def _serve(connection: Any) -> None:
    """Judge the tasks from *connection* until it closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the official runtime reports errors there
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(judge(task, connection.send))


class Judge:
    """Child process that judges cases; it is replaced when a case kills it."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self.process: Any = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def __call__(self, task: Task) -> Verdict:
        """Return the verdict on a case, even if the case kills the child process."""
        if self.process is None:
            self._start()
        self._connection.send(task)
        stage = "ours"
        try:
            while self._connection.poll(TIME_LIMIT):
                message = self._connection.recv()
                if isinstance(message, Verdict):
                    return message
                stage = message
            end = "hangs"
        except (EOFError, ConnectionError):
            end = "crashes"
        self._stop()
        if stage == "ours":
            return Verdict(False, end, f"Delegraph {end}")
        return Verdict(True, "crash", f"{stage} {end}")

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self.process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _stop(self) -> None:
        if self.process is not None:
            self._connection.close()
            self.process.kill()
            self.process.join()
            self.process = None
