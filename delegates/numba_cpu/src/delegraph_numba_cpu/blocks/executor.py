"""Entry points of the executor; they take their words as arguments, not in a block."""

RUN = "run"
"""``run(table, worker, 0)``: every tile of every row, in this thread."""

INVOKE = "invoke"
"""``invoke(control, table, 0)``: the same, shared with the pool's workers below the limit."""

WORK = "work"
"""``work(control, worker, 0)``: serve until the pool stops."""

LOOK = "look"
"""``look(address, count, 0)``: wait for nothing, *count* times; tells how long a look takes."""

LINE = 8
"""Words of a cache line."""

HEADER_WORDS = LINE
"""A table begins with the number of its rows."""

ROW_WORDS = 4
"""A row: kernel's address, number of tiles, address of its block, address of its claim words."""

CLAIM_WORDS = 2 * LINE
"""Claim words of a row, two cache lines: epoch and next tile; epoch and tiles done."""

EPOCH, STOP, SLEEPERS, TABLE, LIMIT, ACTIVE, WAITERS, SETTINGS = range(0, 8 * LINE, LINE)
"""The words of a pool's control block, each on a cache line of its own.

``EPOCH`` counts runs; ``STOP`` ends the workers; ``SLEEPERS`` wait for a run, and ``WAITERS`` for
the end of a row; ``TABLE`` is what to run, 0 between runs; workers below ``LIMIT`` take part, which
may change during a run; ``ACTIVE`` may look at a table.
"""

SPIN_FOR_RUN, SPIN_FOR_ROW, NAP_SECONDS, NAP_NANOSECONDS = range(SETTINGS, SETTINGS + 4)
"""Looks before a worker sleeps between runs, and before anyone does at the end of a row; and for
how long the latter sleep at most."""

CONTROL_WORDS = 8 * LINE
