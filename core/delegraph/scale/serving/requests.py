"""Inference requests and responses, whatever protocol brings them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from delegraph.scale.serving.tensors import GivenTensor


@dataclass(frozen=True, slots=True)
class InferRequest:
    """A request, decoded but not yet compared with the model's signature.

    Attributes:
        inputs: mapping from an input's name to its tensor.
        outputs: names of the outputs that are wanted, each with whether it is wanted as binary
            data; all outputs if empty.
        id: identifier that the response repeats; empty if there is none.
        binary: whether outputs without a word of their own are wanted as binary data.
        model: name of the model as the request states it; empty if it does not.
    """

    inputs: Mapping[str, GivenTensor]
    outputs: Mapping[str, bool | None] = field(default_factory=dict)
    id: str = ""
    binary: bool = False
    model: str = ""

    def is_binary(self, output: str) -> bool:
        """Return whether the request wants the output as binary data."""
        wanted = self.outputs.get(output)
        return self.binary if wanted is None else wanted


@dataclass(frozen=True, slots=True)
class OutputTensor:
    """An output of a response."""

    name: str
    datatype: str
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class InferResponse:
    """The answer to a request.

    Attributes:
        model: name of the model.
        version: version of the model; empty if it has none.
        id: identifier of the request.
        outputs: the wanted outputs.
    """

    model: str
    version: str
    id: str
    outputs: tuple[OutputTensor, ...]
