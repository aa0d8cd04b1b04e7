"""Table of the functions that make the cases of each operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from delegraph.operators.op_table import LazyTable
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.random_operands import RandomOperands

MakeCases = Callable[[str, RandomOperands], Iterator[OperatorCase]]

MAKERS = LazyTable[list[MakeCases]](__package__)
"""Mapping from an operator's name to the functions that make its cases."""


def cases_of(*ops: str) -> Callable[[MakeCases], MakeCases]:
    """Register the decorated generator as a maker of the cases of *ops*.

    The maker is called once for each operator, with its name and :class:`RandomOperands`. It yields
    fixed cases and then ``random.count`` random cases.
    """

    def register(make: MakeCases) -> MakeCases:
        for op in ops:
            MAKERS.entered.setdefault(op, []).append(make)
        return make

    return register


def cases(op: str, *, seed: int = 0, count: int = 40) -> Iterator[OperatorCase]:
    """Yield the cases of an operator; equal arguments give equal cases.

    Args:
        op: name of the operator; an operator without a maker has no cases.
        seed: seed of the random cases.
        count: number of random cases from each maker.
    """
    # Independent of the order of registration.
    makers = sorted(MAKERS.get(op, ()), key=lambda make: make.__module__)
    for make in makers:
        yield from make(
            op, RandomOperands(f"{op}:{make.__module__}.{make.__qualname__}", seed, count)
        )
