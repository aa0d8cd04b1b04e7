"""One partition as a compiled model of OpenVINO, run on Delegraph's own arrays."""

from __future__ import annotations

import io
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import openvino as ov

from delegraph import (
    DelegateContext,
    DelegateParams,
    Node,
    PartitionModel,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import PartitionRejected
from delegraph_openvino.options import OpenvinoOptions

Shapes = tuple[tuple[int, ...], ...]


@cache
def core() -> ov.Core:
    """Return OpenVINO's entry, one for the process: it loads its plugins once."""
    return ov.Core()


class OpenvinoKernel(SimpleDelegateKernelInterface):
    """Compiles a partition for the shapes of its inputs; a resize compiles it again.

    Args:
        options: of the delegate.
    """

    def __init__(self, options: OpenvinoOptions) -> None:
        self._options = options
        self._shapes: Shapes | None = None
        self._compiled: Any = None
        self._request: Any = None

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Compile for the shapes there are now.

        Raises:
            PartitionRejected: OpenVINO cannot compile it, or has other inputs or outputs.
        """
        self._model = params.partition_model()
        try:
            self._compile(context, self._input_shapes(context))
        except (RuntimeError, LookupError, TypeError, ValueError) as error:  # of many of its parts
            reason = str(error).strip().splitlines()[-1]
            raise PartitionRejected(f"OpenVINO: {reason}", constraint="compile") from error
        self._check_ports(context)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        shapes = self._input_shapes(context)
        if shapes != self._shapes:
            self._compile(context, shapes)
        for index, port in zip(self._model.outputs, self._compiled.outputs, strict=True):
            if tuple(port.shape) != context.tensors[index].shape:
                context.resize_tensor(context.tensors[index], tuple(port.shape))

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        for position, index in enumerate(self._model.inputs):
            data = context.tensors[index].data
            self._request.set_input_tensor(position, ov.Tensor(data, shared_memory=True))
        for position, index in enumerate(self._model.outputs):
            data = context.tensors[index].data
            self._request.set_output_tensor(position, ov.Tensor(data, shared_memory=True))

    def eval(self, context: DelegateContext, node: Node) -> None:
        self._request.infer()

    def close(self) -> None:
        self._request = self._compiled = None

    def _input_shapes(self, context: DelegateContext) -> Shapes:
        return tuple(context.tensors[index].shape for index in self._model.inputs)

    def _compile(self, context: DelegateContext, shapes: Shapes) -> None:
        """Compile, or take what an earlier process has compiled."""
        device, config, made = self._options.device, self._config(context), []

        def make() -> bytes:
            model = read(self._model)
            model.reshape(dict(enumerate(map(ov.PartialShape, shapes))))
            made.append(core().compile_model(model, device, config))
            content: bytes = made[0].export_model().getvalue()
            return content

        version = f"{ov.__version__.split('-')[0]}-{device.replace(':', '_')}"
        key = f"{self._model.digest} {shapes} {sorted(config.items())}"
        path = context.cache("openvino", version).get_or_make(key, make)
        self._compiled = made[0] if made else imported(path, device, config)
        self._request = self._compiled.create_infer_request()
        self._shapes = shapes

    def _config(self, context: DelegateContext) -> dict[str, Any]:
        config: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": self._options.precision,
        }
        threads = self._options.num_threads or max(context.recommended_num_threads, 0)
        if threads and self._options.device == "CPU":
            config["INFERENCE_NUM_THREADS"] = threads
        return config

    def _check_ports(self, context: DelegateContext) -> None:
        """Require that OpenVINO's inputs and outputs are the partition's, in order."""
        for what, indices, ports in (
            ("inputs", self._model.inputs, self._compiled.inputs),
            ("outputs", self._model.outputs, self._compiled.outputs),
        ):
            wanted = [TYPES.get(context.tensors[index].type.name) for index in indices]
            found = [port.get_element_type().get_type_name() for port in ports]
            if found != wanted:
                raise PartitionRejected(
                    f"OpenVINO's {what} are {found}, not {wanted}", constraint="ports"
                )


TYPES = {
    "BOOL": "boolean",
    "FLOAT16": "f16",
    "FLOAT32": "f32",
    "FLOAT64": "f64",
    "INT8": "i8",
    "INT16": "i16",
    "INT32": "i32",
    "INT64": "i64",
    "UINT8": "u8",
}
"""TensorType to OpenVINO's element type."""


def read(model: PartitionModel) -> ov.Model:
    """Return a partition as OpenVINO reads it: from files only, not from memory."""
    with tempfile.NamedTemporaryFile(suffix=".tflite", delete=False) as file:
        file.write(model.content)
    try:
        return core().read_model(file.name)
    finally:
        os.unlink(file.name)


def imported(path: Path, device: str, config: dict[str, Any]) -> Any:
    """Return what was compiled earlier."""
    with path.open("rb") as file:
        return core().import_model(io.BytesIO(file.read()), device, config)
