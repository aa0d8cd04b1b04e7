"""What a check of docs/differences.md is, and running a model in both interpreters.

An entry of the page and its check have the same name, and the module of the check is named for the
entry's section. A check returns what both sides make of one thing, ours first::

    @difference("rfft2d-of-width-1")
    def _():
        return both(model, [x])

A check of several cases returns a list of such pairs; each of them must differ.

Where the other side is not a model's run, a check does it by itself, and imports the official
package inside the function; the test skips it where ``beside`` is not installed::

    @difference("window-of-odd-length", beside="tflite_micro")
    def _():
        from tflite_micro import runtime
        ...
        return attempt(lambda: ours.invoke()), attempt(lambda: theirs.invoke())
"""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.testing.outputs import outputs_of

REFUSED = "refused"
CRASHED = "crashed"
TIME_LIMIT = 60.0
"""Seconds after which the official interpreter counts as crashed."""

TOLERANCE = 1e-5
"""Of floats, relative and absolute: less is rounding, and no difference."""

Sides = tuple[Any, Any]
Shows = Callable[[], "Sides | list[Sides]"]
Inputs = Sequence[NDArray[Any]]


@dataclass(frozen=True)
class Check:
    """Check of a difference: *sides* returns Delegraph's results and those of *beside*."""

    section: str
    beside: str
    sides: Shows

    def pairs(self) -> list[Sides]:
        """Return the pairs of results of each case, Delegraph's first."""
        found = self.sides()
        return found if isinstance(found, list) else [found]


CHECKS: dict[str, Check] = {}
"""By the names of their entries."""


def difference(name: str, *, beside: str = "ai_edge_litert") -> Callable[[Shows], Shows]:
    """Decorator that makes a function the check of an entry; see the module."""

    def register(sides: Shows) -> Shows:
        if name in CHECKS:
            raise ValueError(f"there are two checks named {name!r}")
        CHECKS[name] = Check(sides.__module__.rpartition(".")[2], beside, sides)
        return sides

    return register


def attempt(action: Callable[[], Any]) -> Any:
    """Return the result of *action*, or the name of the builtin type of the error."""
    try:
        return action()
    except (ImportError, NameError):  # a mistake in the check, which would pass for a difference
        raise
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        return next(t for t in type(error).__mro__ if t.__module__ == "builtins").__name__


def both(model: bytes, *steps: Inputs, numerics: str = "builtin") -> Sides:
    """Return the results of Delegraph and of LiteRT for a model, without delegates.

    Args:
        model: a ``.tflite`` file.
        steps: the inputs of each invoke, as arrays; other shapes than declared resize.
        numerics: which of LiteRT's kernels to run: builtin or reference.

    Returns:
        For each side the outputs of each step, or ``"refused"``, or ``"crashed"``.
    """
    return outputs(model, steps, numerics), litert_outputs(model, steps, numerics)


def outputs(model: bytes, steps: Sequence[Inputs], numerics: str = "builtin") -> Any:
    """Return Delegraph's result, like :func:`both`."""
    return _run(lambda: Interpreter(model_content=model, numerics=numerics), steps)


def litert_outputs(model: bytes, steps: Sequence[Inputs], numerics: str = "builtin") -> Any:
    """Return LiteRT's result, like :func:`both`, from a child process, as it may crash."""
    return in_a_child(_litert_outputs, model, steps, numerics)


def in_a_child(work: Callable[..., Any], *given: Any) -> Any:
    """Return the result of a module's function in a child process; ``"crashed"`` if it dies.

    Args:
        work: the function; it and what it gets and gives must be picklable.
        given: its arguments.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ai_edge_litert.interpreter", "delegraph.testing.outputs"])
    mine, its = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(its, work, *given), daemon=True)
    child.start()
    its.close()
    try:
        return mine.recv() if mine.poll(TIME_LIMIT) else CRASHED
    except EOFError:
        return CRASHED
    finally:
        mine.close()
        child.kill()
        child.join()


def _serve(connection: Any, work: Callable[..., Any], *given: Any) -> None:
    fill_memory()
    connection.send(work(*given))


def fill_memory() -> None:
    """Let later allocations be filled with nonzero bytes, to show unwritten ones; glibc only."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(-6, 0x2A)  # M_PERTURB


def _litert_outputs(model: bytes, steps: Sequence[Inputs], numerics: str) -> Any:
    from ai_edge_litert.interpreter import Interpreter as LiteRt
    from ai_edge_litert.interpreter import OpResolverType

    kernels = {"builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "reference": "BUILTIN_REF"}
    return _run(
        lambda: LiteRt(
            model_content=model,
            experimental_op_resolver_type=OpResolverType[kernels[numerics]],
            num_threads=1,
        ),
        steps,
    )


def _run(make: Callable[[], Any], steps: Sequence[Inputs]) -> Any:
    try:
        interpreter = make()
        return [outputs_of(interpreter, inputs) for inputs in steps]
    except (RuntimeError, ValueError):
        return REFUSED


def agree(mine: Any, theirs: Any) -> bool:
    """Whether both sides agree: integers exactly, floats except for rounding.

    >>> agree([np.float32([1, 2])], [np.float32([1, 2.000001])]), agree("refused", [1])
    (True, False)
    """
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        return _arrays_agree(mine, theirs)
    if isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        return len(mine) == len(theirs) and all(map(agree, mine, theirs))
    return bool(type(mine) is type(theirs) and mine == theirs)


def _arrays_agree(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return False
    if mine.dtype.kind in "biuOSU":
        return bool((mine == theirs).all())
    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        close = np.isclose(mine.astype(wide), theirs.astype(wide), TOLERANCE, TOLERANCE, True)
    return bool(close.all())
