"""Bricks: models of one operator that the delegate takes, for building larger models.

Shapes and quantization come from a small palette, so that outputs of some bricks fit inputs of
others. For custom operators, bricks are the delegate author's own cases. A barrier may be put
between two bricks: an operator that the delegate does not claim, so that there are several
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from delegraph.delegation.partition_tolerance import STEPS
from delegraph.schema.enums import TensorType
from delegraph.schema.options import ReshapeOptions
from delegraph.testing.conformance.attempts import Attempt, careful_attempt, wrong
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.composition import Composition, fed_definitions
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, trials_of
from delegraph.testing.one_op import constant
from delegraph.testing.operator_case import Fed, OperatorCase, operator_case
from delegraph.testing.operator_cases.registry import MAKERS
from delegraph.testing.random_operands import RandomOperands

BARRIERS = ("RESHAPE", "TILE", "REVERSE_V2", "MAXIMUM")

PALETTE = {0: (), 1: (6,), 2: (4, 6), 3: (2, 4, 6), 4: (1, 4, 4, 6), 5: (1, 2, 2, 4, 6)}
"""Mapping from each rank to the palette's shape."""

Brick = tuple[int, int, bool, bool]
"""Brick in a composed model: its number, the number of the tensor that it reads, and two flags.

The flags say whether a barrier is before the brick, and whether its output is a graph output.
"""


class PaletteOperands(RandomOperands):
    """Operands with shapes from :data:`PALETTE`, and one quantization for each type."""

    def shape(
        self, low: int = 0, high: int = 5, *, largest: int = 7, empty: float = 0.03
    ) -> tuple[int, ...]:
        """Return a palette shape of rank *low* to *high*; other parameters have no effect."""
        ranks = [rank for rank in PALETTE if low <= rank <= high]
        return PALETTE[self.pick([rank for rank in ranks if rank in (2, 4)] or ranks)]

    def broadcast_shapes(
        self, n: int = 2, high: int = 5, *, empty: float = 0.03
    ) -> list[tuple[int, ...]]:
        """Return *n* shapes that broadcast together; mostly they are equal."""
        if self.chance(0.6):
            return [self.shape(1, high)] * n
        return super().broadcast_shapes(n, high, empty=empty)

    def quantization(self, type: str, *, symmetric: bool = False) -> dict[str, Any]:
        """Return the arguments ``scale`` and ``zero_point`` for tensors of *type*; none for floats.

        With *symmetric*, as weights need it, the zero point is 0, except for UINT8.
        """
        zero = {"INT8": 3, "UINT8": 120, "INT16": 0}.get(type)
        if zero is None:
            return {}
        scale = 0.001 if type == "INT16" else 0.1
        return {"scale": scale, "zero_point": 0 if symmetric and type != "UINT8" else zero}


@cache
def bricks(subject: Subject) -> tuple[Trial, ...]:
    """Return one-operator models that the delegate claims and computes right."""
    found: list[Trial] = []
    for op in subject.operators:
        fitting = _fitting(subject, op)
        half = subject.effort.bricks // 2
        found += fitting[:half] + fitting[-half:]
    return tuple(dict.fromkeys(found))


def _fitting(subject: Subject, op: str) -> list[Trial]:
    if op in MAKERS and not subject.effort.tries_bricks:
        if any(wrong(subject, each) for each in attempts(subject, op)):
            return []
        count = subject.effort.bricks
        drawn = _palette_trials(op, count, 2 * count)  # the random ones come last
        return [trial for trial in drawn if _may_be_brick(subject, trial)]
    made = (each for each in _attempts_of(subject, op) if not wrong(subject, each))
    return [each.trial for each in made if each.is_taken]


def _attempts_of(subject: Subject, op: str) -> Iterator[Attempt]:
    """Run models of *op* that can be joined with other models; yield an attempt for each.

    The models have shapes that fit each other (:data:`PALETTE`), or are the author's own cases.
    """
    made = attempts(subject, op)
    if op not in MAKERS:
        yield from (each for each in made if _may_be_brick(subject, each.trial))
    elif not any(each.is_deadly for each in made):
        for trial in _palette_trials(op, subject.effort.bricks):
            if _may_be_brick(subject, trial):
                yield careful_attempt(subject, trial)


def palette_cases(op: str, count: int = FULL.bricks) -> Iterator[OperatorCase]:
    """Yield cases of the operator *op* whose shapes come from the short list :data:`PALETTE`.

    Models with equal shapes can be joined. Each function that makes cases makes up to *count* of
    them.
    """
    for make in MAKERS.get(op, ()):
        yield from make(op, PaletteOperands(f"{op}:palette", 1, count))


@cache
def _palette_trials(op: str, count: int, last: int = 0) -> tuple[Trial, ...]:
    """Return cases of *op* with shapes from :data:`PALETTE`, and their right results.

    Args:
        op: name of the operator.
        count: number of cases from each function that makes cases.
        last: number of cases to return, the last ones; 0 means all.
    """
    return trials_of([*palette_cases(op, count)][-last:])


def _may_be_brick(subject: Subject, trial: Trial) -> bool:
    case = trial.case
    return not (
        len(case.steps) > 1
        or not case.steps[0]
        or case.is_random
        or len(case.records.subgraphs or ()) > 1
        or not subject.claims(trial.forms, trial.features)
        or trial.features & {"dynamic-shapes", "extreme-values", "empty"}
        or case.is_resized
    )


@dataclass(frozen=True)
class _Kind:
    """Type, shape and quantization of a tensor; tensors of one kind can replace each other."""

    type: TensorType
    shape: tuple[int, ...]
    quantization: str


def composed(found: Sequence[Trial], drawn: Sequence[Brick], barrier: str | None) -> OperatorCase:
    """Join one-operator models to a larger model, as Hypothesis has drawn it.

    Args:
        found: the available one-operator models.
        drawn: for each part of the model, its position in *found*, and the tensor that it reads.
        barrier: name of an operator that the delegate does not claim; None if there is none.
    """
    model = Composition()
    pool: list[tuple[_Kind, int]] = []
    outputs: list[int] = []
    for number, choice, blocked, is_output in drawn:
        trial = found[number]
        wires: dict[int, int] = {}
        for i, source in enumerate(fed_definitions(trial.case)):
            kind = _kind_of(source)
            fitting = [index for have, index in reversed(pool) if have == kind]
            if not fitting or _makes_steps(trial.case):
                continue
            wires[i] = fitting[(choice >> i) % len(fitting)]
            if blocked and barrier is not None:
                (wires[i],) = model.add(barrier_case(barrier, source), {0: wires[i]})
        made = model.add(trial.case, wires)
        pool += zip(_output_kinds(trial), made, strict=True)
        outputs += made if is_output else ()
    ends = model.unread()
    return model.case(found[drawn[0][0]].case.op, list(dict.fromkeys([*outputs, *ends])))


def fits(source: Trial, reader: Trial) -> bool:
    """Whether an output of the model *source* can be an input of the model *reader*."""
    made = _output_kinds(source)
    read = [] if _makes_steps(reader.case) else fed_definitions(reader.case)
    return any(_kind_of(each) in made for each in read)


def _makes_steps(case: OperatorCase) -> bool:
    """Whether results of the case's operator jump, like those of a step function or a rounding.

    The operator may then read only graph inputs, because it would magnify earlier rounding errors.
    """
    codes = () if case.reference is None else case.reference.operator_codes or ()
    return not (STEPS | {"CAST"}).isdisjoint([case.op, *(code.builtin_code.name for code in codes)])


def _kind_of(source: Fed) -> _Kind:
    definition = source.definition
    return _Kind(definition.type, source.array.shape, _shown(definition.quantization))


def _output_kinds(trial: Trial) -> list[_Kind]:
    graph = trial.case.main
    return [
        _Kind(type, array.shape, _shown((graph.tensors or ())[i].quantization))
        for type, array, i in zip(
            trial.output_types, trial.expected[0], graph.outputs or (), strict=True
        )
    ]


def _shown(quantization: Any) -> str:
    if quantization is None or quantization.scale is None:
        return ""
    return f"{quantization.scale.tolist()} {np.asarray(quantization.zero_point).tolist()}"


def barrier_of(subject: Subject) -> str | None:
    """Return the name of an operator that copies its input and that the delegate does not claim.

    Between two nodes, the operator separates partitions. The result is None if the delegate claims
    all of these operators.
    """
    return next((op for op in BARRIERS if op not in subject.operators), None)


def barrier_case(op: str, source: Fed) -> OperatorCase:
    """Return a case of the operator *op* whose output equals its first input, *source*."""
    shape, target = source.array.shape, replace(source.definition)
    if op == "RESHAPE":
        return operator_case(op, [source], [target], ReshapeOptions(new_shape=shape))
    if op == "TILE":
        once = constant(np.ones(len(shape), np.int32))
        return operator_case(op, [source, once], [target])
    if op == "REVERSE_V2":
        no_axes = constant(np.zeros(0, np.int32))
        return operator_case(op, [source, no_axes], [target])
    return operator_case(op, [source, source], [target])
