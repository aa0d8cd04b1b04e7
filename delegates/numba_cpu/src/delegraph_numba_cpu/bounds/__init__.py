"""Bounds: for each kernel, a rule that declares the bytes that a row reads and writes.

Every row is checked by its rule before the program runs. A rule follows from the kernel and the
words of its instruction. It is independent of the lowering that wrote the row. An error in a
lowering therefore raises here, before any kernel runs.

Rules of a family are imported when one of its rows is checked. They are not in ``instructions``,
so that a change of a rule does not compile kernels again.
"""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import check_row
from delegraph_numba_cpu.bounds.words import Overrun

__all__ = ["Overrun", "check_row"]
