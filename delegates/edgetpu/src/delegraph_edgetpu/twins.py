"""Twin of a compiled model: the uncompiled model, cut to the part of the custom operator.

A real executable does not reveal its operators. But its inputs and outputs are also tensors of the
uncompiled model, with the same shapes, types and quantization. So the operators between them can
run in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from delegraph import Tensor
from delegraph.errors import OperatorError
from delegraph.graph import Quantization, SubgraphSpec, TensorSpec, load_model, self_contained
from delegraph.schema import read_model, write_model

_MOST_NAMED = 3


def twin_model(path: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bytes:
    """Return the part of the uncompiled model between a custom operator's inputs and outputs.

    Args:
        path: path of the uncompiled model.
        inputs: inputs of the custom operator, without variables.
        outputs: outputs of the custom operator.

    Raises:
        ArgumentError: the file cannot be opened.
        MalformedModelError: the twin is no valid model.
        OperatorError: the twin has no match for an input or output.
    """
    model = load_model(path)
    if len(model.subgraphs) != 1:
        raise OperatorError(f"the twin {path!r} has {len(model.subgraphs)} subgraphs, expected 1")
    subgraph = model.subgraphs[0]
    made = [index for operator in subgraph.operators for index in operator.outputs if index >= 0]
    read = _Matching(path, subgraph, "input", subgraph.inputs, subgraph.inputs)
    written = _Matching(path, subgraph, "output", subgraph.outputs, made)
    if len(inputs) != len(subgraph.inputs):
        raise OperatorError(
            f"the twin {path!r} has {len(subgraph.inputs)} inputs, the compiled model {len(inputs)}"
        )
    starts, ends = read.find_all(inputs), written.find_all(outputs)
    record = read_model(self_contained(model))
    (records,) = record.subgraphs or ()
    needed = _needed(subgraph, set(starts), ends)
    operators = tuple((records.operators or ())[index] for index in needed)
    cut = records.replace(inputs=starts, outputs=ends, operators=operators)
    return write_model(record.replace(subgraphs=(cut,), signature_defs=None))


class _Matching:
    """Finds the tensors of the uncompiled model (twin) that match those of the custom operator.

    Tensors match by type, shape and quantization, then by name and position.

    Args:
        path: path of the twin, for errors.
        subgraph: subgraph of the twin.
        what: ``input`` or ``output``.
        ends: inputs or outputs of the twin, which are preferred.
        candidates: all tensors that may match.
    """

    def __init__(
        self,
        path: str,
        subgraph: SubgraphSpec,
        what: str,
        ends: Sequence[int],
        candidates: Sequence[int],
    ) -> None:
        self._path = path
        self._tensors = subgraph.tensors
        self._what = what
        self._ends = ends
        self._candidates = candidates

    def find_all(self, wanted: Sequence[Tensor]) -> tuple[int, ...]:
        """Return the twin's tensor for each of *wanted*; no tensor is used twice.

        Raises:
            OperatorError: a tensor has no match, or several matches.
        """
        is_same_list = len(wanted) == len(self._ends)
        found: list[int] = []
        for position, tensor in enumerate(wanted):
            end = self._ends[position] if is_same_list else -1
            free = [i for i in dict.fromkeys(self._candidates) if i not in found]
            found.append(self._find(tensor, position, end, free))
        return tuple(found)

    def _find(self, tensor: Tensor, position: int, end: int, free: Sequence[int]) -> int:
        agreeing = [index for index in free if _agree(tensor, self._tensors[index])]
        preferences: Sequence[Callable[[int], bool]] = (
            lambda index: bool(tensor.name) and self._tensors[index].name == tensor.name,
            lambda index: index == end,
            lambda index: index in self._ends,
            lambda index: True,
        )
        for preferred in preferences:
            chosen = [index for index in agreeing if preferred(index)]
            if len(chosen) == 1:
                return chosen[0]
        raise OperatorError(self._failure(tensor, position, end, agreeing))

    def _failure(self, tensor: Tensor, position: int, end: int, agreeing: Sequence[int]) -> str:
        what = f"{self._what} {position} of the compiled model, {tensor.name!r}"
        kind = _described(tensor)
        if agreeing:
            names = ", ".join(repr(self._tensors[i].name) for i in agreeing[:_MOST_NAMED])
            more = f" and {len(agreeing) - _MOST_NAMED} more" * (len(agreeing) > _MOST_NAMED)
            return (
                f"{what} ({kind}), could be {len(agreeing)} tensors of the twin {self._path!r}: "
                f"{names}{more}; none has its name"
            )
        text = f"{self._path!r} is not the twin, the model that was compiled: {what}, is {kind}"
        if end < 0:
            return f"{text}; no tensor of the twin is"
        other = self._tensors[end]
        return (
            f"{text}; {self._what} {position} of the twin, {other.name!r}, is {_described(other)}"
        )


def _agree(tensor: Tensor, other: TensorSpec) -> bool:
    return (tensor.type, tensor.shape) == (other.type, other.shape) and _same_quantization(
        tensor.quantization, other.quantization
    )


def _same_quantization(a: Quantization | None, b: Quantization | None) -> bool:
    if a is None or b is None or not (a.scales.size and b.scales.size):
        return (a is None or not a.scales.size) == (b is None or not b.scales.size)
    return np.array_equal(a.zero_points, b.zero_points) and (
        a.scales.shape == b.scales.shape and np.allclose(a.scales, b.scales, rtol=1e-6, atol=0)
    )


def _described(tensor: Tensor | TensorSpec) -> str:
    text = f"{tensor.type.name}{list(tensor.shape)}"
    quantization = tensor.quantization
    if quantization is None or not quantization.scales.size:
        return text
    return f"{text}, scale {quantization.scale:.9g}, zero point {quantization.zero_point}"


def _needed(subgraph: SubgraphSpec, starts: set[int], ends: Sequence[int]) -> list[int]:
    """Return, in order, the operators that compute the tensors *ends* from the tensors *starts*."""
    wanted = set(ends)
    needed = []
    for operator in reversed(subgraph.operators):
        if wanted.intersection(operator.outputs):
            needed.append(operator.index)
            wanted.update(i for i in operator.inputs if i not in starts)
    return needed[::-1]
