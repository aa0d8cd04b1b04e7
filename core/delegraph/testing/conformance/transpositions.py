"""Checks of operators between TRANSPOSE nodes.

Engines with another order of dimensions put transpositions around operators, and then move the
transpositions across other operators. If an engine uses a wrong axis here, models of a single
operator do not show the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from unittest import SkipTest

import numpy as np

from delegraph.schema.enums import TensorType
from delegraph.schema.options import TransposeOptions
from delegraph.testing.conformance.attempts import Attempt, careful_attempt, wrong
from delegraph.testing.conformance.bundles import attempts, may_be_part, right_in_bundles
from delegraph.testing.conformance.composition import Composition, fed_definitions
from delegraph.testing.conformance.numbers import smallest
from delegraph.testing.conformance.reproduction import rerun
from delegraph.testing.conformance.sample_models import first_step
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, trials_of
from delegraph.testing.one_op import TensorDef, constant
from delegraph.testing.operator_case import Fed, OperatorCase, operator_case

TOGETHER = 32
"""Number of models that are joined into one model, which is compiled once."""


def transposed_are_right(subject: Subject) -> None:
    """Check that each operator gives right results between TRANSPOSE nodes.

    Raises:
        AssertionError: a result is wrong; the message names the operator.
        SkipTest: the delegate claims TRANSPOSE for none of the types of its other claims.
    """
    parts = [trial for op in subject.operators for trial in _drawn(subject, op)]
    if not parts:
        raise SkipTest("it claims no TRANSPOSE of the types of its other operators")
    size = len(parts) if subject.effort.bundles else TOGETHER
    right = {id(made.trial) for made in right_in_bundles(subject, parts, size)}
    alone = (careful_attempt(subject, part) for part in parts if id(part) not in right)
    failed = [made for made in alone if (made.is_taken or made.error) and wrong(subject, made)]
    if failed:
        raise AssertionError(_message(subject, failed))


def _drawn(subject: Subject, op: str) -> Iterator[Trial]:
    """Yield models of *op* with TRANSPOSE nodes before and after; the effort decides how many."""
    if op == "TRANSPOSE":
        return iter(())
    alone = (each for each in attempts(subject, op) if each.is_claimed and each.is_taken)
    right = (first_step(each.trial) for each in alone if not wrong(subject, each))
    fitting = (trial for trial in right if _can_be_transposed(subject, trial))
    cases = (case for trial in fitting for case in transposed(trial))
    found = (trial for case in cases for trial in trials_of([case]) if may_be_part(trial))
    return islice(found, subject.effort.transposed)


def _can_be_transposed(subject: Subject, trial: Trial) -> bool:
    """Whether the delegate claims TRANSPOSE for all types of the inputs."""
    claims = [claim for claim in subject.capabilities.claims if "TRANSPOSE" in claim.operators]
    claimed = {t for claim in claims for t in claim.types_of("input") or TensorType.__members__}
    types = {fed.definition.type.name for fed in fed_definitions(trial.case)}
    return bool(types) and types <= claimed and may_be_part(trial)


def _message(subject: Subject, failed: list[Attempt]) -> str:
    made = failed[0] if failed[0].is_deadly else smallest(subject, failed[0])
    op = made.trial.case.op
    others = ", ".join(sorted({each.trial.case.op for each in failed} - {op}))
    return (
        f"{op} is right alone and wrong between TRANSPOSEs: {wrong(subject, made)}; does the "
        "delegate, or its engine, move transpositions across it with a wrong axis?"
        + (f"\n  so are {others}" if others else "")
        + rerun(subject, made.trial.case, "transposed")
    )


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
