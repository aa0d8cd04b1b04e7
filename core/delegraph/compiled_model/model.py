"""``CompiledModel``: a model that runs on tensor buffers, compatible with the official class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delegraph.compiled_model.environment import Environment
from delegraph.compiled_model.failures import Status, checked_text, failure
from delegraph.compiled_model.host_memory import HostMemory
from delegraph.compiled_model.loaded_model import details, loaded_model, position_at, position_of
from delegraph.compiled_model.options import HardwareAccelerator, Options, resolved_options
from delegraph.compiled_model.tensor_buffer import TensorBuffer
from delegraph.errors import (
    ArgumentAttributeError,
    ArgumentError,
    CompiledModelError,
)

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10

    from delegraph.compiled_model.loaded_model import LoadedModel, NamedSubgraph
    from delegraph.delegation.incident import Incident
    from delegraph.delegation.placement import Placement
    from delegraph.operators.tensor import Tensor

_HOST_MEMORY = 1
"""Number of the buffer type that models accept. Source: LiteRtTensorBufferType."""


class CompiledModel:
    """A model whose inputs and outputs are tensor buffers; delegates may compute parts of it.

    Methods, results and error types are those of ``ai_edge_litert.compiled_model.CompiledModel``.
    Calls of one model from several threads wait for each other; different models run at the same
    time. Create models by :meth:`from_file` and :meth:`from_buffer`.

    Unlike the official class, this class runs models with strings, and with outputs of unknown
    size. It raises an error where the official class would end the process or write outside a
    buffer.

    Args:
        c_model_ptr: the loaded model, a ``LoadedModel``.
        environment: environment of the model.

    Source:
        CompiledModel, ai_edge_litert/compiled_model.py.
    """

    def __init__(self, c_model_ptr: LoadedModel, environment: Environment) -> None:
        self._model: LoadedModel | None = c_model_ptr
        self._environment = environment

    # -- life ----------------------------------------------------------------------------------

    @classmethod
    def from_file(
        cls,
        model_path: str,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
        **additions: Any,
    ) -> Self:
        """Return the model in the file *model_path*, which is mapped into memory.

        Args:
            model_path: path of a ``.tflite`` file.
            hardware_accel: kinds of hardware; the default is the CPU with one thread.
            environment: environment to share with other models; None creates a new one.
            options: options of the model; give this or ``hardware_accel``.
            additions: keyword-only arguments of :class:`delegraph.Interpreter`: ``delegates``,
                ``custom_ops``, ``placement``, ``failures``, ``limits``, ``cache_dir`` and others.

        Raises:
            ArgumentError: (ValueError) *options* beside an accelerator, or a closed environment.
            ArgumentTypeError: (TypeError) an argument has the wrong type.
            CompiledModelError: (RuntimeError) the file is missing or is no model, or the
                accelerator is unknown.
            PluginError: a delegate that is requested by name is missing or broken.
            DelegateError: (RuntimeError) a delegate failed.
            PlacementError: (RuntimeError) the placement of nodes violates ``placement`` or the
                accelerator.
        """
        return cls._made(environment, options, hardware_accel, additions, model_path=model_path)

    @classmethod
    def from_buffer(
        cls,
        model_data: bytes,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
        **additions: Any,
    ) -> Self:
        """Return the model in the bytes *model_data*; other arguments as in :meth:`from_file`."""
        return cls._made(environment, options, hardware_accel, additions, model_content=model_data)

    @classmethod
    def _made(
        cls,
        environment: Environment | None,
        options: Options | None,
        accelerator: HardwareAccelerator | None,
        additions: Mapping[str, Any],
        **source: Any,
    ) -> Self:
        environment = environment or Environment.create()
        chosen = resolved_options(options, accelerator)
        environment.capsule  # noqa: B018 - which raises when it is closed
        return cls(loaded_model(source, chosen, additions), environment)

    def close(self) -> None:
        """Release the model; buffers remain valid. A second call has no effect."""
        model, self._model = self._model, None
        if model is not None:
            model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()

    @property
    def environment(self) -> Environment:
        """The environment in which the model was created."""
        return self._environment

    @property
    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise ArgumentAttributeError(
                "'NoneType' object has no attribute 'signatures': the CompiledModel is closed"
            )
        return self._model

    # -- signatures ----------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return ``{key: {"inputs": names, "outputs": names}}``, names in the graph's order.

        A model without signatures gets ``<placeholder signature>``, with the names of tensors.
        """
        return {signature.key: signature.names() for signature in self._loaded.signatures}

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """Return ``{"key": key, "inputs": names, "outputs": names}`` of the signature *index*.

        Raises:
            CompiledModelError: the signature does not exist.
        """
        signature = self._loaded.at(index)
        return {"key": signature.key, **signature.names()}

    def get_num_signatures(self) -> int:
        """Return the number of signatures, at least 1."""
        return len(self._loaded.signatures)

    def get_signature_index(self, key: str) -> int:
        """Return the index of the signature *key*; -1 if unknown."""
        text = checked_text("a signature key", key)
        return self._loaded.index_of(text) if text else 0

    def get_input_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return name, index, dtype and present shape of each input, by name.

        Raises:
            CompiledModelError: the key is unknown.
        """
        signature = self._loaded.named(signature_key)
        return details(signature.inputs, signature.subgraph.inputs)

    def get_output_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return name, index, dtype and shape of each output, by name; this allocates tensors.

        Raises:
            CompiledModelError: the key is unknown, or a node cannot be prepared.
        """
        model = self._loaded
        signature = model.named(signature_key)
        model.call("get_output_tensor_details", signature.subgraph.allocate)
        return details(signature.outputs, signature.subgraph.outputs)

    def get_input_buffer_requirements(
        self, input_index: int, signature_index: int = 0
    ) -> dict[str, Any]:
        """Return an input buffer's size and memory types: ``{"buffer_size", "supported_types"}``.

        Raises:
            CompiledModelError: the input or signature does not exist.
        """
        tensors = self._loaded.at(signature_index).subgraph.inputs
        return _requirements(tensors[position_at("Input", tensors, input_index)])

    def get_output_buffer_requirements(
        self, output_index: int, signature_index: int = 0
    ) -> dict[str, Any]:
        """Return an output buffer's size and memory types: ``{"buffer_size", "supported_types"}``.

        Raises:
            CompiledModelError: the output or signature does not exist.
        """
        model = self._loaded
        subgraph = model.at(signature_index).subgraph
        position = position_at("Output", subgraph.outputs, output_index)
        model.call("get_output_buffer_requirements", subgraph.allocate_if_possible)
        return _requirements(subgraph.outputs[position])

    def is_fully_accelerated(self) -> bool:
        """Whether delegates compute every node."""
        subgraphs = self._loaded.interpreter.session.subgraphs
        nodes = [node for subgraph in subgraphs for node, _ in subgraph.plan.steps()]
        return all(node.delegate is not None for node in nodes)

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, with the reasons of delegates that rejected it."""
        return self._loaded.interpreter.placement

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates that ``failures`` did not raise as errors."""
        return self._loaded.interpreter.incidents

    # -- buffers -------------------------------------------------------------------------------

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Return a new buffer for the input *input_name* of a signature, filled with zeros.

        Raises:
            CompiledModelError: the key or name is unknown.
        """
        signature = self._loaded.named(signature_key)
        position = position_of("Input", signature.inputs, input_name)
        return self._buffer(signature.subgraph.input_memory(position))

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Return a new buffer for the output *output_name* of a signature, filled with zeros.

        Raises:
            CompiledModelError: the key or name is unknown.
        """
        model = self._loaded
        signature = model.named(signature_key)
        position = position_of("Output", signature.outputs, output_name)
        memory = model.call("create_output_buffer", signature.subgraph.output_memory, position)
        return self._buffer(memory)

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a new buffer for each input, filled with zeros.

        Raises:
            CompiledModelError: the signature does not exist.
        """
        subgraph = self._loaded.at(signature_index).subgraph
        return [self._buffer(subgraph.input_memory(i)) for i in range(len(subgraph.inputs))]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a new buffer for each output, filled with zeros.

        Raises:
            CompiledModelError: the signature does not exist.
        """
        model = self._loaded
        subgraph = model.at(signature_index).subgraph
        make, count = subgraph.output_memory, len(subgraph.outputs)
        return [self._buffer(model.call("create_output_buffers", make, i)) for i in range(count)]

    def _buffer(self, memory: HostMemory) -> TensorBuffer:
        return TensorBuffer(memory, self._environment)

    # -- shapes --------------------------------------------------------------------------------

    def resize_input_tensor(
        self,
        input_index: int,
        dims: Sequence[int],
        signature_index: int = 0,
        strict: bool = True,
    ) -> None:
        """Set the shape of an input; later runs need buffers of that shape.

        Args:
            input_index: position of the input in the signature.
            dims: the new dimensions, all greater than 0.
            signature_index: index of the signature.
            strict: whether only the present shape and changes of unknown dimensions are allowed.

        Raises:
            CompiledModelError: input or signature is unknown, or the input cannot have the shape.
        """
        dims = list(dims)
        model = self._loaded
        subgraph = model.at(signature_index).subgraph
        position = position_at("Input", subgraph.inputs, input_index)
        model.call("resize_input_tensor", lambda: subgraph.resize(position, dims, strict=strict))

    def resize_input_tensor_by_name(
        self,
        signature_key: str,
        input_name: str,
        dims: Sequence[int],
        strict: bool = True,
    ) -> None:
        """Set the shape of an input to *dims*; see :meth:`resize_input_tensor`.

        Raises:
            ArgumentError: the key or name is unknown.
            CompiledModelError: the input cannot have the shape.
        """
        model = self._loaded
        index = model.index_of(checked_text("a signature key", signature_key))
        if index < 0:
            raise ArgumentError(f"Unknown signature: {signature_key}")
        names = model.signatures[index].inputs
        if input_name not in names:
            raise ArgumentError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        self.resize_input_tensor(names.index(input_name), dims, index, strict)

    # -- running -------------------------------------------------------------------------------

    def run_by_name(
        self,
        signature_key: str,
        input_map: Mapping[str, TensorBuffer],
        output_map: Mapping[str, TensorBuffer],
    ) -> None:
        """Run a signature on named buffers.

        Args:
            signature_key: key of the signature.
            input_map: buffers of inputs; other names are ignored, and an input without a buffer
                uses the buffer of the last run.
            output_map: buffers of all outputs; other names are ignored.

        Raises:
            ArgumentError: a buffer was destroyed.
            ArgumentAttributeError: a value is no buffer.
            CompiledModelError: the key is unknown, an output has no buffer, a buffer does not fit,
                or a node failed.
            DelegateError: a delegate failed.
        """
        inputs = {name: _memory(buffer) for name, buffer in input_map.items()}
        outputs = {name: _memory(buffer) for name, buffer in output_map.items()}
        model = self._loaded
        signature = model.named(signature_key)
        if not all(isinstance(name, str) for name in (*inputs, *outputs)):
            raise CompiledModelError("input_map key not a string.")
        missing = [name for name in signature.outputs if name not in outputs]
        if missing:
            what = "The given map is missing some output TensorBuffers"
            raise failure(Status.NOT_FOUND, f"{what}: {', '.join(map(repr, missing))}")
        results = [outputs[name] for name in signature.outputs]
        model.call("run_by_name", _run_named, signature, inputs, results)

    def run_by_index(
        self,
        signature_index: int,
        input_buffers: Sequence[TensorBuffer],
        output_buffers: Sequence[TensorBuffer],
    ) -> None:
        """Run a signature on buffers of all inputs and outputs, in the graph's order.

        Raises:
            ArgumentError: a buffer was destroyed.
            ArgumentAttributeError: a value is no buffer.
            CompiledModelError: there is no such signature, the number of buffers is wrong, a buffer
                does not fit, or a node failed.
            DelegateError: a delegate failed.
        """
        inputs = [_memory(buffer) for buffer in input_buffers]
        outputs = [_memory(buffer) for buffer in output_buffers]
        model = self._model or self._loaded
        subgraph = model.at(signature_index, "Failed to invoke the compiled model").subgraph
        with model.lock:
            model.calls.run("run_by_index", subgraph.run, inputs, outputs)


def _run_named(
    signature: NamedSubgraph, given: Mapping[str, HostMemory], outputs: list[HostMemory]
) -> None:
    subgraph = signature.subgraph
    pairs = zip(signature.inputs, subgraph.last_inputs, strict=True)
    subgraph.run([given.get(name, last) for name, last in pairs], outputs)


def _memory(buffer: TensorBuffer) -> HostMemory:
    """Return a buffer's memory; errors are those of :meth:`CompiledModel.run_by_index`."""
    try:
        memory: HostMemory = buffer.capsule
    except AttributeError as error:
        raise ArgumentAttributeError(str(error)) from error
    return memory


def _requirements(tensor: Tensor) -> dict[str, Any]:
    return {"buffer_size": tensor.bytes, "supported_types": [_HOST_MEMORY]}
