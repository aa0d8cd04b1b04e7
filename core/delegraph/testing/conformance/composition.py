"""Builds larger models by joining cases of one operator."""

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
from delegraph.testing.subgraphs import main_subgraph

Array = NDArray[Any]


class Composition:
    """Builds a model of several cases, in which operators of one read results of another.

    A second model, whose results are right, is built in parallel. The two models differ only if a
    case has a reference model, because Delegraph cannot compute its operator.
    """

    def __init__(self) -> None:
        self._model, self._right = _Records(), _Records()
        self._right_of: dict[int, int] = {}  # tensor of the model to that of the right model
        self._has_reference = False
        self._fed: dict[int, Array] = {}

    def add(self, case: OperatorCase, wires: Mapping[int, int]) -> tuple[int, ...]:
        """Append the operators of a case; return the indices of its output tensors.

        Args:
            case: a case with one subgraph.
            wires: mapping from the position of a graph input of the case to the tensor that
                replaces it. The other graph inputs become graph inputs of the composition.
        """
        mine = self._model.add(case.records, wires)
        theirs = self._right.add(case.right, {i: self._right_of[to] for i, to in wires.items()})
        graph, right = case.main, main_subgraph(case.right)
        if case.reference is None:
            self._right_of.update({mine[i]: theirs[i] for i in mine})
        else:
            self._has_reference = True
            borders = (*(graph.inputs or ()), *(graph.outputs or ()))
            right_borders = (*(right.inputs or ()), *(right.outputs or ()))
            for i, j in zip(borders, right_borders, strict=True):
                self._right_of[mine[i]] = theirs[j]
        for position, (i, array) in enumerate(zip(graph.inputs or (), case.steps[0], strict=True)):
            if position not in wires:
                self._fed[mine[i]] = array
        return _mapped(graph.outputs, mine)

    @property
    def num_operators(self) -> int:
        """Number of operators in the model."""
        return self._model.num_operators

    def case(self, op: str, outputs: Sequence[int]) -> OperatorCase:
        """Return the model with the graph outputs *outputs*, as a case of *op*."""
        records, reference = self._model.model(tuple(self._fed), outputs), None
        if self._has_reference:
            reference = self._right.model(
                _mapped(tuple(self._fed), self._right_of), _mapped(outputs, self._right_of)
            )
        return OperatorCase(op, records, (tuple(self._fed.values()),), reference=reference)

    def unread(self) -> list[int]:
        """Return the tensors that are written and not read, and that the right model has as well.

        The right model lacks the inner tensors of a case with a reference model.
        """
        return [i for i in self._model.unread() if i in self._right_of]


class _Records:
    """Tensors, buffers and operators of a model, to which other models' records are appended."""

    def __init__(self) -> None:
        self._tensors: list[tables.Tensor] = []
        self._buffers: list[tables.Buffer] = [tables.Buffer()]
        self._codes: list[tables.OperatorCode] = []
        self._operators: list[tables.Operator] = []

    def add(self, records: tables.Model, wires: Mapping[int, int]) -> dict[int, int]:
        """Append the operators of the model *records*; return the new indices of its tensors.

        The result maps each tensor index of *records* to the index in this model. *wires* maps
        positions of its inputs to tensors of this model, which replace them.
        """
        graph, codes = main_subgraph(records), records.operator_codes or ()
        index = self._place(records, {(graph.inputs or ())[i]: to for i, to in wires.items()})
        for operator in graph.operators or ():
            self._operators.append(
                operator.replace(
                    opcode_index=self._code(codes[operator.opcode_index]),
                    inputs=_mapped(operator.inputs, index),
                    outputs=_mapped(operator.outputs, index),
                    intermediates=_mapped(operator.intermediates, index) or None,
                )
            )
        return index

    @property
    def num_operators(self) -> int:
        """Number of operators in the model."""
        return len(self._operators)

    def model(self, inputs: Sequence[int], outputs: Sequence[int]) -> tables.Model:
        """Return the model with the given graph inputs and outputs."""
        graph = tables.SubGraph(
            tensors=tuple(self._tensors),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            operators=tuple(self._operators),
            name="main",
        )
        return tables.Model(
            version=3,
            operator_codes=tuple(self._codes),
            subgraphs=(graph,),
            buffers=tuple(self._buffers),
        )

    def unread(self) -> list[int]:
        """Return the tensors that are written but not read by any operator."""
        read = {i for operator in self._operators for i in operator.inputs or ()}
        written = [i for operator in self._operators for i in operator.outputs or ()]
        return [i for i in written if i not in read]

    def _place(self, records: tables.Model, wired: Mapping[int, int]) -> dict[int, int]:
        """Append the tensors of the model *records*, except the *wired* ones.

        The result maps all its tensor indices to new indices, including those in *wired*.
        """
        buffers = records.buffers or ()
        index = {-1: -1, **wired}
        for i, record in enumerate(main_subgraph(records).tensors or ()):
            if i not in wired:
                index[i] = len(self._tensors)
                name = f"t{index[i]}"
                self._tensors.append(record.replace(buffer=len(self._buffers), name=name))
                self._buffers.append(buffers[record.buffer])
        return index

    def _code(self, code: tables.OperatorCode) -> int:
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)


def fed_definitions(case: OperatorCase) -> list[Fed]:
    """Return the graph inputs of a case, with values and tensor definitions."""
    graph = case.main
    records = [(graph.tensors or ())[i] for i in graph.inputs or ()]
    return [
        Fed(array, TensorDef(array.shape, TensorType(record.type), record.quantization))
        for array, record in zip(case.steps[0], records, strict=True)
    ]


def behind_a_reshape(trial: Trial) -> Trial | None:
    """Return the trial with a RESHAPE before its first input, whose new shape is a graph input.

    The shape is then known only during invoke. The result is None if Delegraph cannot run this
    model.
    """
    if len(trial.case.records.subgraphs or ()) > 1:
        return None
    first, *_ = fed_definitions(trial.case)
    shape = np.array(first.array.shape, np.int32)
    declared = replace(first.definition, shape=trial.case.declared_shapes[0])
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


def _mapped(indices: Sequence[int] | None, index: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(index[i] for i in indices or ())
