"""Cases of StableHLO operators that the official interpreter only parses.

Its outputs are computed by Delegraph alone, from a model of one operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.schema.table import Table
from delegraph.testing import TensorDef, delegraph_outputs, one_op_model, tensor


def tensor_like(array: NDArray[Any]) -> TensorDef:
    """Return the declaration of a tensor with an array's type and shape."""
    return tensor(array.shape, next(t.name for t, d in NUMPY_DTYPES.items() if d == array.dtype))


def result(
    op: str, inputs: Sequence[ArrayLike], output: TensorDef, options: Table | None = None
) -> NDArray[Any]:
    """Return the result of *op* on *inputs*, arrays; *output* declares its type and shape."""
    arrays = [np.asarray(x) for x in inputs]
    model = one_op_model(f"STABLEHLO_{op}", [tensor_like(x) for x in arrays], [output], options)
    return delegraph_outputs(model, arrays)[0]


def assert_result(
    op: str,
    inputs: Sequence[ArrayLike],
    expected: NDArray[Any],
    options: Table | None = None,
    *,
    tolerance: float = 0.0,
) -> None:
    """Check type, shape and elements of an operator's result."""
    found = result(op, inputs, tensor_like(expected), options)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if tolerance:
        np.testing.assert_allclose(
            found.astype(np.complex128), expected.astype(np.complex128), tolerance, tolerance
        )
    else:
        np.testing.assert_array_equal(found, expected)


def assert_refused(
    op: str,
    inputs: Sequence[ArrayLike],
    output: TensorDef,
    options: Table | None = None,
    *,
    match: str,
) -> None:
    """Check that an operator is refused with a message that matches."""
    with pytest.raises(RuntimeError, match=match):
        result(op, inputs, output, options)
