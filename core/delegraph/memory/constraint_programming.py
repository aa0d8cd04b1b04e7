"""Finds smallest plans by a constraint solver, if OR-Tools is installed.

The solver is CP-SAT of the package ``ortools``, which ``pip install delegraph[exact]`` installs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from delegraph.memory.packing import Packing


def solver_is_installed() -> bool:
    """Whether OR-Tools is installed; it is not imported."""
    return find_spec("ortools") is not None


def solved(
    packing: Packing, offsets: Sequence[int], bound: int, seconds: float
) -> tuple[list[int], int]:
    """Improve the plan *offsets*; return offsets in units of the alignment, and a proven bound.

    Each tensor is a rectangle with a fixed time and a variable offset; rectangles must not overlap.
    The bound is in bytes.

    Args:
        packing: sizes and lifetimes of the tensors.
        offsets: the initial plan, in units of the alignment.
        bound: known lower bound of every plan, in bytes.
        seconds: time limit; the plan is the smallest possible if it equals the returned bound.
    """
    from ortools.sat.python import cp_model

    unit, total_size = packing.alignment, packing.plan(offsets).total_size
    model = cp_model.CpModel()
    total = model.new_int_var(bound, total_size, "total")
    model.add_hint(total, total_size)
    places, lives, spans = [], [], []
    columns = (packing.begins, packing.ends, packing.units, packing.sizes)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for i, (begin, end, units, size) in enumerate(rows):
        place = model.new_int_var(0, max(total_size - size, 0) // unit, f"offset {i}")
        model.add(place * unit + size <= total)
        model.add_hint(place, offsets[i])
        places.append(place)
        if units:
            lives.append(model.new_fixed_size_interval_var(begin, end - begin, f"life {i}"))
            spans.append(model.new_fixed_size_interval_var(place, units, f"bytes {i}"))
    model.add_no_overlap_2d(lives, spans)
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return list(offsets), bound
    # The objective counts single bytes; the plan ends at the end of a tensor.
    found = [solver.value(place) for place in places]
    return found, max(bound, round(solver.best_objective_bound))
