"""Blocks of ``kernels/svdf.py``: steps of SVDF layers, as Delegraph's own kernel has them."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "svdf"

INTEGER = Instruction(
    "svdf",
    FAMILY,
    """
    source target state features times bias sums batch inputs units rank window
    multiplier_in shift_in multiplier_out shift_out zero_out tiles
    """,
)
"""A step of an integer layer.

``sums`` is what to add to the products with each filter, for the input's zero point: int32, as
``bias``. ``window`` results are kept of each filter.
"""

FLOAT = Instruction(
    "svdf_f32",
    FAMILY,
    "products target state times bias batch units rank window low:f high:f curve tiles",
)
"""What is left of a step of a float layer when the products with all filters are known.

Units are clamped between ``low`` and ``high``, and the ``curve`` is applied.
"""

LINEAR, TANH, SIGN_BIT = range(3)
"""Values of ``curve``."""
