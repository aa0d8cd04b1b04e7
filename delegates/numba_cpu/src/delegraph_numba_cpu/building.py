"""Has families of kernels compiled, side by side, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from delegraph.errors import DelegateError
from delegraph_numba_cpu.cache import file_name, remove_unused, writable_folder
from delegraph_numba_cpu.cpu import CpuLevel, physical_cores
from delegraph_numba_cpu.objects import Objects, read_objects

Progress = Callable[[int, int, str], None]
"""Called with how many families are done, of how many, and which was last; at first with 0."""

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[4:]; "
    "from pathlib import Path; from delegraph_numba_cpu.compiling import compile_family; "
    "compile_family(sys.argv[1], sys.argv[2], Path(sys.argv[3]))"
)


def build(
    families: Sequence[str], level: CpuLevel, progress: Progress | None = None
) -> dict[str, Objects]:
    """Compile families, put them into the cache and return their kernels.

    Args:
        families: which.
        level: the instructions to use.
        progress: is told what is done; None for a line on standard error if that is a terminal.

    Raises:
        DelegateError: one of them cannot be compiled; the message ends with the compiler's.
    """
    if progress is None:
        with _progress_line() as tell:
            return build(families, level, tell)
    folder = writable_folder(level)
    found = {}
    progress(0, len(families), "")
    with ThreadPoolExecutor(max(2, physical_cores())) as pool:
        tasks = {pool.submit(_build_one, family, level, folder): family for family in families}
        try:
            for task in as_completed(tasks):
                found[tasks[task]] = task.result()
                progress(len(found), len(families), tasks[task])
        finally:
            pool.shutdown(cancel_futures=True)
    remove_unused()
    return found


def _build_one(family: str, level: CpuLevel, folder: Path) -> Objects:
    path = folder / file_name(family)
    if not sys.executable:
        raise DelegateError(
            "kernels cannot be compiled: sys.executable does not say where Python is; fill the "
            "cache with 'delegraph numba warmup' first"
        )
    process = subprocess.run(
        # -I: neither the environment nor the present folder has a say in what is imported.
        [sys.executable, "-I", "-c", _PROGRAM, family, level.name, str(path), *sys.path],
        env=_environment(level),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    objects = read_objects(path) if process.returncode == 0 else None
    if objects is None:
        raise DelegateError(_failure(family, level, process.returncode, process.stdout))
    return objects


def _environment(level: CpuLevel) -> dict[str, str]:
    """Return the environment in which Numba compiles for a level.

    The user's settings for Numba are not for these kernels: some would disable the compiler.
    """
    settings = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    if level.target:
        settings["NUMBA_CPU_NAME"] = level.target
        settings["NUMBA_CPU_FEATURES"] = ",".join(f"+{feature}" for feature in level.needs)
    return settings


def _failure(family: str, level: CpuLevel, code: int, output: str) -> str:
    """Return what went wrong and what to do about it, on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    aborts = [line for line in lines if line.startswith("LLVM ERROR")]
    reason = (aborts or lines[-1:] or [f"the compiler ended with {code}"])[0]
    if level.name == "generic":
        remedy = "please report this with the versions of numba and llvmlite"
    else:
        remedy = "the option cpu=generic needs no special instructions"
    return f"the kernels {family!r} cannot be compiled for {level.name}; {remedy}: {reason}"


@contextmanager
def _progress_line() -> Iterator[Progress]:
    """Yield what keeps a line on standard error up to date, and removes it at the end."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total, family: None
        return

    def tell(done: int, total: int, family: str) -> None:
        text = f"numba_cpu: compiling kernels for this processor, once: {done} of {total}"
        print(f"\r{text}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
