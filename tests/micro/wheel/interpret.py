"""Runs cases in the interpreter of the wheel `tflite-micro`, each in a process of its own.

python tests/micro/wheel/interpret.py CASES.pickle RESULTS.pickle

Needs the wheel and NumPy, and nothing of Delegraph. A case is a model and steps; a step is the
arrays for the inputs, or "reset". A result is the outputs of each invoke, or the error in words.
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from pathlib import Path

import numpy as np
from tflite_micro.python.tflite_micro import runtime

ARENA_BYTES = 1 << 22
SECONDS = 20.0


def outputs_of(model, steps):
    """Return the outputs of each invoke."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
    results = []
    for step in steps:
        if isinstance(step, str):
            interpreter.reset()
            continue
        for i, array in enumerate(step):
            interpreter.set_input(array, i)
        interpreter.invoke()
        results.append(all_outputs(interpreter))
    return results


def all_outputs(interpreter):
    outputs = []
    while True:
        try:
            outputs.append(np.array(interpreter.get_output(len(outputs))))
        except IndexError:
            return outputs


def serve(connection):
    """Answer cases until the connection closes."""
    while True:
        try:
            model, steps = connection.recv()
        except EOFError:
            return
        try:
            result = outputs_of(model, steps)
        except (RuntimeError, ValueError, IndexError) as error:
            result = f"{type(error).__name__}: {error}"
        connection.send(result)


def run_all(cases):
    """Return the result of each case; a crash is told as one."""
    results, process = [], None
    for case in cases:
        if process is None:
            mine, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
        try:
            mine.send(case)
            answered = mine.poll(SECONDS)
            results.append(mine.recv() if answered else "hangs")
        except (EOFError, ConnectionError):
            answered = False
            results.append("crashes")
        if not answered:
            process.kill()
            process = None
    return results


if __name__ == "__main__":
    cases = pickle.loads(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_bytes(pickle.dumps(run_all(cases)))
