"""A worker for a process of probes that does what it is told."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from typing import Any

from delegraph.errors import ArgumentError, DelegateError


class ProbeWorker:
    def __init__(self, word: str) -> None:
        self.word = word
        self.count = 0

    def say(self, more: str) -> str:
        print("what a delegate prints")
        os.write(1, b"and what C prints\n")
        self.count += 1
        return f"{self.word} {more} {self.count}"

    def process(self) -> int:
        return os.getpid()

    def crash(self) -> None:
        faulthandler.disable()  # whose report would stand among those of the tests
        os.kill(os.getpid(), signal.SIGSEGV)

    def leave(self) -> None:
        sys.exit(3)

    def hang(self) -> None:
        ctypes.PyDLL(None).pause()

    def refuse(self) -> None:
        raise ArgumentError("no such thing")

    def fail(self) -> None:
        raise DelegateError("broken", delegate="npu", node_index=3)

    def stumble(self) -> Any:
        return {}["nothing"]  # type: ignore[index]  # on purpose
