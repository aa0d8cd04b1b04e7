"""Check that a kernel writes its results into the outputs instead of returning them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.tensor import Tensor


def refuse_returned(returned: object, outputs: Iterable[Tensor], what: str) -> None:
    """Raise an error if the kernel returned values that are missing in the outputs.

    A kernel may return an output array itself, as ``np.negative(x, out=y)`` does.

    Args:
        returned: value that the kernel returned.
        outputs: tensors that the kernel should have written.
        what: subject of the error's sentence.

    Raises:
        OperatorError: *returned* is an array, or a sequence of arrays, that shares no memory with
            an output.
    """
    several = returned if isinstance(returned, list | tuple) else (returned,)
    arrays = [value for value in several if isinstance(value, np.ndarray | np.generic)]
    written = [tensor.data for tensor in outputs if tensor.data is not None]
    if len(arrays) < len(several) or not any(array.size for array in arrays):
        return
    if not any(np.may_share_memory(array, data) for array in arrays for data in written):
        kinds = ", ".join(f"{array.dtype} {list(array.shape)}" for array in arrays)
        raise OperatorError(
            f"{what} returned {kinds} and did not write it into the output: write with "
            "out[...] = ..., or np.negative(x, out=out), where out is the output tensor's data"
        )
