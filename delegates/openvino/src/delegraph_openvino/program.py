"""Compiles partitions with OpenVINO, and runs compiled partitions on the host's arrays."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from typing import Any

import openvino as ov
from numpy.typing import NDArray

from delegraph import PartitionModel
from delegraph.errors import PartitionRejected
from delegraph_openvino.options import OpenvinoOptions

VERSION = str(ov.__version__.split("-")[0])


@cache
def core() -> ov.Core:
    """Return the process-wide OpenVINO core, which loads OpenVINO's plugins once."""
    return ov.Core()


class OpenvinoProgram:
    """A compiled partition that can run.

    Args:
        compiled: exported bytes of the model that :func:`compiled` returned.
        options: options of the delegate.
        num_threads: number of CPU threads; with -1, OpenVINO chooses.
    """

    def __init__(self, compiled: bytes, options: OpenvinoOptions, num_threads: int) -> None:
        settings = _settings(options)
        if num_threads > 0 and options.device == "CPU":
            settings["INFERENCE_NUM_THREADS"] = num_threads
        model = core().import_model(io.BytesIO(compiled), options.device, settings)
        self._request: Any = model.create_infer_request()

    def bind(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        """Set the arrays that the program reads and writes, without copies."""
        for position, array in enumerate(inputs):
            self._request.set_input_tensor(position, ov.Tensor(array, shared_memory=True))
        for position, array in enumerate(outputs):
            self._request.set_output_tensor(position, ov.Tensor(array, shared_memory=True))

    def run(self) -> None:
        """Compute the outputs from the inputs, both in the bound arrays."""
        self._request.infer(share_outputs=True)  # otherwise it would copy them

    def close(self) -> None:
        """Release the compiled model."""
        self._request = None


def compiled(model: PartitionModel, options: OpenvinoOptions) -> ov.CompiledModel:
    """Return the partition *model*, compiled by OpenVINO for the shapes of its tensors.

    Raises:
        PartitionRejected: OpenVINO cannot compile the partition, or changes its inputs or outputs.
    """
    graph = model.graph()
    inputs, outputs = graph.input_tensors, graph.output_tensors
    try:
        network = read_network(model.content)
        network.reshape({i: ov.PartialShape(each.shape) for i, each in enumerate(inputs)})
        found = core().compile_model(network, options.device, _settings(options))
    except (RuntimeError, LookupError, TypeError, ValueError) as error:  # by OpenVINO
        reason = str(error).strip().splitlines()[-1]
        raise PartitionRejected(f"OpenVINO: {reason}", constraint="compile") from error
    _require("inputs", inputs, found.inputs)
    _require("outputs", outputs, found.outputs)
    return found


def _settings(options: OpenvinoOptions) -> dict[str, Any]:
    return {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": options.precision}


def read_network(content: bytes) -> ov.Model:
    """Return a ``.tflite`` file, whose bytes are *content*, as an OpenVINO network.

    OpenVINO reads the network from a temporary file.
    """
    with tempfile.NamedTemporaryFile(suffix=".tflite", delete=False) as file:
        file.write(content)
    try:
        return core().read_model(file.name)
    finally:
        os.unlink(file.name)


def _require(what: str, tensors: Sequence[Any], ports: Sequence[Any]) -> None:
    """Check that OpenVINO's *ports* have the types and shapes of *tensors*.

    *what* is ``inputs`` or ``outputs``.
    """
    wanted = [f"{tensor.type.name.lower()}{[*tensor.shape]}" for tensor in tensors]
    found = [f"{port.get_element_type().to_dtype()}{[*port.shape]}" for port in ports]
    if found != wanted:
        raise PartitionRejected(
            f"OpenVINO's {what} are {', '.join(found)}, expected {', '.join(wanted)}",
            constraint=what,
        )
