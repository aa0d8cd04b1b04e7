"""Runs models by TensorFlow 2.18.1's interpreter: ``python interpret.py FOLDER``.

It is the last one with Flex. Writes the outputs of each model into ``NAME.golden.npz``, or the
error into ``NAME.golden.txt``.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from packed_arrays import load, pack, save, unpack


def main(folder: Path) -> None:
    """Run every model of a folder."""
    for path in sorted(folder.glob("*.tflite")):
        golden, failure = path.with_suffix(".golden.npz"), path.with_suffix(".golden.txt")
        golden.unlink(missing_ok=True)
        failure.unlink(missing_ok=True)
        # In a process of its own: a failed check in TensorFlow ends the process.
        process = multiprocessing.get_context("fork").Process(
            target=_try, args=(path, golden, failure)
        )
        process.start()
        process.join(60)
        if process.exitcode != 0:
            process.kill()
            failure.write_text(f"the interpreter ended with exit code {process.exitcode}")


def _try(path: Path, golden: Path, failure: Path) -> None:
    try:
        _run(path, golden)
    except (RuntimeError, ValueError) as error:
        failure.write_text(str(error))


def _run(path: Path, golden: Path) -> None:
    runner = tf.lite.Interpreter(str(path)).get_signature_runner()
    index, data = load(path.with_suffix(".inputs.npz"))
    packed, steps = bytearray(), []
    for names, arrays in index["steps"]:
        outputs = runner(**dict(zip(names, unpack(arrays, data), strict=True)))
        values = [np.array(value, copy=True) for value in outputs.values()]
        steps.append([list(outputs), pack(values, packed)])
    save(golden, {"steps": steps}, packed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
