"""Entries as ``get_input_details`` and ``get_output_details`` give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike


def details(
    dtype: DTypeLike,
    *shape: int,
    name: str = "x",
    index: int = 0,
    scale: float = 0.0,
    zero_point: int = 0,
) -> dict[str, Any]:
    """Return the details of a tensor; a side of -1 is open, and 1 for the time being."""
    signature = np.array(shape, np.int32)
    return {
        "name": name,
        "index": index,
        "shape": abs(signature),
        "shape_signature": signature,
        "dtype": np.dtype(dtype).type,
        "quantization": (scale, zero_point),
    }
