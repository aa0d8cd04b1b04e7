"""A program that copies an array again and again, for tests of the pool."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from delegraph_numba_cpu.instructions.memory import Address, Memory, Row
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program


class Chain:
    """A program that copies an array from buffer to buffer, a row a copy.

    Attributes:
        program: the program; it is past its trials, and takes workers.
    """

    def __init__(
        self, lib: Library, rows: int = 8, size: int = 4096, tiles: int = 8, workers: int = 2
    ) -> None:
        self.lib = lib
        self.buffers = [np.zeros(size, np.uint8) for _ in range(rows + 1)]
        memories = [Memory(size, b.ctypes.data, array=b) for b in self.buffers]
        sizes = {"bytes": size, "tiles": tiles}
        table = [
            Row(COPY, tiles, {"source": Address(a), "target": Address(b), **sizes})
            for a, b in pairwise(memories)
        ]
        lib.load(["moves"])
        self.program = Program(table, lib, workers)
        self.program.run_time.observe(1.0)

    def run(self, value: int, run: Callable[[], None]) -> None:
        """Run it on an array of *value*, and check that it arrives."""
        self.buffers[0].fill(value % 256)
        run()
        assert (self.buffers[-1] == value % 256).all()

    def run_in(self, pool: Pool, value: int) -> None:
        """Do that in a pool."""
        self.run(value, lambda: pool.run(self.program, self.lib))
