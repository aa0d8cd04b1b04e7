"""``LiteRt2Interpreter``: the official ``CompiledModel`` as an interpreter, for tools."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.incident import Incident
from delegraph.delegation.placement import Placement
from delegraph.errors import ArgumentError, StateError, UnsupportedModelError
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.graph.loader import load_model
from delegraph.graph.model import Model, Signature, TensorSpec
from delegraph.native.litert.compiled_model import compiled_model
from delegraph.native.litert.installed_runtimes import compiled_model_module
from delegraph.native.litert.quiet import quiet_environment
from delegraph.operators.tensor import Tensor
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.bound_state import state_names
from delegraph.runtime.delegates.requested_delegates import AnyDelegate
from delegraph.runtime.details import signature_details, tensor_details
from delegraph.runtime.execution.profile import Profile
from delegraph.runtime.members import ClosedByWith
from delegraph.schema.enums import TensorType
from delegraph.tools.model_call import KeptState

Details = Mapping[str, Any]
Shapes = Sequence[tuple[int, ...]]

_KERNEL_MODES = {
    OpResolverType.AUTO: "DELEGATE",
    OpResolverType.BUILTIN_REF: "REFERENCE",
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES: "BUILTIN",
}
"""Mapping from an ``OpResolverType`` to the name of a member of LiteRT's ``CpuKernelMode``."""

_ARGUMENTS = {"placement", "limits", "failures", "cache_dir"}


class LiteRt2Interpreter(ClosedByWith):
    """Runs a model in the official ``CompiledModel``, with delegates written in Python.

    LiteRT then prints only errors; see :mod:`delegraph.native.litert.quiet`.

    Args:
        model_path: path of a ``.tflite`` file.
        delegates: as in ``delegraph.Interpreter``.
        num_threads: number of threads; None for LiteRT's default, which is one.
        experimental_op_resolver_type: official kernels, with XNNPACK or without it.
        on_loaded: function that is called when the file is loaded.
        arguments: ``placement``, ``limits``, ``failures``, ``cache_dir`` of ``compiled_model``.

    Raises:
        ArgumentError: an argument is wrong or unknown, or the file does not exist.
        MalformedModelError: the model is damaged.
        PluginError: a named delegate is missing or broken.
        PlacementError: the placement does not satisfy ``placement``.
        UnsupportedModelError: the model has variable tensors.
        UnsupportedRuntimeError: there is no official ``CompiledModel``, or it has unknown structs.
    """

    def __init__(
        self,
        model_path: str,
        *,
        delegates: Sequence[AnyDelegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        on_loaded: Callable[[], object] | None = None,
        **arguments: Any,
    ) -> None:
        unknown = sorted(arguments.keys() - _ARGUMENTS)
        if unknown:
            raise ArgumentError(
                f"the official CompiledModel has no {unknown[0]}; runtime='litert' has it"
            )
        self._model = load_model(model_path)
        if on_loaded is not None:
            on_loaded()
        self._calls: dict[str | None, _Call] = {}
        module = compiled_model_module()
        mode = module.CpuKernelMode[_KERNEL_MODES[experimental_op_resolver_type]]
        cpu = module.CpuOptions(num_threads=num_threads or 1, kernel_mode=mode)
        options = module.Options(cpu_options=cpu)
        try:
            self._official: Any = compiled_model(
                self._model,
                delegates,
                environment=quiet_environment(module),
                options=options,
                **arguments,
            )
        except RuntimeError as error:
            if "Failed to load model" in str(error):
                _require_no_variables(self._model)
            raise

    @property
    def official(self) -> Any:
        """The official ``CompiledModel``, created at the first access.

        Raises:
            StateError: the interpreter is closed.
        """
        if self._official is None:
            raise StateError("the interpreter is closed")
        return self._official

    def call(self, signature: str | None = None) -> _Call:
        """Return the object with the steps of a call, by *signature* or of the whole model.

        Raises:
            ArgumentError: no signature calls the first subgraph.
        """
        if signature not in self._calls:
            self._calls[signature] = _Call(self, self._model, signature)
        return self._calls[signature]

    def get_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the tensor indices of each signature's inputs and outputs, by name."""
        return signature_details(self._model.signatures)

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Return the details of a subgraph's tensors with the shapes that the file declares."""
        return [_details(spec) for spec in self._model.subgraphs[subgraph_index].tensors]

    def allocate_tensors(self) -> None:
        """Allocate the first subgraph for its present input shapes."""
        self.call().allocate_inputs()

    def reset_all_variables(self) -> None:
        """Do nothing: ``CompiledModel`` rejects models with variable tensors."""

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, also of nodes that XNNPACK computes."""
        placement: Placement = self.official.placement
        return placement

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates that did not stop the model."""
        incidents: tuple[Incident, ...] = self.official.incidents
        return incidents

    def profile(self, *, whole_partitions: bool = False) -> AbstractContextManager[Profile]:
        """Record the nodes of Python delegates and their own events; see ``Profile``."""
        found: AbstractContextManager[Profile] = self.official.profile(
            whole_partitions=whole_partitions
        )
        return found

    def close(self) -> None:
        """Release the model and its delegates; later calls raise."""
        if self._official is not None:
            self._official.close()
            self._official = None


class _Call:
    """A way to call the model, as ``ModelCall`` describes it, by one of its signatures.

    The signature None means the whole model, with the tensors' own names.
    """

    def __init__(self, host: LiteRt2Interpreter, model: Model, signature: str | None) -> None:
        self._host = host
        found = _signature(model, signature)
        self._number = 0 if found is None else host.official.get_signature_index(found.key)
        official = host.official.get_signature_by_index(self._number)
        self._key = official["key"]
        self._inputs, self._outputs = (
            _tensors(model, found, side, official[side], is_named=signature is not None)
            for side in ("inputs", "outputs")
        )
        for tensor in (*self._inputs, *self._outputs):
            if tensor.spec.type is TensorType.STRING:
                raise UnsupportedModelError(
                    f"the official CompiledModel has no buffers for strings, such as "
                    f"{tensor.name!r}; runtime 'litert' runs the model"
                )
        self._shapes: Shapes | None = None
        self._buffers: tuple[list[Any], list[Any]] = [], []
        self._kept: dict[int, int] = {}  # positions of states: input to output
        self._has_run = False  # since a state was kept

    def input_details(self) -> list[Details]:
        return self._details(self._inputs, self._host.official.get_input_tensor_details)

    def output_details(self) -> list[Details]:
        return self._details(self._outputs, self._host.official.get_output_tensor_details)

    def _details(self, tensors: Sequence[_Named], present: Callable[[str], Any]) -> list[Details]:
        if not tensors:
            return []  # the runtime would raise an error
        shapes = {name: details["shape"] for name, details in present(self._key).items()}
        return [_details(t.spec, t.name, shapes.get(t.official_name)) for t in tensors]

    def allocate(self, values: Sequence[NDArray[Any]]) -> None:
        self._allocate([array.shape for array in values])

    def allocate_inputs(self) -> None:
        """Allocate for the present shapes of the inputs."""
        self._allocate([tuple(entry["shape"].tolist()) for entry in self.input_details()])

    def _allocate(self, shapes: Shapes) -> None:
        official = self._host.official
        if shapes == self._shapes:
            return
        for index, (entry, shape) in enumerate(zip(self.input_details(), shapes, strict=True)):
            if tuple(entry["shape"].tolist()) != shape:
                official.resize_input_tensor(index, list(shape), self._number, strict=False)
        self.output_details()  # which makes the runtime allocate
        self._buffers = (
            official.create_input_buffers(self._number),
            official.create_output_buffers(self._number),
        )
        self._shapes = shapes

    def fill(self, values: Sequence[NDArray[Any]]) -> None:
        shapes = self._shapes or ()
        for position, (buffer, tensor, shape, array) in enumerate(
            zip(self._buffers[0], self._inputs, shapes, values, strict=True)
        ):
            if position in self._kept:
                continue
            expected = NUMPY_DTYPES[tensor.spec.type]
            if array.dtype != expected or array.shape != shape:
                raise ArgumentError(
                    f"input {tensor.name!r} is {array.dtype}{list(array.shape)}, expected "
                    f"{expected}{list(shape)}"
                )
            buffer.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def prepare(self, values: Sequence[NDArray[Any]]) -> None:
        self.allocate(values)
        self.fill(values)

    def invoke(self) -> None:
        given, made = self._buffers
        if self._has_run:
            for position, output in self._kept.items():
                given[position], made[output] = made[output], given[position]
        self._has_run = bool(self._kept)
        self._host.official.run_by_index(self._number, *self._buffers)

    def keep_state(self, values: Sequence[NDArray[Any]]) -> KeptState | None:
        """Keep each state in two buffers that are exchanged at each run.

        The result is None if the model has no states.
        """
        self.fill(values)
        inputs, outputs = (
            {entry["name"]: entry for entry in details}
            for details in (self.input_details(), self.output_details())
        )
        names = state_names(inputs, outputs)
        places = [list(inputs), list(outputs)]
        self._kept = {places[0].index(name): places[1].index(name) for name in names}
        if not names:
            return None
        return KeptState(names, sum(values[i].nbytes for i in self._kept), lambda: 0)

    def outputs(self) -> list[tuple[Details, NDArray[Any]]]:
        found = zip(self.output_details(), self._buffers[1], strict=True)
        return [(entry, _read(buffer, entry)) for entry, buffer in found]


def _require_no_variables(model: Model) -> None:
    """Raise an error if a model has variables, since the runtime rejects such models."""
    tensors = (tensor for graph in model.subgraphs for tensor in graph.tensors)
    variable = next((tensor for tensor in tensors if tensor.is_variable), None)
    if variable is not None:
        raise UnsupportedModelError(
            f"the official CompiledModel loads no model with variable tensors, such as tensor "
            f"{variable.index} {variable.name!r}; runtime 'litert' runs it"
        )


class _Named(NamedTuple):
    """A tensor, its name in the call's details, and LiteRT's name for it."""

    spec: TensorSpec
    name: str
    official_name: str


def _signature(model: Model, wanted: str | None) -> Signature | None:
    """Return the signature *wanted*, or the first subgraph's; None if the model has none."""
    for signature in model.signatures:
        if signature.key == wanted or (wanted is None and signature.subgraph_index == 0):
            return signature
    if not model.signatures:
        return None
    raise ArgumentError(
        "CompiledModel runs signatures only, and no signature calls the model's first subgraph; "
        f"name one of: {', '.join(sorted(s.key for s in model.signatures))}"
    )


def _tensors(
    model: Model,
    signature: Signature | None,
    side: Literal["inputs", "outputs"],
    names: Sequence[str],
    *,
    is_named: bool,
) -> list[_Named]:
    """Return a signature's inputs or outputs, or the first subgraph's, in the runtime's order.

    *names* are the runtime's names of the tensors. Details have these names if *is_named*, or else
    the tensors' own.
    """
    graph = model.subgraphs[0 if signature is None else signature.subgraph_index]
    if signature is None:
        indices: Sequence[int] = getattr(graph, side)
    else:
        indices = [getattr(signature, side)[name] for name in names]
    specs = [graph.tensors[index] for index in indices]
    return [
        _Named(spec, name if is_named else spec.name, name)
        for spec, name in zip(specs, names, strict=True)
    ]


def _details(
    spec: TensorSpec, name: str | None = None, shape: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return the details of the tensor *spec*, with another *name* and its present *shape*."""
    details = tensor_details(Tensor.from_spec(spec, None))
    if name is not None:
        details["name"] = name
    if shape is not None:
        details["shape"] = np.array(shape, np.int32)
    return details


def _read(buffer: Any, details: Details) -> NDArray[Any]:
    """Return the values of an output from *buffer*, with dtype and shape of *details*."""
    dtype, shape = np.dtype(details["dtype"]), details["shape"].tolist()
    count = math.prod(shape) * dtype.itemsize
    found = buffer.read(count, np.uint8) if count else np.empty(0, np.uint8)
    values: NDArray[Any] = found.view(dtype).reshape(shape)
    return values
