"""The models of a pipeline, with the source of each input and the pipeline's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.errors import ArgumentError

Arrays = dict[str, NDArray[Any]]
"""Mapping from a tensor's name to its array."""

Request = tuple[bool, Arrays]
"""Whether the caller named its arrays; and all known arrays: inputs and segments' outputs."""

Detail = dict[str, Any]


class Segment:
    """One model of a pipeline, with its interpreter and tensors.

    Attributes:
        interpreter: interpreter of the segment.
        inputs: details of its inputs.
        outputs: details of its outputs.
        kept: names of the arrays that later segments or the results need.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        interpreter.allocate_tensors()
        self.interpreter = interpreter
        self.inputs = interpreter.get_input_details()
        self.outputs = interpreter.get_output_details()
        self.kept: frozenset[str] = frozenset()

    def run(self, request: Request) -> Request:
        """Run the segment.

        Return *request* with the segment's outputs added, without arrays that are not needed later.
        """
        is_named, values = request
        for detail in self.inputs:
            self.interpreter.set_tensor(detail["index"], values[detail["name"]])
        self.interpreter.invoke()
        made = {
            d["name"]: np.asarray(self.interpreter.get_tensor(d["index"])) for d in self.outputs
        }
        return is_named, {k: v for k, v in {**values, **made}.items() if k in self.kept}


class SegmentChain:
    """Segments of a pipeline whose inputs and outputs match.

    Args:
        interpreters: interpreters of the segments, in order.

    Attributes:
        segments: the segments in order.
        results: names of the last segment's outputs, then of outputs that no segment reads.

    Raises:
        ArgumentError: there is no segment, a segment occurs twice, or two segments do not match.
    """

    def __init__(self, interpreters: Sequence[Interpreter]) -> None:
        if not interpreters:
            raise ArgumentError("a pipeline has at least one interpreter, there is none")
        if len({id(interpreter) for interpreter in interpreters}) < len(interpreters):
            raise ArgumentError("an interpreter is there twice; each segment needs one of its own")
        self.segments = [Segment(interpreter) for interpreter in interpreters]
        self._require_fit()
        self.results = self._results()
        needed = frozenset(self.results)
        for segment in reversed(self.segments):
            segment.kept = needed
            needed |= {detail["name"] for detail in segment.inputs}

    def checked(self, given: Mapping[str, Any] | Sequence[Any]) -> Arrays:
        """Return copies of the pipeline's inputs *given*, by name.

        *given* has the arrays by name, or in the order of the first segment's inputs.

        Raises:
            ArgumentError: names, dtypes or shapes differ from the first segment's inputs.
        """
        details = self.segments[0].inputs
        names = [detail["name"] for detail in details]
        if not isinstance(given, Mapping):
            if len(given) != len(names):
                raise ArgumentError(
                    f"{len(given)} inputs are given, expected {len(names)}: {names}"
                )
            given = dict(zip(names, given, strict=True))
        if set(given) != set(names):
            raise ArgumentError(f"inputs {sorted(given)} are given, expected {sorted(names)}")
        arrays = {name: np.array(given[name]) for name in names}
        for detail in details:
            array = arrays[detail["name"]]
            if (array.dtype, array.shape) != (detail["dtype"], tuple(detail["shape"])):
                raise ArgumentError(
                    f"input {detail['name']!r} is {array.dtype.name} {list(array.shape)}, expected "
                    f"{_described(detail)}"
                )
        return arrays

    def _require_fit(self) -> None:
        known = {detail["name"]: detail for detail in self.segments[0].inputs}
        for position, segment in enumerate(self.segments):
            for detail in segment.inputs:
                name = detail["name"]
                if name not in known:
                    raise ArgumentError(
                        f"input {name!r} of segment {position} is no output of an earlier segment; "
                        f"there are {sorted(known)}"
                    )
                if _described(detail) != _described(known[name]):
                    raise ArgumentError(
                        f"input {name!r} of segment {position} is {_described(detail)}, an earlier "
                        f"segment makes {_described(known[name])}"
                    )
            known.update({detail["name"]: detail for detail in segment.outputs})

    def _results(self) -> tuple[str, ...]:
        read = {detail["name"] for segment in self.segments for detail in segment.inputs}
        *earlier, last = self.segments
        names = [detail["name"] for detail in last.outputs]
        others = [detail["name"] for segment in earlier for detail in segment.outputs]
        return tuple(dict.fromkeys([*names, *(name for name in others if name not in read)]))


def _described(detail: Detail) -> str:
    return f"{np.dtype(detail['dtype']).name} {detail['shape'].tolist()}"
