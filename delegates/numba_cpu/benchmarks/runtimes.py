"""The runtimes that are compared: each as a function that runs a model once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.tools import random_values
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.options import NumbaCpuOptions

Arrays = Sequence[NDArray[Any]]
Run = Callable[[], None]

BASE = "XNNPACK"
"""The runtime that the others are compared with."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A runtime that is ready to run a model.

    Attributes:
        run: runs the model once; its inputs are in place.
        outputs: returns what the last run computed, in the model's order.
        placement: which part of the model a delegate takes; empty for other runtimes.
    """

    run: Run
    outputs: Callable[[], Arrays]
    placement: str = ""


Prepare = Callable[[Path, int, Arrays], Prepared]
"""Gets a model, a number of threads and the inputs."""


def model_inputs(model: Path) -> list[NDArray[Any]]:
    """Return random inputs for a model, always the same."""
    rng = np.random.default_rng(0)
    with Interpreter(str(model)) as interpreter:
        return [random_values(details, rng) for details in interpreter.get_input_details()]


def runtimes(cpu: str = "auto") -> dict[str, Prepare]:
    """Return the runtimes that are installed, by name; the one to compare with comes first.

    Args:
        cpu: the instructions that numba_cpu uses, as its option of this name has them.
    """
    found: dict[str, Prepare] = {
        BASE: _litert("AUTO"),
        "LiteRT builtin": _litert("BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
        "numba_cpu": _delegraph(NumbaCpuOptions(cpu=cpu)),
        "numba_cpu inexact": _delegraph(NumbaCpuOptions(cpu=cpu, exact=False)),
        "core": _delegraph(None),
    }
    if find_spec("openvino") is not None:
        found["OpenVINO"] = _openvino
    if find_spec("onnxruntime") is not None:
        found["ONNX Runtime"] = _onnx_runtime
    return found


def _fed(interpreter: Any, inputs: Arrays) -> Any:
    for details, values in zip(interpreter.get_input_details(), inputs, strict=True):
        if tuple(details["shape"]) != values.shape:
            interpreter.resize_tensor_input(details["index"], values.shape)
    interpreter.allocate_tensors()
    for details, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], values)
    return interpreter


def _outputs_of(interpreter: Any) -> Callable[[], Arrays]:
    indices = [details["index"] for details in interpreter.get_output_details()]
    return lambda: [interpreter.get_tensor(index) for index in indices]


def _delegraph(options: NumbaCpuOptions | None) -> Prepare:
    def prepare(model: Path, threads: int, inputs: Arrays) -> Prepared:
        delegates = [] if options is None else [NumbaCpuDelegate(options)]
        interpreter = Interpreter(str(model), experimental_delegates=delegates, num_threads=threads)
        _fed(interpreter, inputs)
        placement = str(interpreter.placement) if delegates else ""
        return Prepared(interpreter.invoke, _outputs_of(interpreter), placement)

    return prepare


def _litert(resolver: str) -> Prepare:
    def prepare(model: Path, threads: int, inputs: Arrays) -> Prepared:
        from ai_edge_litert import interpreter as litert

        interpreter = litert.Interpreter(
            str(model),
            num_threads=threads,
            experimental_op_resolver_type=getattr(litert.OpResolverType, resolver),
        )
        _fed(interpreter, inputs)
        return Prepared(interpreter.invoke, _outputs_of(interpreter))

    return prepare


def _openvino(model: Path, threads: int, inputs: Arrays) -> Prepared:
    import openvino

    compiled = openvino.Core().compile_model(
        str(model),
        "CPU",
        {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1},
    )
    request = compiled.create_infer_request()
    for i, values in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(values))
    count = len(compiled.outputs)
    return Prepared(
        request.infer, lambda: [request.get_output_tensor(i).data for i in range(count)]
    )


def _onnx_runtime(model: Path, threads: int, inputs: Arrays) -> Prepared:
    """Run the same model in ONNX format, which must lie beside it."""
    import onnxruntime

    converted = model.with_suffix(".onnx")
    if not converted.is_file():
        raise FileNotFoundError(f"there is no {converted.name} beside the model")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(converted), settings, providers=["CPUExecutionProvider"]
    )
    given = {spec.name: values for spec, values in zip(session.get_inputs(), inputs, strict=True)}
    last: list[Any] = []

    def run() -> None:
        last[:] = session.run(None, given)

    return Prepared(run, lambda: last)
