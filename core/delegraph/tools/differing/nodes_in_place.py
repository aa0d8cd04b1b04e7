"""Computes nodes of a running interpreter, each from given values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from delegraph.operators.registration import Eval, Node, Registration
from delegraph.runtime.details import tensor_details
from delegraph.runtime.subgraph import Subgraph
from delegraph.runtime.tensor_access import STORED_AS_SEEN, write_tensor
from delegraph.tools.differing.layer_units import Unit, Values
from delegraph.tools.differing.matching import converted
from delegraph.tools.progress import Progress, untold


def compute_in_place(
    subgraph: Subgraph,
    units: Sequence[Unit],
    known: Values,
    take: Callable[[Values], object],
    progress: Progress = untold,
) -> list[Unit]:
    """Compute nodes of a running subgraph, each from the reference's values of its inputs.

    Before a unit runs, its inputs are overwritten with known values, so that no unit reads the
    results of another.

    Args:
        subgraph: an allocated subgraph that keeps the inputs and outputs of every node.
        units: groups of nodes, each computed by one step of the subgraph.
        known: details and values of the reference's tensors, by index.
        take: function that is called with views of each unit's outputs, right after it ran.
        progress: function that is called with the number of units so far.

    Returns:
        The units that were not computed, for example because an input is not known. These are all
        units if a step fails, if shapes are unknown, or if steps overlap.
    """
    if subgraph.steps.has_open_shapes or subgraph.steps.overlap is not None:
        return list(units)
    able = {unit.nodes: unit for unit in units if _is_able(unit, subgraph, known)}
    read = {i for unit in able.values() for i in (*unit.inputs, *unit.outputs)}
    number = {nodes: position for position, nodes in enumerate(able)}
    tensors = subgraph.tensors
    details = {i: tensor_details(tensors[i]) for i in read}

    def fed(run: Eval, node: Node, registration: Registration) -> Eval:
        unit = able.get(tuple(sorted(n.index for n, _ in subgraph.plan.model_nodes(node))))

        def step() -> None:
            if unit is None:
                return
            for i in unit.inputs:
                entry, values = known[i]
                write_tensor(tensors[i], converted(values, entry, details[i]))
            run()
            progress("comparing layers", number[unit.nodes], len(able))
            take({i: (details[i], np.asarray(tensors[i].data)) for i in unit.outputs})

        return step

    try:
        subgraph.run_steps(fed)
    except (RuntimeError, ValueError):
        return list(units)
    return [unit for unit in units if unit.nodes not in able]


def _is_able(unit: Unit, subgraph: Subgraph, known: Values) -> bool:
    tensors = [subgraph.tensors[i] for i in (*unit.inputs, *unit.outputs)]
    return (
        not unit.has_state
        and all(t.type in STORED_AS_SEEN and t.buffer_handle < 0 for t in tensors)
        and all(i in known and known[i][1].shape == subgraph.tensors[i].shape for i in unit.inputs)
    )
