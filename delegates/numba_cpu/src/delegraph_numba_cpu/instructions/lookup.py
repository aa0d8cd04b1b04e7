"""Instructions of ``kernels/lookup.py``: rows of a table of integers, as float32."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

LOOK_UP = Instruction(
    "look_up",
    "lookup",
    "table target positions scales table_rows width bits block scale_bytes row_scales rows report "
    "wrong among tiles",
)
"""Rows of a table times scales, float32, at positions that are read from a tensor, int32.

A row has ``width`` integers of ``bits`` bits (4 or 8), the low half of a byte first. Each row
begins at a whole byte. Each ``block`` integers of a row have a scale of ``scale_bytes`` bytes (2,
4). Scales of rows are ``row_scales`` bytes apart; 0 means that all rows share their scales.

``rows`` rows are written. Positions outside of ``table_rows`` are reported as by ``moves.GATHER``.
"""
