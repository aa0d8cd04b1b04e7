"""One partition as a compiled model of OpenVINO, run on Delegraph's own arrays."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from typing import Any

import openvino as ov

from delegraph import (
    DelegateContext,
    DelegateParams,
    Interpreter,
    Node,
    PartitionModel,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import PartitionRejected
from delegraph_openvino.options import OpenvinoOptions

Shapes = Sequence[tuple[int, ...]]


@cache
def core() -> ov.Core:
    """Return OpenVINO's entry, one for the process: it loads its plugins once."""
    return ov.Core()


class OpenvinoKernel(SimpleDelegateKernelInterface):
    """Compiles a partition for the shapes of its inputs; other shapes compile it again.

    Args:
        options: of the delegate.
    """

    def __init__(self, options: OpenvinoOptions) -> None:
        self._options = options
        self._shapes: Shapes = ()
        self._ports: Any = None
        self._request: Any = None

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Compile for the shapes there are now.

        Raises:
            PartitionRejected: OpenVINO cannot compile it, or has other inputs or outputs.
        """
        self._model = params.partition_model()
        self._inputs, self._outputs = self._model.inputs, self._model.outputs
        self._compile(context)
        self._check_ports(context)

    def load(self, context: DelegateContext, params: DelegateParams, blob: bytes) -> None:
        """Take a partition that was compiled ahead of time, in place of :meth:`init`."""
        self._inputs, self._outputs = params.input_tensors, params.output_tensors
        self._use(imported(blob, self._options, context), self._input_shapes(context))

    def prepare(self, context: DelegateContext, node: Node) -> None:
        if self._input_shapes(context) != self._shapes:
            self._compile(context)
        for index, port in zip(self._outputs, self._ports.outputs, strict=True):
            if tuple(port.shape) != context.tensors[index].shape:
                context.resize_tensor(context.tensors[index], tuple(port.shape))

    def memory_changed(self, context: DelegateContext, node: Node) -> None:
        for position, index in enumerate(self._inputs):
            data = context.tensors[index].data
            self._request.set_input_tensor(position, ov.Tensor(data, shared_memory=True))
        for position, index in enumerate(self._outputs):
            data = context.tensors[index].data
            self._request.set_output_tensor(position, ov.Tensor(data, shared_memory=True))

    def eval(self, context: DelegateContext, node: Node) -> None:
        self._request.infer(share_outputs=True)  # it would copy them

    def close(self) -> None:
        self._request = self._ports = None

    def _input_shapes(self, context: DelegateContext) -> Shapes:
        return [context.tensors[index].shape for index in self._inputs]

    def _compile(self, context: DelegateContext) -> None:
        """Compile, or take what an earlier process has compiled."""
        shapes, device, made = self._input_shapes(context), self._options.device, []

        def make() -> bytes:
            made.append(compiled(self._model, shapes, self._options, context))
            return exported(made[0])

        cache = context.cache("openvino", f"{version()}-{device.replace(':', '_')}")
        key = f"{self._model.digest} {shapes} {config(self._options, context)}"
        path = cache.get_or_make(key, make)
        self._use(made[0] if made else imported(path.read_bytes(), self._options, context), shapes)

    def _use(self, model: Any, shapes: Shapes) -> None:
        self._ports, self._shapes = model, shapes
        self._request = model.create_infer_request()

    def _check_ports(self, context: DelegateContext) -> None:
        """Require that OpenVINO's inputs and outputs are the partition's, in order."""
        for what, indices, ports in (
            ("inputs", self._inputs, self._ports.inputs),
            ("outputs", self._outputs, self._ports.outputs),
        ):
            tensors = [context.tensors[index] for index in indices]
            wanted = [f"{tensor.dtype}{[*tensor.shape]}" for tensor in tensors]
            found = [f"{p.get_element_type().to_dtype()}{[*p.shape]}" for p in ports]
            if found != wanted:
                raise PartitionRejected(
                    f"OpenVINO's {what} are {', '.join(found)}, expected {', '.join(wanted)}",
                    constraint=what,
                )


def version() -> str:
    """Return OpenVINO's version: what it compiled is for no other."""
    return str(ov.__version__.split("-")[0])


def config(options: OpenvinoOptions, context: DelegateContext | None) -> dict[str, Any]:
    """Return OpenVINO's settings; without a context it takes the threads that it likes."""
    found: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": options.precision,
    }
    threads = options.num_threads or (context.recommended_num_threads if context else 0)
    if threads > 0 and options.device == "CPU":
        found["INFERENCE_NUM_THREADS"] = threads
    return found


def compiled(
    model: PartitionModel,
    shapes: Shapes,
    options: OpenvinoOptions,
    context: DelegateContext | None = None,
) -> Any:
    """Return a partition as OpenVINO compiles it, which reads it from files only.

    Raises:
        PartitionRejected: it cannot.
    """
    with tempfile.NamedTemporaryFile(suffix=".tflite", delete=False) as file:
        file.write(model.content)
    try:
        network = core().read_model(file.name)
        network.reshape(dict(enumerate(map(ov.PartialShape, shapes))))
        return core().compile_model(network, options.device, config(options, context))
    except (RuntimeError, LookupError, TypeError, ValueError) as error:  # of many of its parts
        reason = str(error).strip().splitlines()[-1]
        raise PartitionRejected(f"OpenVINO: {reason}", constraint="compile") from error
    finally:
        os.unlink(file.name)


def exported(model: Any) -> bytes:
    """Return what :func:`imported` makes the compiled model of again."""
    content: bytes = model.export_model().getvalue()
    return content


def imported(blob: bytes, options: OpenvinoOptions, context: DelegateContext) -> Any:
    """Return what was compiled earlier."""
    return core().import_model(io.BytesIO(blob), options.device, config(options, context))


def compile_partition(model: PartitionModel, options: OpenvinoOptions) -> bytes:
    """Return a partition compiled for the shapes it has: a line of options, and the model."""
    with Interpreter(model_content=model.content) as interpreter:
        shapes = [tuple(detail["shape"].tolist()) for detail in interpreter.get_input_details()]
    line = json.dumps({"device": options.device, "precision": options.precision})
    return line.encode() + b"\n" + exported(compiled(model, shapes, options))


def load_compiled(blob: bytes, context: DelegateContext, params: DelegateParams) -> OpenvinoKernel:
    """Return the kernel for what :func:`compile_partition` returned."""
    line, _, content = blob.partition(b"\n")
    kernel = OpenvinoKernel(OpenvinoOptions(**json.loads(line)))
    kernel.load(context, params, content)
    return kernel
