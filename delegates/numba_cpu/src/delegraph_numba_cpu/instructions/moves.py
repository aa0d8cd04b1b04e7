"""Blocks of ``kernels/moves.py``: values that only change their place."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

COPY = Instruction("copy", "moves", "source target bytes tiles")
"""``bytes`` bytes from one address to another, which do not overlap."""

NEST_WORDS = 3
"""Words of a loop in a nest: steps, and by how many bytes source and target go on at each."""

NEST = Instruction("nest", "moves", "source target loops depth rows grain unit tiles")
"""Elements of ``unit`` bytes (1, 2, 4, 8) from a walk through memory to another.

``loops`` is a table of ``depth`` loops, at least two, the outermost first; ``rows`` is the product
of the steps of all but the innermost. Tiles are multiples of ``grain`` rows.
"""

UPDATE = Instruction(
    "update", "moves", "source target loops depth rows unit starts index_bytes limits rank tiles"
)
"""A walk as ``NEST`` does it, from where computed positions say in the target.

``starts`` are ``rank`` integers of ``index_bytes`` bytes (4, 8). ``limits`` has two words for each:
the last position, and the bytes from one to the next. Positions beyond the first or the last are
taken for those.
"""

FILL = Instruction("fill", "moves", "target loops depth rows unit value tiles")
"""A walk through memory filled with the low ``unit`` bytes of ``value``; loops as for ``NEST``."""

PICK = Instruction("pick", "moves", "source target outer inner offsets run rows tiles")
"""Runs of ``run`` bytes put one after another.

Run ``r`` is at ``source + outer[r // inner] + offsets[r % inner]``, r < ``rows``; both are tables
of byte offsets.
"""

GATHER = Instruction(
    "gather",
    "moves",
    "source target positions index_bytes limits depth tuples slices slab run rows report wrong "
    "among tiles",
)
"""Runs of ``run`` bytes put one after another, from where computed positions say.

Run ``r`` < ``rows`` is of slice ``s = r // tuples``, which is ``slab`` bytes after the one before,
and has tuple ``s // slices * tuples + r % tuples`` of the positions, which are ``depth`` integers
of ``index_bytes`` bytes (2, 4, 8). ``limits`` has two words for each of those: how many positions
there are, and the bytes from one to the next. Who meets a position outside copies nothing, and says
in the header at ``report`` that the run has failed; who is the first puts it into ``wrong``, one
more if it is not negative, and how many there are into ``among``.
"""

RECODE = Instruction("recode", "moves", "source target table run runs step tiles")
"""Bytes looked up in a table of 256: ``runs`` runs of ``run`` bytes that lie one after another,
to targets that lie ``step`` bytes apart."""
