"""Contract check: a kernel releases its resources when its interpreter is closed."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path

from delegraph.testing.conformance.kernel_observer import KernelWatch, WatchedDelegate
from delegraph.testing.conformance.sample_models import specimens
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, open_interpreter
from delegraph.testing.outputs import outputs_of

_PROC = Path("/proc/self")


def nothing_is_left_behind(subject: Subject) -> None:
    """Check that closed interpreters leave no kernel, thread, process or open file.

    Resources that all interpreters share may stay, such as a pool of threads.
    """
    trial, times = specimens(subject)[0], subject.effort.reopenings
    _used(subject, trial)
    before = _held()
    kernels = [kernel for _ in range(times) for kernel in _used(subject, trial)]
    after = _held()
    for what, count in after.items():
        if count - before[what] >= times:
            raise AssertionError(
                f"{count - before[what]} more {what} after {times} interpreters were closed; "
                f"release them in the kernel's close()\n  model: {trial.case}"
            )
    if kernels and all(kernel() is not None for kernel in kernels):
        raise AssertionError(
            f"the kernels of {times} closed interpreters are still in memory; let nothing outside "
            f"of them keep them: no list, cache or callback\n  model: {trial.case}"
        )


def _used(subject: Subject, trial: Trial) -> list[weakref.ref[object]]:
    """Run a trial in an interpreter and close it; return weak references to its kernels."""
    watch = KernelWatch()
    with open_interpreter(trial.case, WatchedDelegate(subject.make(), watch)) as interpreter:
        outputs_of(interpreter, trial.case.steps[0])
    found = [weakref.ref(kernel) for kernel in watch.kernels if hasattr(kernel, "__weakref__")]
    del watch, interpreter
    gc.collect()
    return found


def _held() -> Mapping[str, int]:
    """Return the numbers of threads, open files and child processes of this process."""
    if not _PROC.exists():
        return {"threads": threading.active_count()}
    tasks = list((_PROC / "task").iterdir())
    children = [(task / "children") for task in tasks]
    return {
        "threads": len(tasks),
        "open files": len(list((_PROC / "fd").iterdir())),
        "processes": sum(len(c.read_text().split()) for c in children if c.exists()),
    }
