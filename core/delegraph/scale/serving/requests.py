"""Inference requests and responses, independent of the protocol."""

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
        outputs: mapping from each requested output to whether it is requested as binary data; empty
            means all outputs.
        id: identifier that the response repeats; empty if there is none.
        binary: whether outputs that have no own setting are requested as binary data.
        model: name of the model in the request; empty if it has none.
    """

    inputs: Mapping[str, GivenTensor]
    outputs: Mapping[str, bool | None] = field(default_factory=dict)
    id: str = ""
    binary: bool = False
    model: str = ""

    def is_binary(self, output: str) -> bool:
        """Whether the request asks for the output as binary data."""
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
        outputs: the requested outputs.
    """

    model: str
    version: str
    id: str
    outputs: tuple[OutputTensor, ...]
