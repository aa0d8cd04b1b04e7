"""Input positions of RESIZE_NEAREST_NEIGHBOR.

Source:
    tflite/kernels/internal/reference/resize_nearest_neighbor.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def nearest_positions(
    old: int, new: int, align_corners: bool, half_pixel_centers: bool
) -> NDArray[np.int64]:
    """Return the input position, 0 to *old* - 1, for each output position: ``[new], int64``.

    *align_corners* and *half_pixel_centers* are the node's options.

    >>> nearest_positions(2, 4, False, False).tolist()
    [0, 0, 1, 1]
    """
    if align_corners and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    else:
        scale = np.float32(old) / np.float32(new)
    offset = np.float32(0.5 if half_pixel_centers else 0.0)
    place = (np.arange(new, dtype=np.float32) + offset) * scale
    if align_corners:
        place = place + np.float32(0.5)  # round half up; places are not negative
    positions: NDArray[np.int64] = np.clip(np.floor(place).astype(np.int64), 0, old - 1)
    return positions
