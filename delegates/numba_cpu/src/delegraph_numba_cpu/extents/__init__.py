"""Which bytes each kind of row touches: a rule a block, checked before a program may run.

A rule follows from the kernel and the words of its block. It knows nothing of the lowering that
wrote the row, so a lowering that is wrong raises here, and no kernel gets to run it.

These rules are no part of ``blocks``, as kernels need not be compiled again when one changes.
"""

from __future__ import annotations

from delegraph_numba_cpu.extents import convolutions_f32 as convolutions_f32  # these fill the table
from delegraph_numba_cpu.extents import convolutions_int8 as convolutions_int8
from delegraph_numba_cpu.extents import convolutions_int16 as convolutions_int16
from delegraph_numba_cpu.extents import elementwise as elementwise
from delegraph_numba_cpu.extents import hybrid as hybrid
from delegraph_numba_cpu.extents import images as images
from delegraph_numba_cpu.extents import moves as moves
from delegraph_numba_cpu.extents import recurrent as recurrent
from delegraph_numba_cpu.extents import rows as rows
from delegraph_numba_cpu.extents.touched import Overrun, check_row

__all__ = ["Overrun", "check_row"]
