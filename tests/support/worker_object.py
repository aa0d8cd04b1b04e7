"""What runs in the child processes of these tests."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np

from delegraph.errors import ArgumentError, DelegateError
from delegraph.processes import messages
from delegraph.processes.parent import pipes
from delegraph.processes.worker import Worker, tell


@dataclass(frozen=True)
class Pair:
    """Record type known to the parent process."""

    name: str
    array: Any


class Served:
    def __init__(self, word: str) -> None:
        self.word = word
        self.count = 0

    def say(self, more: str) -> str:
        print("printed by Python")
        os.write(1, b"and by C\n")
        self.count += 1
        return f"{self.word} {more} {self.count}"

    def warn(self, text: str) -> None:
        logging.getLogger("delegraph.served").warning("%s", text)

    def process(self) -> int:
        return os.getpid()

    def session(self) -> int:
        return os.getsid(0)

    def give(self, value: Any) -> Any:
        return value

    def ones(self, count: int) -> Pair:
        return Pair("ones", np.ones(count, np.float32))

    def tell_from_threads(self, threads: int, messages: int) -> str:
        """Send messages with arrays from several threads at once."""

        def tell_all() -> None:
            for number in range(messages):
                tell({"number": number, "array": np.full(1000, number)})

        started = [Thread(target=tell_all) for _ in range(threads)]
        for each in started:
            each.start()
        for each in started:
            each.join()
        return "done"

    def count_to(self, last: int) -> str:
        for number in range(last):
            tell({"number": number})
        return "done"

    def crash(self) -> None:
        print("out of order", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self) -> None:
        sys.exit(3)

    def hang(self) -> None:
        time.sleep(1000)

    def refuse(self) -> None:
        raise ArgumentError("no such thing")

    def fail(self) -> None:
        raise DelegateError("broken", delegate="npu", node_index=3)

    def stumble(self) -> Any:
        return {}["nothing"]  # type: ignore[index]  # on purpose

    def babble(self, what: Any) -> None:
        answers = pipes()[1]
        if isinstance(what, bytes):
            answers.write(what)
            answers.flush()
        else:
            messages.write(answers, what)
        time.sleep(1000)

    def start_another(self, new_session: bool) -> int:
        code = "import time; time.sleep(1000)"
        found = subprocess.Popen([sys.executable, "-c", code], start_new_session=new_session)
        tell(found.pid)
        return found.pid

    def leave_another(self) -> None:
        self.start_another(new_session=True)
        os._exit(4)

    def have_child(self) -> tuple[int, int]:
        """Start a child process; return its id and the id of its own child."""
        self.child = Worker(Served, "", time_limit=60)
        return self.child.ask("process"), self.child.ask("start_another", False)


def serve_badly(code: int) -> int:
    """Print a message and return *code*: the main function of a worker that fails at its start."""
    print("all is lost\n\n", file=sys.stderr)
    return code
