"""Blocks of ``kernels/moves.py``: values that only change their place."""

from delegraph_numba_cpu.blocks import Block

COPY = Block("copy", "moves", "source target bytes tiles")
"""``bytes`` bytes from one address to another, which do not overlap."""
