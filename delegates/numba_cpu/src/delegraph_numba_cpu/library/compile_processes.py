"""Processes that compile families of kernels in parallel; see ``codegen/compiling.py``.

They are not started by ``delegraph.processes``: this module also runs while a wheel is built,
where the core is not installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue

from delegraph_numba_cpu.codegen.compiling import ANSWER
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.codegen.host_platform import host_machine
from delegraph_numba_cpu.library.families import source_size

Progress = Callable[[int, int, str], None]
"""Function that gets the number of compiled families, the number of all families, and the name of
the last compiled family.

It is first called with the number 0.
"""

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from delegraph_numba_cpu.codegen.compiling import serve; serve(*sys.argv[1:3])"
)

_LINES_KEPT = 1000
"""Number of last lines of a compiler's output that are kept."""

_ERROR = re.compile(r"LLVM ERROR|[\w.]*(Error|Exception)\b")


class CompileError(RuntimeError):
    """A family cannot be compiled; the compiler's message ends the text."""


def run_linker(command: Sequence[str], folder: Path) -> None:
    """Run a linker as a child process.

    Args:
        command: command line of the linker.
        folder: folder in which it runs.

    Raises:
        CompileError: the linker fails; its message is in the text.
    """
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise CompileError(f"{command[0]} cannot link the kernels: {ran.stderr.strip()}")


def compile_side_by_side(
    families: Sequence[str],
    level: CpuLevel,
    processes: int,
    make: Callable[[str, Callable[[], bytes]], bytes],
    done: Callable[[str], None],
    machine: str | None = None,
) -> dict[str, bytes]:
    """Compile families of kernels in parallel processes, and return the object code of each.

    The largest families are compiled first.

    Args:
        families: names of the families.
        level: instruction set of the processor that the kernels may use, such as ``avx2``.
        processes: number of processes.
        make: function, called in a thread, that gets a family's name and a function that compiles
            it. It returns the family's object code, compiled or from elsewhere.
        done: function that gets the name of each compiled family.
        machine: the target's type of processor, as ``host_platform`` names it; None for this
            machine.

    Raises:
        CompileError: a family cannot be compiled.
    """
    found = {}
    count = min(len(families), processes)
    with ExitStack() as stack, ThreadPoolExecutor(count) as threads:
        target = machine or host_machine()
        compilers = [stack.enter_context(Compiler(level, target)) for _ in range(count)]
        idle: SimpleQueue[Compiler] = SimpleQueue()
        for compiler in compilers:
            idle.put(compiler)

        def compile_one(family: str) -> bytes:
            compiler = idle.get()
            try:
                return make(family, lambda: compiler.compile(family))
            finally:
                idle.put(compiler)

        largest_first = sorted(families, key=source_size, reverse=True)
        tasks = {threads.submit(compile_one, family): family for family in largest_first}
        try:
            for task in as_completed(tasks):
                found[tasks[task]] = task.result()
                done(tasks[task])
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for compiler in compilers:
                compiler.kill()  # its thread need not wait for the family in progress
            raise
    return found


class Compiler:
    """A process that compiles families one by one; a context manager.

    Importing Numba and a first compilation take a second, which families share in this way. The
    process starts with the first family. It writes no files, so that a full disk does not stop it.
    """

    def __init__(self, level: CpuLevel, machine: str) -> None:
        self._level, self._machine = level, machine
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False

    def __enter__(self) -> Compiler:
        return self

    def _started(self) -> subprocess.Popen[bytes]:
        if not sys.executable:
            raise CompileError(
                "kernels cannot be compiled: sys.executable does not say where Python is; fill "
                "the cache with 'delegraph numba warmup' first"
            )
        process = subprocess.Popen(
            # -I: the environment and the present folder have no influence on what is imported.
            [
                sys.executable,
                "-I",
                "-X",
                "utf8",
                "-c",
                _PROGRAM,
                self._level.name,
                self._machine,
                *map(str, sys.path),
            ],
            env=_environment(self._level),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._errors: deque[bytes] = deque(maxlen=_LINES_KEPT)
        assert process.stderr is not None
        self._listener = threading.Thread(
            target=self._errors.extend, args=[process.stderr], daemon=True
        )
        self._listener.start()
        self._process = process
        if self._is_killed:  # :meth:`kill` was called meanwhile
            process.kill()
        return process

    def kill(self) -> None:
        """Kill the process, and prevent the start of another one."""
        self._is_killed = True
        if self._process is not None:
            self._process.kill()

    def __exit__(self, *error: object) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):  # the process has ended already
            process.stdin.close()
        process.wait()
        self._listener.join()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()

    def compile(self, family: str) -> bytes:
        """Compile one family of kernels and return its object code.

        Raises:
            CompileError: the family cannot be compiled; the process has ended.
        """
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # the process has ended; its output is reported below
            process.stdin.write(f"{family}\n".encode())
            process.stdin.flush()
        for line in process.stdout:  # Python's start may have printed lines before the answer
            if line.startswith(ANSWER):
                size = int(line[len(ANSWER) :])
                packed = process.stdout.read(size)
                if len(packed) == size:
                    return packed
        raise CompileError(self._failure(process, family))

    def _failure(self, process: subprocess.Popen[bytes], family: str) -> str:
        """Return an error message, on one line, for a process that ended without the family."""
        code = process.wait()
        self._listener.join()
        lines = [line.decode(errors="replace").strip() for line in self._errors if line.strip()]
        errors = [line for line in lines if _ERROR.match(line)]
        reason = (errors or lines or [f"the compiler ended with {code}"])[-1]
        if self._level.name == "generic":
            remedy = "please report this with the versions of numba and llvmlite"
        else:
            remedy = "the option cpu=generic needs no special instructions"
        name = self._level.name
        return f"the kernels {family!r} cannot be compiled for {name}; {remedy}: {reason}"


def _environment(level: CpuLevel) -> dict[str, str]:
    """Return the environment variables for a process that compiles kernels.

    The user's settings for Numba are removed: some would disable the compiler.
    """
    settings = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    settings["NUMBA_CPU_NAME"] = level.target
    settings["NUMBA_CPU_FEATURES"] = ",".join(f"+{feature}" for feature in level.needs)
    return settings
