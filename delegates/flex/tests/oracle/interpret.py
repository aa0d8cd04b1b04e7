"""Runs models by TensorFlow 2.18.1's interpreter: ``python interpret.py FOLDER``.

It is the last one with Flex. Writes the outputs of each model into ``NAME.golden.npz``, or the
error into ``NAME.golden.txt``.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

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
    interpreter = tf.lite.Interpreter(str(path))
    runner = interpreter.get_signature_runner()
    places, outputs = (
        {name: details["index"] for name, details in side.items()}
        for side in (runner.get_input_details(), runner.get_output_details())
    )
    del runner  # as long as it is there, the interpreter refuses to allocate
    index, data = load(path.with_suffix(".inputs.npz"))
    packed, steps = bytearray(), []
    for names, arrays in index["steps"]:
        inputs = dict(zip(names, unpack(arrays, data), strict=True))
        for name, place in places.items():
            interpreter.resize_tensor_input(place, inputs[name].shape)
        interpreter.allocate_tensors()
        for name, place in places.items():
            if inputs[name].size:  # it refuses empty arrays, also where they are expected
                interpreter.set_tensor(place, _input(inputs[name]))
        interpreter.invoke()
        values = [_output(interpreter, place) for place in outputs.values()]
        steps.append([list(outputs), pack(values, packed)])
    save(golden, {"steps": steps}, packed)


def _input(array: NDArray[Any]) -> NDArray[Any]:
    """Return an input; a single string needs a one-element array for this interpreter."""
    return array if array.ndim or not array.dtype.hasobject else array.astype(np.bytes_)


def _output(interpreter: Any, place: int) -> NDArray[Any]:
    """Return an output; this interpreter cannot return empty ones."""
    details = next(d for d in interpreter.get_tensor_details() if d["index"] == place)
    if 0 in details["shape"]:
        dtype = details["dtype"]
        return np.zeros(details["shape"], object if dtype in (bytes, np.bytes_) else dtype)
    return np.array(interpreter.get_tensor(place))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
