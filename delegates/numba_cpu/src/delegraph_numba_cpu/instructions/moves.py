"""Instructions of ``kernels/moves.py``, which move values without changing them."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

COPY = Instruction("copy", "moves", "source target bytes tiles")
"""Copy of ``bytes`` bytes between ranges that do not overlap."""

NEST_WORDS = 3
"""Number of words of a loop in a nest: steps, stride in the source, stride in the target."""

NEST = Instruction("nest", "moves", "source target loops depth rows grain unit tiles")
"""Copy of elements of ``unit`` bytes (1, 2, 4, 8) by a loop nest over source and target.

``loops`` is a table of ``depth`` loops, at least two, the outermost first. ``rows`` is the product
of the steps of all loops but the innermost. The rows of a tile are a multiple of ``grain``.
"""

UPDATE = Instruction(
    "update", "moves", "source target loops depth rows unit starts index_bytes limits rank tiles"
)
"""A loop nest as in ``NEST``, to a start position in the target that is read from a tensor.

``starts`` are ``rank`` integers of ``index_bytes`` bytes (4, 8), one for each axis. ``limits`` has
two words per axis: the last valid position, and the bytes between positions. A position out of
range is replaced by the nearest valid one.
"""

FILL = Instruction("fill", "moves", "target loops depth rows unit value tiles")
"""A store of the low ``unit`` bytes of ``value`` to each element of a loop nest, as in ``NEST``."""

PICK = Instruction("pick", "moves", "source target outer inner offsets run rows tiles")
"""Copy of runs of ``run`` bytes from any places to consecutive places.

Run ``r`` < ``rows`` is at ``source + outer[r // inner] + offsets[r % inner]``; ``outer`` and
``offsets`` are tables of byte offsets.
"""

GATHER = Instruction(
    "gather",
    "moves",
    "source target positions index_bytes limits depth tuples slices slab run rows report wrong "
    "among tiles",
)
"""Copy of runs of ``run`` bytes, whose positions are read from a tensor, to consecutive places.

Run ``r`` < ``rows`` is in slice ``s = r // tuples``. Slices are ``slab`` bytes apart. The run's
position is the tuple number ``s // slices * tuples + r % tuples``, of ``depth`` integers of
``index_bytes`` bytes (2, 4, 8). ``limits`` has two words for each element of a tuple: the number of
valid positions, and the bytes between them.

A run whose position is out of range is not copied, and the program's run is marked as failed in the
header at ``report``. The first invalid position is stored in ``wrong``, plus one if it is not
negative, and the number of valid positions in ``among``.
"""

RECODE = Instruction("recode", "moves", "source target table run runs step tiles")
"""Conversion of bytes by a table of 256 bytes.

``runs`` runs of ``run`` bytes are read one after another, and written ``step`` bytes apart.
"""
