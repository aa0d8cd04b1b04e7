"""Models of an operator with TRANSPOSE nodes before inputs and after outputs.

Engines with another order of dimensions put transpositions around operators, and then move the
transpositions across other operators. If an engine uses a wrong axis here, models of a single
operator do not show the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from delegraph.schema.options import TransposeOptions
from delegraph.testing.conformance.composition import Composition, fed_definitions
from delegraph.testing.conformance.trials import Trial
from delegraph.testing.one_op import TensorDef, constant
from delegraph.testing.operator_case import Fed, OperatorCase, operator_case


def transposed(trial: Trial) -> Iterator[OperatorCase]:
    """Yield a trial's model with all inputs and outputs transposed, then with the first input only.

    First only the channels move, as for convolutions, then all dimensions. Nothing is yielded for
    models with several subgraphs or invokes, or with fewer than two dimensions.

    Args:
        trial: a model with its inputs and right results.
    """
    graph, *others = trial.case.records.subgraphs or ()
    given = fed_definitions(trial.case)
    records = [(graph.tensors or ())[i] for i in graph.outputs or ()]
    made = [
        Fed(array, TensorDef(array.shape, type, record.quantization))
        for array, type, record in zip(trial.expected[0], trial.output_types, records, strict=True)
    ]
    if others or len(trial.case.steps) > 1 or all(each.array.ndim < 2 for each in given):
        return
    for keeps_batch in (True, False):
        yield _surrounded(trial.case, given, made, keeps_batch)
        yield _surrounded(trial.case, given[:1], [], keeps_batch)


def _surrounded(
    case: OperatorCase, given: list[Fed], made: list[Fed], keeps_batch: bool
) -> OperatorCase:
    """Return *case* with a TRANSPOSE before inputs and after outputs; its results stay the same.

    Args:
        case: the model with its input arrays.
        given: the inputs to transpose, the first ones of the model.
        made: the outputs to transpose, the first ones of the model; may be empty.
        keeps_batch: whether the transpositions leave the first axis in place.
    """
    model = Composition()
    wires: dict[int, int] = {}
    for position, each in enumerate(given):
        if each.array.ndim > 1:
            before = _transposition(each, _order(each, keeps_batch))
            (wires[position],) = model.add(before, {})
    outputs = list(model.add(case, wires))
    for position, each in enumerate(made):
        if each.array.ndim > 1:
            back = np.argsort(_order(each, keeps_batch)).tolist()
            turned = replace(each, array=each.array.transpose(back))
            (outputs[position],) = model.add(_transposition(turned, back), {0: outputs[position]})
    return model.case(case.op, outputs)


def _order(data: Fed, keeps_batch: bool) -> list[int]:
    """Return the axes of *data* as a permutation that moves the first axis to the end.

    With *keeps_batch*, the second axis is moved instead, if there is one.
    """
    rank = data.array.ndim
    return [0, *range(2, rank), 1] if keeps_batch and rank > 2 else [*range(1, rank), 0]


def _transposition(to: Fed, order: Sequence[int]) -> OperatorCase:
    """Return a case of TRANSPOSE with the axes in *order*, whose output is *to*."""
    source = to.array.transpose(np.argsort(order))
    return operator_case(
        "TRANSPOSE",
        [
            Fed(source, replace(to.definition, shape=source.shape)),
            constant(np.array(order, np.int32)),
        ],
        [replace(to.definition, shape=to.array.shape)],
        TransposeOptions(),
    )
