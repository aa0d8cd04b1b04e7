"""Calls a model as a whole, or through one of its signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.runtime.bound_state import state_names
from delegraph.runtime.signature_runner import SignatureRunner

Details = Mapping[str, Any]
"""An entry of ``Interpreter.get_input_details()`` or ``get_output_details()``."""


def input_name(details: Details) -> str:
    """Return the input *details* as text for messages: ``input 'x' (float32 [1, 4])``."""
    dtype = np.dtype(details["dtype"])
    kind = "string" if dtype.kind == "S" else dtype.name
    return f"input {details['name']!r} ({kind} {declared_shape(details)})"


def declared_shape(details: Details) -> list[int]:
    """Return the dimensions of the tensor *details*; -1 for unknown dimensions."""
    dims: list[int] = details["shape_signature"].tolist() or details["shape"].tolist()
    return dims


def input_positions(details: Sequence[Details], others: Mapping[str, int]) -> dict[str, int]:
    """Return the position of each input by every text that names it.

    Such a text is the position, a name in *others* such as a signature's, or the tensor's name. Of
    equal texts, a later kind of these wins.
    """
    positions = range(len(details))
    own = {entry["name"]: position for position, entry in enumerate(details)}
    return {**{str(position): position for position in positions}, **others, **own}


class Interpreter(Protocol):
    """Methods of interpreters that calls need; Delegraph's and the official one have them."""

    def get_input_details(self) -> list[dict[str, Any]]:
        """Return the details of each input."""

    def get_output_details(self) -> list[dict[str, Any]]:
        """Return the details of each output."""

    def get_signature_list(self) -> Any:
        """Return input and output names of each signature."""

    def get_signature_runner(self, signature_key: str | None = None) -> Any:
        """Return a callable for a signature."""

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int]) -> None:
        """Set the shape of an input to *tensor_size*."""

    def allocate_tensors(self) -> None:
        """Allocate all tensors, so that the model can be invoked."""

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy *value* into the input *tensor_index*."""

    def get_tensor(self, tensor_index: int) -> Any:
        """Return a copy of a tensor."""

    def invoke(self) -> None:
        """Run the model once."""


class ModelCall(Protocol):
    """A way to call a model: :meth:`allocate`, :meth:`fill`, :meth:`invoke`, :meth:`outputs`."""

    def input_details(self) -> list[Details]:
        """Return the details of each input, with the name used in this kind of call."""

    def output_details(self) -> list[Details]:
        """Return the details of each output, with the name used in this kind of call."""

    def allocate(self, values: Sequence[NDArray[Any]]) -> None:
        """Resize the inputs to the shapes of *values*, and allocate."""

    def fill(self, values: Sequence[NDArray[Any]]) -> None:
        """Copy the values of all inputs, in the order of the details."""

    def prepare(self, values: Sequence[NDArray[Any]]) -> None:
        """Allocate for *values*, one array per input, and fill the inputs."""

    def invoke(self) -> None:
        """Run the model on the present inputs; can be called again."""

    def outputs(self) -> list[tuple[Details, NDArray[Any]]]:
        """Return details and values of each output."""

    def keep_state(self, values: Sequence[NDArray[Any]]) -> KeptState | None:
        """Pass the signature's states, such as KV caches, from each run to the next, from now on.

        Then :meth:`fill` does not change the states, and :meth:`invoke` passes them on.

        Args:
            values: values of all inputs, in the order of the details; they contain the initial
                states.

        Returns:
            The states; None if the signature has none.
        """


class KeptState(NamedTuple):
    """States, such as KV caches, that each run passes to the next run.

    Attributes:
        names: names of the states, sorted.
        bytes: number of bytes of all states.
        copied_bytes: function that returns the number of bytes that each run copies to pass the
            states on; valid after a run.
    """

    names: tuple[str, ...]
    bytes: int
    copied_bytes: Callable[[], int]


@runtime_checkable
class MakesCalls(Protocol):
    """Interface of a runtime that returns ``ModelCall`` objects, without interpreter methods."""

    def call(self, signature: str | None = None) -> ModelCall:
        """Return the object that calls the signature of a name; None calls the whole model."""

    def get_signature_list(self) -> Any:
        """Return input and output names of each signature."""

    def allocate_tensors(self) -> None:
        """Allocate the first subgraph's tensors."""


def model_call(interpreter: Interpreter | MakesCalls, signature: str | None = None) -> ModelCall:
    """Return the object with the steps of a call, of a signature; None calls the whole model.

    Raises:
        ArgumentError: the model has no such signature.
    """
    if signature is not None:
        require_signature(signature, interpreter.get_signature_list())
    if isinstance(interpreter, MakesCalls):
        return interpreter.call(signature)
    if signature is None:
        return _WholeModel(interpreter)
    return _Signature(interpreter.get_signature_runner(signature), signature)


def allocate(interpreter: Interpreter | MakesCalls, signature: str | None = None) -> None:
    """Allocate the first subgraph, or that of *signature*, for its inputs' present shapes.

    Raises:
        ArgumentError: the model has no such signature.
    """
    if signature is None:
        interpreter.allocate_tensors()
        return
    call = model_call(interpreter, signature)
    shapes = [entry["shape"] for entry in call.input_details()]
    call.allocate([np.broadcast_to(np.uint8(0), shape) for shape in shapes])


def require_signature(signature: str, names: Iterable[str]) -> None:
    """Check that a model has a signature.

    Raises:
        ArgumentError: *signature* is not among *names*.
    """
    known = sorted(names)
    if signature not in known:
        have = f"it has {', '.join(map(repr, known))}" if known else "it has none"
        raise ArgumentError(
            f"the model has no signature {signature!r}{did_you_mean(signature, known)}; {have}"
        )


class _WholeModel:
    """Call of the first subgraph, with tensors by index."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def input_details(self) -> list[Details]:
        return list(self._interpreter.get_input_details())

    def output_details(self) -> list[Details]:
        return list(self._interpreter.get_output_details())

    def prepare(self, values: Sequence[NDArray[Any]]) -> None:
        self.allocate(values)
        self.fill(values)

    def allocate(self, values: Sequence[NDArray[Any]]) -> None:
        for entry, array in zip(self.input_details(), values, strict=True):
            if list(array.shape) != entry["shape"].tolist():
                self._interpreter.resize_tensor_input(entry["index"], array.shape)
        self._interpreter.allocate_tensors()
        self._inputs = [entry["index"] for entry in self.input_details()]

    def fill(self, values: Sequence[NDArray[Any]]) -> None:
        for index, array in zip(self._inputs, values, strict=True):
            self._interpreter.set_tensor(index, array)

    def invoke(self) -> None:
        self._interpreter.invoke()

    def outputs(self) -> list[tuple[Details, NDArray[Any]]]:
        return [(e, self._interpreter.get_tensor(e["index"])) for e in self.output_details()]

    def keep_state(self, values: Sequence[NDArray[Any]]) -> KeptState | None:
        return None  # names of tensors do not tell which are states


class _Signature:
    """Call of a signature, with tensors by name.

    Calling a signature runner would allocate, fill, invoke and copy the outputs at once. This class
    calls the runner's steps one by one; they are the same in both runtimes.
    """

    def __init__(self, runner: Any, key: str) -> None:
        self._runner = runner
        self._wrapper = runner._interpreter_wrapper
        self._subgraph = self._wrapper.GetSubgraphIndexFromSignature(key)
        self._inputs = [entry["index"] for entry in self.input_details()]
        self._compute = self._wrapper.Invoke
        self._kept: frozenset[int] = frozenset()  # positions of inputs
        self._handed_on: list[tuple[NDArray[Any], NDArray[Any]]] = []  # input, output

    def input_details(self) -> list[Details]:
        return _named(self._runner.get_input_details())

    def output_details(self) -> list[Details]:
        return _named(self._runner.get_output_details())

    def prepare(self, values: Sequence[NDArray[Any]]) -> None:
        self.allocate(values)
        self.fill(values)

    def allocate(self, values: Sequence[NDArray[Any]]) -> None:
        for index, array in zip(self._inputs, values, strict=True):
            shape = np.array(array.shape, np.int32)
            self._wrapper.ResizeInputTensor(index, shape, False, self._subgraph)
        self._wrapper.AllocateTensors(self._subgraph)

    def fill(self, values: Sequence[NDArray[Any]]) -> None:
        for position, (index, array) in enumerate(zip(self._inputs, values, strict=True)):
            if position not in self._kept:
                self._wrapper.SetTensor(index, array, self._subgraph)

    def invoke(self) -> None:
        self._compute(self._subgraph)
        for given, made in self._handed_on:
            np.copyto(given, made)

    def keep_state(self, values: Sequence[NDArray[Any]]) -> KeptState | None:
        """Keep states in place in Delegraph; copy them after each run of an official runtime.

        The result is None if the model has no states.
        """
        self.fill(values)
        inputs, outputs = self._runner.get_input_details(), self._runner.get_output_details()
        names = state_names(inputs, outputs)
        if isinstance(self._runner, SignatureRunner):
            names = self._runner.state_names
        if not names:
            return None
        first = dict(zip(inputs, values, strict=True))
        self._kept = frozenset(i for i, name in enumerate(inputs) if name in names)
        sizes = {name: first[name].nbytes for name in names}
        if isinstance(self._runner, SignatureRunner):
            for name, array in self._runner.bind_state().items():
                array[...] = first[name]
            runner = self._runner

            def copied() -> int:
                return sum(
                    size for name, size in sizes.items() if name not in runner.states_in_place
                )

            return KeptState(names, sum(sizes.values()), copied)
        view = partial(self._wrapper.tensor, self._runner, subgraph_index=self._subgraph)
        indices = [(inputs[name]["index"], outputs[name]["index"]) for name in names]
        self._handed_on = [(view(given), view(made)) for given, made in indices]
        return KeptState(names, sum(sizes.values()), lambda: sum(sizes.values()))

    def outputs(self) -> list[tuple[Details, NDArray[Any]]]:
        read = self._wrapper.GetTensor
        return [(e, read(e["index"], self._subgraph)) for e in self.output_details()]


def _named(details: Mapping[str, Details]) -> list[Details]:
    """Return the details of a signature's tensors, with the signature's names."""
    return [{**entry, "name": name} for name, entry in details.items()]
