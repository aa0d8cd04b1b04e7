"""Runs a network in one runtime, turn by turn: what ``networks.py`` starts, with any Python.

    python network_process.py RUNTIME MODEL THREADS INPUTS.npz OUTPUTS.npz

A line of JSON says that the first answer is there. Then each line of standard input, a number of
seconds, is answered by the seconds of single runs, and the end of the input ends the process.
It needs NumPy and the runtime, nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from xnnpack_avx2 import limit_to_avx2

PAUSE = 0.02
"""Seconds before each turn, in which the threads of the runtime before go to sleep."""

Arrays = Sequence[Any]
Prepared = tuple[Callable[[], object], Callable[[], Arrays], dict[str, Any]]
"""Function that runs the network once, function that returns its outputs, version and ``taken``."""


def main() -> None:
    """Run the network once, then at each request."""
    runtime, model, threads, given, results = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what runtimes print
    with np.load(given) as file:
        inputs = [file[name] for name in file.files]
    prepare = PREPARE[runtime.partition(":")[0]]
    run, outputs, about = prepare(runtime, model, int(threads), inputs)
    run()
    print(json.dumps({"memory": peak_memory(), **about}), file=answers, flush=True)
    np.savez(results, *outputs())
    for line in sys.stdin:
        print(json.dumps(turn(run, float(line))), file=answers, flush=True)


def turn(run: Callable[[], object], seconds: float) -> list[float]:
    """Return the seconds of single runs, as many as fit into *seconds*, at least one."""
    time.sleep(PAUSE)
    run()  # brings the data back into the caches
    found: list[float] = []
    end = time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return found


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if it is unknown."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:  # getrusage counts the parent's
            lines = dict(line.split(":", 1) for line in file)
    except OSError:
        return None
    return int(lines["VmHWM"].split()[0]) * 1024


def litert(runtime: str, model: str, threads: int, inputs: Arrays) -> Prepared:
    """Prepare the official interpreter, with XNNPACK or with its builtin kernels alone."""
    from ai_edge_litert import interpreter as official

    if runtime == "XNNPACK avx2":
        limit_to_avx2()
    kinds = official.OpResolverType
    is_builtin = runtime == "TFLite builtin"
    kind = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if is_builtin else kinds.AUTO
    made = official.Interpreter(model, num_threads=threads, experimental_op_resolver_type=kind)
    return interpreted(made, inputs, version("ai-edge-litert"))


def delegraph(runtime: str, model: str, threads: int, inputs: Arrays) -> Prepared:
    """Prepare Delegraph, by the core's kernels or with a delegate: ``numba_cpu:cpu=avx2``."""
    from delegraph import Interpreter, __version__

    name = runtime.partition(":")[0]
    delegates = [] if name == "core" else [runtime]
    made = Interpreter(model, delegates=delegates, num_threads=threads)
    run, outputs, about = interpreted(
        made, inputs, version("openvino") if name == "openvino" else __version__
    )
    nodes = made.placement.nodes
    taken = sum(node.delegate is not None for node in nodes) / max(1, len(nodes))
    return run, outputs, about | ({"taken": taken} if delegates else {})


def interpreted(interpreter: Any, inputs: Arrays, release: str) -> Prepared:
    """Prepare an interpreter with TFLite's methods."""
    interpreter.allocate_tensors()
    for details, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], values)
    indices = [details["index"] for details in interpreter.get_output_details()]
    return (
        interpreter.invoke,
        lambda: [interpreter.get_tensor(i) for i in indices],
        {"version": release, "taken": None},
    )


def onnx_runtime(runtime: str, model: str, threads: int, inputs: Arrays) -> Prepared:
    """Prepare ONNX Runtime with its default provider; *model* is the converted file."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    bound = session.io_binding()
    for spec, values in zip(session.get_inputs(), inputs, strict=True):
        bound.bind_ortvalue_input(spec.name, onnxruntime.OrtValue.ortvalue_from_numpy(values))
    for spec in session.get_outputs():
        bound.bind_output(spec.name)
    return (
        lambda: session.run_with_iobinding(bound),
        bound.copy_outputs_to_cpu,
        {"version": onnxruntime.__version__, "taken": None},
    )


PREPARE = {
    "XNNPACK": litert,
    "XNNPACK avx2": litert,
    "TFLite builtin": litert,
    "numba_cpu": delegraph,
    "core": delegraph,
    "openvino": delegraph,
    "ONNX Runtime": onnx_runtime,
}

if __name__ == "__main__":
    main()
