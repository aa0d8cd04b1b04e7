"""Check whether a delegate's claims cover the values that the nodes of a case read."""

from __future__ import annotations

import numpy as np

from delegraph.delegation.capabilities import Capabilities
from delegraph.errors import DelegraphError
from delegraph.schema.reader import read_model
from delegraph.testing.conformance.features import is_extreme
from delegraph.testing.sweep.hosts import operator_names
from delegraph.testing.sweep.sweep_case import SweepCase
from delegraph.testing.sweep.tensor_values import tensor_values


def meets_unpromised_values(case: SweepCase, capabilities: Capabilities) -> bool:
    """Whether a node reads extreme floats that the delegate's claims do not cover.

    Operators outside of the claims do not count. Without any claim, no operator is promised.
    """
    claimed = {op for claim in capabilities.claims for op in claim.operators}
    promised = {
        op
        for claim in capabilities.claims
        if "extreme-values" in claim.features
        for op in claim.operators
    }
    try:
        model = read_model(np.frombuffer(case.content, np.uint8))
    except DelegraphError:
        return False
    names, (graph, *_) = operator_names(case.content), model.subgraphs or ()
    claimed = claimed or {*names}
    unpromised = [
        {*(node.inputs or ()), *(node.outputs or ())}
        for node in graph.operators or ()
        if names[node.opcode_index] in claimed - promised
    ]
    return any(
        i in values and is_extreme(values[i])
        for values in tensor_values(case)
        for tensors in unpromised
        for i in tensors
    )
