"""Bytes that rows of L2_NORMALIZATION read and write, as rows of SOFTMAX do."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import rule
from delegraph_numba_cpu.bounds.softmax import float_rows
from delegraph_numba_cpu.instructions.l2_normalization import L2_NORMALIZATION

rule(L2_NORMALIZATION)(float_rows)
