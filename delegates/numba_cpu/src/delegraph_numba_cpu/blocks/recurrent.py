"""Blocks of ``kernels/recurrent.py``: SVDF."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import Block

SVDF = Block(
    "svdf",
    "recurrent",
    """
    source target state features times bias sums batch inputs units rank window
    multiplier_in shift_in multiplier_out shift_out zero_out tiles
    """,
)
"""A step of an integer SVDF layer, as ``delegraph.kernels.svdf`` describes it.

``sums`` is what to add to the products with each filter, for the input's zero point: int32, as
``bias``. ``window`` results are kept of each filter.
"""
