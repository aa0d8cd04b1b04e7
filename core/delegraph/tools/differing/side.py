"""``Side``: one of two compared set-ups, with its running interpreter."""

from __future__ import annotations

import re
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.model import Model
from delegraph.tools.model_call import Details, ModelCall, model_call
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import tensor_names, with_names

Outputs = Sequence[tuple[Details, NDArray[Any]]]
"""Details and values of each output, in order."""

_NOT_APPLIED = re.compile(r"(?<= is there for it and was not applied): delegates=\['([^']+)'\]")
_FLEX = "Select TensorFlow op(s), included in the given model"
_XNNPACK = "TfLiteXNNPackDelegate"


class Side:
    """One of two compared set-ups, with its interpreter, which computes on given inputs.

    Variables are reset to zero before each computation.

    Args:
        stack: exit stack that closes the interpreter at its end.
        setup: the set-up to run.
        signature: name of the signature to call; None means the whole model.
        is_reference: whether this side is the reference, so that error messages say so.
        model: the model, for the names of inputs and outputs; None loads it.
        arguments: further arguments of the interpreter.

    Attributes:
        inputs: details of the inputs, with the names that users see.
        is_reference: whether this side is the reference.
        values: input values of the next computation, in the order of *inputs*.
        seconds: duration of each computation.
    """

    def __init__(
        self,
        stack: ExitStack,
        setup: Setup,
        signature: str | None,
        *,
        is_reference: bool = False,
        model: Model | None = None,
        **arguments: Any,
    ) -> None:
        self.is_reference = is_reference
        with self._blamed():
            made: Any = setup.interpreter(**arguments)
            self.interpreter: Any = stack.enter_context(made)
            self._call: ModelCall = model_call(self.interpreter, signature)
        self._names = tensor_names(setup, signature, self._call, model)
        self.inputs = with_names(self._call.input_details(), self._names.inputs)
        self.values: list[NDArray[Any]] = []
        self.seconds: list[float] = []

    def allocate(self) -> None:
        """Apply the delegates to the shapes of :attr:`values`."""
        with self._blamed():
            self._call.allocate(self.values)

    def compute(self, warmup: int = 0) -> None:
        """Compute on :attr:`values` with variables reset, and measure the time.

        Args:
            warmup: number of computations before the measured one.
        """
        with self._blamed():
            if self.seconds:
                self.interpreter.reset_all_variables()
            self._call.prepare(self.values)
            for _ in range(warmup):
                self._call.invoke()
            if warmup:
                self.interpreter.reset_all_variables()
                self._call.prepare(self.values)
            start = time.perf_counter()
            self._call.invoke()
            self.seconds.append(time.perf_counter() - start)

    def compute_on(self, values: list[NDArray[Any]]) -> None:
        """Compute on *values*, and keep no reference to them, as they may be views."""
        self.values = values
        try:
            self.compute()
        finally:
            self.values = []

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Context in which errors say that they come from the reference, and which option helps."""
        try:
            yield
        except (RuntimeError, ValueError) as error:
            side = "the reference: " * self.is_reference
            error.args = (f"{side}{explained(str(error))}", *error.args[1:])
            raise

    def outputs(self) -> list[tuple[Details, NDArray[Any]]]:
        """Return details and values of all outputs."""
        found = self._call.outputs()
        named = with_names([entry for entry, _ in found], self._names.outputs)
        return [(entry, _own(values)) for entry, (_, values) in zip(named, found, strict=True)]

    def views(self, tensors: Sequence[int]) -> list[NDArray[Any]]:
        """Return views of allocated tensors of the first subgraph, by their indices."""
        return [np.asarray(self.interpreter.tensor(i)()) for i in tensors]

    def kept(
        self, tensors: Sequence[int], viewed: Container[int]
    ) -> list[tuple[Details, NDArray[Any]]]:
        """Return details and values of tensors of the first subgraph that the interpreter keeps.

        Args:
            tensors: indices of the tensors.
            viewed: indices of tensors to return as views, which are invalid after the next
                computation; others are copied.
        """
        details = {int(e["index"]): e for e in self.interpreter.get_tensor_details()}
        read, view = self.interpreter.get_tensor, self.interpreter.tensor
        return [
            (details[i], np.asarray(view(i)()) if i in viewed else _own(read(i))) for i in tensors
        ]


def explained(text: str) -> str:
    """Return the text of an error, with options for both sides that avoid it, if any exist."""
    if _FLEX in text:
        return (
            "LiteRT has no kernels for this model's operators of TensorFlow; for both sides: "
            '-d flex --reference "-d flex"'
        )
    if found := _NOT_APPLIED.search(text):
        name = found[1]
        both = f'-d {name} --reference "-d {name} --no-default-delegates"'
        return f"{_NOT_APPLIED.sub('', text)}; for both sides: {both}"
    if _XNNPACK in text:
        return f"{text}; XNNPACK fails, which -d none turns off on that side"
    return text


def _own(values: NDArray[Any]) -> NDArray[Any]:
    """Return *values* as an array that later runs do not change; copy only if necessary."""
    return values if values.flags.owndata else np.array(values)
