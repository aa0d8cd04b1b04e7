"""Running without NumPy's warnings about float errors.

``np.errstate`` makes a new state each time. NumPy 2 keeps the state in a context variable; this
module sets the variable to one state that is made once. Setting, computing and reading an ADD of 4
numbers by the core's kernels takes 3.3 µs this way, 3.7 µs (10 % more) with ``np.errstate`` as a
decorator, and 4.2 µs as a ``with`` statement: medians of 3,000 interleaved runs, NumPy 2.4. A
context made once and entered by ``Context.run`` is as fast, and hides the caller's own context
variables.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

import numpy as np

Work = TypeVar("Work", bound=Callable[..., Any])


def ignoring_float_errors(work: Work) -> Work:
    """Return *work* wrapped so that float errors raise no error and give no warning, as in C."""

    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return work(*args)

    def run_in_state(*args: Any) -> Any:
        token = variable.set(state)
        try:
            return work(*args)
        finally:
            variable.reset(token)

    found = ignoring_state()
    if found is None:
        return run  # type: ignore[return-value]  # same arguments and result
    variable, state = found
    return run_in_state  # type: ignore[return-value]  # same arguments and result


@cache
def ignoring_state() -> tuple[ContextVar[Any], Any] | None:
    """Return NumPy's context variable for float errors and its value that ignores them.

    NumPy 1 keeps the state elsewhere; the function returns None there.
    """
    before, after = copy_context(), copy_context()
    after.run(np.seterr, all="ignore")
    changed = [(var, state) for var, state in after.items() if before.get(var) is not state]
    return changed[0] if len(changed) == 1 else None
