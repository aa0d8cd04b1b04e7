"""Cases of one operator on which Delegraph and the official interpreter must agree.

A case gives the operator's inputs as arrays: ``fed(x)`` is a graph input, ``constant(x)`` a
constant, ``None`` is absent. Both interpreters run the same model file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.schema.table import Table
from delegraph.testing import TensorDef, delegraph_outputs, operator_case
from delegraph.testing.operator_case import Fed
from support.official import official_outputs

Inputs = Sequence["Fed | TensorDef | None"]
Outputs = Sequence["str | TensorDef"]


def model_and_arrays(
    op: str, inputs: Inputs, outputs: Outputs, options: Table | None = None, **given: Any
) -> tuple[bytes, list[NDArray[Any]]]:
    """Return the model file of a case and the arrays for its graph inputs."""
    case = operator_case(op, inputs, outputs, options, **given)
    return case.model(), list(case.steps[0])


def assert_agrees(
    op: str,
    inputs: Inputs,
    outputs: Outputs,
    options: Table | None = None,
    *,
    tolerance: float = 0.0,
    **given: Any,
) -> list[NDArray[Any]]:
    """Check that both interpreters return the same outputs, and return them.

    Args:
        op: operator name.
        inputs: see the module.
        outputs: type names, or tensors where they are quantized.
        options: the operator's options.
        tolerance: largest absolute and relative difference, for floats.
        given: ``version``, ``custom_options``.
    """
    model, arrays = model_and_arrays(op, inputs, outputs, options, **given)
    ours, official = delegraph_outputs(model, arrays), official_outputs(model, arrays)
    for mine, theirs in zip(ours, official, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        if tolerance:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(mine, theirs)
    return ours


def assert_both_refuse(
    op: str,
    inputs: Inputs,
    outputs: Outputs,
    options: Table | None = None,
    *,
    match: str,
    **given: Any,
) -> None:
    """Check that both interpreters refuse a case, Delegraph with a message that matches."""
    model, arrays = model_and_arrays(op, inputs, outputs, options, **given)
    with pytest.raises(RuntimeError):
        official_outputs(model, arrays)
    with pytest.raises(RuntimeError, match=match):
        delegraph_outputs(model, arrays)
