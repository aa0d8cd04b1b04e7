"""Larger models made of cases of one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.schema.options import ReshapeOptions
from delegraph.testing.conformance.trials import Trial, trial_of
from delegraph.testing.one_op import TensorDef, tensor
from delegraph.testing.operator_case import Fed, OperatorCase, operator_case

Array = NDArray[Any]


class Composition:
    """A model that grows by the operators of cases, wired to each other."""

    def __init__(self) -> None:
        self._tensors: list[tables.Tensor] = []
        self._buffers: list[tables.Buffer] = [tables.Buffer()]
        self._codes: list[tables.OperatorCode] = []
        self._operators: list[tables.Operator] = []
        self._fed: dict[int, Array] = {}

    def add(self, case: OperatorCase, wires: Mapping[int, int]) -> tuple[int, ...]:
        """Append the operators of a case; return the tensors that are its outputs.

        Args:
            case: of one subgraph.
            wires: position of a graph input of the case to the tensor that it shall be; the other
                graph inputs become graph inputs of the composition.
        """
        graph, codes = _main(case.records), case.records.operator_codes or ()
        index = self._place(case, {(graph.inputs or ())[i]: to for i, to in wires.items()})
        for operator in graph.operators or ():
            self._operators.append(
                operator.replace(
                    opcode_index=self._code(codes[operator.opcode_index]),
                    inputs=_mapped(operator.inputs, index),
                    outputs=_mapped(operator.outputs, index),
                    intermediates=_mapped(operator.intermediates, index) or None,
                )
            )
        return _mapped(graph.outputs, index)

    def case(self, op: str, outputs: Sequence[int]) -> OperatorCase:
        """Return the model with these graph outputs, as a case of *op*."""
        graph = tables.SubGraph(
            tensors=tuple(self._tensors),
            inputs=tuple(self._fed),
            outputs=tuple(outputs),
            operators=tuple(self._operators),
            name="main",
        )
        records = tables.Model(
            version=3,
            operator_codes=tuple(self._codes),
            subgraphs=(graph,),
            buffers=tuple(self._buffers),
        )
        return OperatorCase(op, records, (tuple(self._fed.values()),))

    def unread(self) -> list[int]:
        """Return the tensors that operators write and none reads."""
        read = {i for operator in self._operators for i in operator.inputs or ()}
        written = [i for operator in self._operators for i in operator.outputs or ()]
        return [i for i in written if i not in read]

    def _place(self, case: OperatorCase, wired: Mapping[int, int]) -> dict[int, int]:
        """Append the case's tensors but the wired ones; return where each is."""
        graph, buffers = _main(case.records), case.records.buffers or ()
        fed = dict(zip(graph.inputs or (), case.steps[0], strict=True))
        index = {-1: -1, **wired}
        for i, record in enumerate(graph.tensors or ()):
            if i not in wired:
                index[i] = len(self._tensors)
                name = f"t{index[i]}"
                self._tensors.append(record.replace(buffer=len(self._buffers), name=name))
                self._buffers.append(buffers[record.buffer])
                if i in fed:
                    self._fed[index[i]] = fed[i]
        return index

    def _code(self, code: tables.OperatorCode) -> int:
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)


def fed_definitions(case: OperatorCase) -> list[Fed]:
    """Return the graph inputs of a case: what they are given and what kind of tensor they are."""
    graph = _main(case.records)
    records = [(graph.tensors or ())[i] for i in graph.inputs or ()]
    return [
        Fed(array, TensorDef(array.shape, TensorType(record.type), record.quantization))
        for array, record in zip(case.steps[0], records, strict=True)
    ]


def behind_a_reshape(trial: Trial) -> Trial | None:
    """Return the trial with its first input behind a RESHAPE to a shape that is an input, too.

    So the shape is known only while invoking. None when Delegraph cannot do that.
    """
    if len(trial.case.records.subgraphs or ()) > 1:
        return None
    first, *_ = fed_definitions(trial.case)
    shape = np.array(first.array.shape, np.int32)
    declared = replace(first.definition, shape=_declared_shape(trial.case))
    target = replace(declared, shape_signature=(-1,) * len(declared.shape))
    reshaping = operator_case(
        "RESHAPE",
        [Fed(first.array, declared), Fed(shape, tensor(shape.shape, "INT32"))],
        [target],
        ReshapeOptions(),
    )
    model = Composition()
    (reshaped,) = model.add(reshaping, {})
    outputs = model.add(trial.case, {0: reshaped})
    return trial_of(model.case(trial.case.op, outputs))


def _declared_shape(case: OperatorCase) -> tuple[int, ...]:
    graph = _main(case.records)
    return tuple((graph.tensors or ())[(graph.inputs or ())[0]].shape or ())


def _mapped(indices: Sequence[int] | None, index: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(index[i] for i in indices or ())


def _main(records: tables.Model) -> tables.SubGraph:
    return (records.subgraphs or ())[0]
