"""Bounds: a rule for each kernel declares the bytes that rows access, checked before a run.

A rule follows from the kernel and the words of its block. It knows nothing of the lowering that
wrote the row, so a lowering that is wrong raises here, and no kernel gets to run it.

Rules of a family are imported when one of its rows is checked. They are no part of
``instructions``, as kernels need not be compiled again when one changes.
"""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import check_row
from delegraph_numba_cpu.bounds.words import Overrun

__all__ = ["Overrun", "check_row"]
