"""A model's inputs and outputs as tensors of the Open Inference Protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, PredictionError, did_you_mean
from delegraph.json_records import JsonRecord
from delegraph.scale.computing import ERROR
from delegraph.scale.rows import Columns, is_ragged, row_count
from delegraph.tools.model_call import Details, declared_shape
from delegraph.tools.tensor_names import called_name

DATATYPES: Mapping[str, str] = {
    "bool": "BOOL",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    **{
        f"{sign}int{bits}": f"{sign}INT{bits}".upper()
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""Mapping from a dtype's name to the protocol's name for it; texts are ``BYTES``."""


@dataclass(frozen=True, slots=True)
class ServedTensor(JsonRecord):
    """An input or output of the served model.

    Attributes:
        name: name of the predictor's column.
        datatype: name of the datatype in the protocol.
        shape: shape of the tensor; -1 for an unknown dimension.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GivenTensor:
    """A tensor of a request: its stated datatype, and its values."""

    datatype: str
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class ServedSignature:
    """Inputs and outputs of the served model, in the protocol's terms.

    Attributes:
        inputs: mapping from each input's name to the input.
        outputs: mapping from each output's name to the output.
        has_rows: whether a request has several rows along the first axis of each tensor. Otherwise
            a request is one row, and its tensors have the model's shapes.
        max_rows: largest number of rows in a request.
        input_aliases: mapping from an input tensor's name to the input's name, if the names differ,
            because the model's metadata names the input.
        output_aliases: the same for outputs.
    """

    inputs: Mapping[str, ServedTensor]
    outputs: Mapping[str, ServedTensor]
    has_rows: bool
    max_rows: int
    input_aliases: Mapping[str, str] = field(default_factory=dict)
    output_aliases: Mapping[str, str] = field(default_factory=dict)

    def columns(self, given: Mapping[str, GivenTensor]) -> Columns:
        """Return the rows of a request, as columns of the predictor.

        Args:
            given: mapping from the name of an input, or of its tensor, to the tensor.

        Returns:
            Mapping from a column to its values of shape ``[rows, ...]``.

        Raises:
            ArgumentError: an input is missing or unknown, or has another datatype or shape; or the
                inputs have different numbers of rows, no rows, or more than :attr:`max_rows`.
        """
        known = sorted(self.inputs)
        for name in given:
            own = self.input_aliases.get(name, name)
            if own not in self.inputs:
                hint = did_you_mean(name, known)
                raise ArgumentError(f"no input {name!r}{hint}; inputs are {', '.join(known)}")
            if own != name and own in given:
                raise ArgumentError(f"{name!r} and {own!r} are one input, expected one of them")
        given = {self.input_aliases.get(name, name): tensor for name, tensor in given.items()}
        columns = {}
        for name, tensor in self.inputs.items():
            if name not in given:
                raise ArgumentError(f"input {name!r} is missing; inputs are {', '.join(known)}")
            _require_fitting(tensor, given[name])
            values = given[name].values
            columns[name] = values if self.has_rows else values[np.newaxis]
        self._require_rows(columns)
        return columns

    def _require_rows(self, columns: Columns) -> None:
        counts = {name: len(values) for name, values in columns.items()}
        rows = row_count(columns)
        if len(set(counts.values())) > 1:
            each = ", ".join(f"{name!r} {count}" for name, count in counts.items())
            raise ArgumentError(f"inputs have different numbers of rows: {each}")
        if not 1 <= rows <= self.max_rows:
            raise ArgumentError(f"a request of {rows} rows, expected 1 to {self.max_rows}")

    def wanted(self, names: Sequence[str]) -> dict[str, str]:
        """Return a mapping from the names of requested outputs to the outputs' own names.

        Args:
            names: names of outputs, or of their tensors; empty means all outputs.

        Raises:
            ArgumentError: the model has no output of a given name.
        """
        known = sorted(self.outputs)
        found = {name: self.output_aliases.get(name, name) for name in names or self.outputs}
        for name, own in found.items():
            if own not in self.outputs:
                hint = did_you_mean(name, known)
                raise ArgumentError(f"no output {name!r}{hint}; outputs are {', '.join(known)}")
        return found

    def tensors(self, rows: Columns) -> dict[str, NDArray[Any]]:
        """Return the outputs of a request's rows as the arrays that the protocol sends.

        Raises:
            PredictionError: the rows of an output have different shapes.
        """
        return {name: self._tensor(name, rows[name]) for name in self.outputs}

    def _tensor(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if is_ragged(values):
            if len(values) > 1:
                shapes = ", ".join(str(list(row.shape)) for row in values)
                raise PredictionError(
                    f"output {name!r} has another shape in each row ({shapes}): send one row a "
                    "request"
                )
            values = values[0][np.newaxis]
        return values if self.has_rows else values[0]


def served_signature(
    inputs: Mapping[str, Details], outputs: Mapping[str, Details], max_rows: int
) -> ServedSignature:
    """Return the signature of a served model, from the details of its inputs and outputs.

    A request may have several rows if the first dimension of every tensor is 1 or unknown.

    Args:
        inputs: mapping from a column to the details of its input.
        outputs: mapping from a column to the details of its output.
        max_rows: largest number of rows in a request.

    Raises:
        ArgumentError: the protocol lacks the type of a tensor, or an output has the reserved name
            ``error``.
    """
    if ERROR in outputs:
        raise ArgumentError(
            f"an output called {ERROR!r} cannot be served: give it another name, "
            f"outputs={{{ERROR!r}: ...}}"
        )
    is_open = all(declared_shape(entry)[:1] == [-1] for entry in inputs.values())
    has_rows = all(declared_shape(entry)[:1] in ([1], [-1]) for entry in inputs.values()) and all(
        declared_shape(entry)[:1] in ([1], [-1] if is_open else [1]) for entry in outputs.values()
    )
    return ServedSignature(
        {name: _tensor(name, entry, has_rows) for name, entry in inputs.items()},
        {name: _tensor(name, entry, has_rows) for name, entry in outputs.items()},
        has_rows,
        max_rows,
        _aliases(inputs),
        _aliases(outputs),
    )


def _aliases(columns: Mapping[str, Details]) -> dict[str, str]:
    """Return a mapping from tensors' names to columns; names that are not unique are omitted."""
    names = {column: called_name(entry) for column, entry in columns.items()}
    counts = Counter([*names.values(), *columns])
    return {
        name: column
        for column, name in names.items()
        if counts[name] == 1 and name != columns[column]["name"]
    }


def _tensor(name: str, details: Details, has_rows: bool) -> ServedTensor:
    dtype = np.dtype(details["dtype"])
    datatype = "BYTES" if dtype.kind in "SOU" else DATATYPES.get(dtype.name)
    if datatype is None:
        raise ArgumentError(
            f"tensor {name!r} is {dtype.name}, which the Open Inference Protocol does not have"
        )
    shape = declared_shape(details)
    return ServedTensor(name, datatype, (-1, *shape[1:]) if has_rows else tuple(shape))


def _require_fitting(tensor: ServedTensor, given: GivenTensor) -> None:
    values = given.values
    if given.datatype != tensor.datatype:
        raise ArgumentError(
            f"input {tensor.name!r} is {given.datatype}, expected {tensor.datatype}"
        )
    if tensor.datatype == "BYTES" and not all(isinstance(v, str | bytes) for v in values.flat):
        raise ArgumentError(f"input {tensor.name!r} is BYTES and holds bytes that are no text")
    fits = values.ndim == len(tensor.shape) and all(
        want in (-1, have) for want, have in zip(tensor.shape, values.shape, strict=True)
    )
    if not fits:
        raise ArgumentError(
            f"input {tensor.name!r} has shape {list(values.shape)}, expected {list(tensor.shape)}"
        )
