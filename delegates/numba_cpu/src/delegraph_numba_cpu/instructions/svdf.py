"""Instructions of ``kernels/svdf.py``: time steps of SVDF layers, as in the core's kernel."""

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
"""A time step of an integer SVDF layer.

``sums``, int32 like ``bias``, correct each filter's products for the input's zero point. ``state``
holds the last ``window`` results of each filter.
"""

FLOAT = Instruction(
    "svdf_f32",
    FAMILY,
    "products target state times bias batch units rank window low:f high:f curve tiles",
)
"""The second part of a time step of a float SVDF layer, after the products with all filters.

Results are clamped between ``low`` and ``high``, or the function ``curve`` is applied.
"""

LINEAR, TANH, SIGN_BIT = range(3)
"""Values of the word ``curve``."""
