"""Has families of kernels compiled, by as many processes as there are cores."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

from delegraph.errors import DelegateError
from delegraph_numba_cpu.cache import file_name, remove_unused, writable_folder
from delegraph_numba_cpu.compiling import DONE
from delegraph_numba_cpu.cpu import CpuLevel, physical_cores
from delegraph_numba_cpu.families import source_size
from delegraph_numba_cpu.objects import Objects, read_objects

Progress = Callable[[int, int, str], None]
"""Called with how many families are done, of how many, and which was last; at first with 0."""

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from delegraph_numba_cpu.compiling import serve; serve(sys.argv[1])"
)

_ERROR = re.compile(r"LLVM ERROR|[\w.]*(Error|Exception)\b")


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
    count = min(len(families), physical_cores())
    with ExitStack() as stack, ThreadPoolExecutor(count) as threads:
        compilers = [stack.enter_context(_Compiler(level, folder)) for _ in range(count)]
        idle: SimpleQueue[_Compiler] = SimpleQueue()
        for compiler in compilers:
            idle.put(compiler)

        def compile_one(family: str) -> Objects:
            compiler = idle.get()
            try:
                return compiler.compile(family)
            finally:
                idle.put(compiler)

        largest_first = sorted(families, key=source_size, reverse=True)
        tasks = {threads.submit(compile_one, family): family for family in largest_first}
        try:
            for task in as_completed(tasks):
                found[tasks[task]] = task.result()
                progress(len(found), len(families), tasks[task])
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for compiler in compilers:
                compiler.kill()  # so that the threads need not wait for the rest
            raise
    remove_unused()
    return found


class _Compiler:
    """A process that compiles one family after another; for ``with``.

    Importing Numba and its first compilation take a second, which families share this way.
    """

    def __init__(self, level: CpuLevel, folder: Path) -> None:
        self._level, self._folder = level, folder

    def __enter__(self) -> _Compiler:
        if not sys.executable:
            raise DelegateError(
                "kernels cannot be compiled: sys.executable does not say where Python is; fill "
                "the cache with 'delegraph numba warmup' first"
            )
        self._errors = tempfile.TemporaryFile("w+", errors="replace")
        self._process = subprocess.Popen(
            # -I: neither the environment nor the present folder has a say in what is imported.
            [
                sys.executable,
                "-I",
                "-X",
                "utf8",
                "-c",
                _PROGRAM,
                self._level.name,
                *map(str, sys.path),
            ],
            env=_environment(self._level),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        return self

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # it is gone already
            self._process.communicate()
        self._errors.close()

    def compile(self, family: str) -> Objects:
        """Compile one family into its file and return its kernels.

        Raises:
            DelegateError: it cannot be compiled; the process is gone.
        """
        path = self._folder / file_name(family)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # then it says why below
            self._process.stdin.write(f"{family}\t{path}\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.strip() == DONE + family:
                break
        objects = read_objects(path)
        if objects is None:
            raise DelegateError(self._failure(family))
        return objects

    def _failure(self, family: str) -> str:
        """Return what went wrong and what to do about it, on one line."""
        code = self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors if line.strip()]
        errors = [line for line in lines if _ERROR.match(line)]
        reason = (errors or lines or [f"the compiler ended with {code}"])[-1]
        if self._level.name == "generic":
            remedy = "please report this with the versions of numba and llvmlite"
        else:
            remedy = "the option cpu=generic needs no special instructions"
        name = self._level.name
        return f"the kernels {family!r} cannot be compiled for {name}; {remedy}: {reason}"


def _environment(level: CpuLevel) -> dict[str, str]:
    """Return the environment in which Numba compiles for a level.

    The user's settings for Numba are not for these kernels: some would disable the compiler.
    """
    settings = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    if level.target:
        settings["NUMBA_CPU_NAME"] = level.target
        settings["NUMBA_CPU_FEATURES"] = ",".join(f"+{feature}" for feature in level.features())
    return settings


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
