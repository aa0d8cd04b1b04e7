"""Bounds: a rule for each kernel declares the bytes that rows access, checked before a run.

A rule follows from the kernel and the words of its instruction. It is independent of the lowering
that wrote the row. An error in a lowering therefore raises here, before any kernel runs.

Rules of a family are imported when one of its rows is checked. They are not in ``instructions``,
so that a change of a rule does not compile kernels again.
"""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import check_row
from delegraph_numba_cpu.bounds.words import Overrun

__all__ = ["Overrun", "check_row"]
