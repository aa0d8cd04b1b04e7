"""Runs ``delegraph`` in forks of one process that has imported it, so that a start costs little.

Each line of standard input is a request: a JSON object with ``words``, ``environment``, ``folder``,
the present one, and ``output``, a folder for the files ``out`` and ``err``. The answer is a line
with the exit code.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import delegraph.cli
import delegraph.cli.answers.printing
import delegraph.plugins.plugin_set
import delegraph.runtime.interpreter


def serve() -> None:
    """Answer requests until standard input ends."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for line in requests:
        child = os.fork()
        if not child:
            answers.close()
            requests.close()
            sys.exit(run(json.loads(line)))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, file=answers, flush=True)


def run(request: dict[str, Any]) -> int:
    """Run the command in this process, and return its exit code."""
    for number, name in enumerate((os.devnull, "out", "err")):
        path = Path(request["output"], name)
        file = os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:1] = [request["folder"], *os.environ["PYTHONPATH"].split(os.pathsep)]
    sys.argv = ["delegraph", *request["words"]]
    return delegraph.cli.main()


if __name__ == "__main__":
    serve()
