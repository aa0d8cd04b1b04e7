"""Kernels of the executor, which take words as arguments, and the layout of its memory."""

RUN = "run"
"""``run(table, 0, 0)``: run all tiles of all rows of *table* in this thread."""

INVOKE = "invoke"
"""``invoke(control, table, threads)``: run a table on up to *threads* threads of a pool.

The caller is one of these threads. The call returns when all workers have left the table.
"""

WORK = "work"
"""``work(control, 0, 0)``: run tiles as a new worker of a pool, until the pool stops."""

END = "end"
"""``end(control, 0, 0)``: stop the workers of a pool."""

LOOK = "look"
"""``look(address, count, 0)``: poll a word *count* times, for measuring the time of a poll."""

LINE = 8
"""Number of words of a cache line."""

ROWS, CANCELLATION, IS_CANCELLED, THREADS, NEVER = range(5)
"""Words at the start of a table.

``ROWS`` is the number of rows. ``CANCELLATION`` is the address of an int32; while it is not 0,
tiles are skipped. It is the address of ``NEVER``, which stays 0, for a run that cannot be
cancelled. ``IS_CANCELLED`` becomes 1 when a tile is skipped, or when a kernel finds a failure.
``THREADS`` is the number of threads of the last run.
"""

HEADER_WORDS = LINE
"""Number of words before the first row of a table."""

ROW_WORDS = 3
"""Number of words of a row: the kernel's address, the number of tiles, the instruction's address.
"""

TURN, ROW, TILES, LAST, TABLE, ASKED, PROCESSOR = range(7)
DONE, EPOCH, SLEEPERS, WAITERS, CALLERS, IS_LED, HIRED = range(LINE, 8 * LINE, LINE)
IS_OVER, CORES, SPIN_FOR_RUN, SPIN_FOR_ROW, KEEPS_APART = range(8 * LINE, 8 * LINE + 5)
SHARES = 9 * LINE
"""Words of a pool's control block; words that change often have a cache line each.

``TURN`` counts rows in its low half; the high half is 0 during a run. ``ROW`` is the address of the
present row, ``LAST`` of the last row, and ``TABLE`` of the table. The high half of ``TILES`` is
the number of tiles of the present row, its low half the turn; ``TILES`` is written before the other
words of a row, and read after them. ``ASKED`` is the requested number of threads. ``PROCESSOR`` is
the number of the processor on which the caller began the run. ``DONE`` is the number of tiles of
the row that are not done. ``EPOCH`` counts runs.

``SLEEPERS`` is the number of threads that sleep until the next run, ``WAITERS`` until the next row.
``CALLERS`` is the number of threads in ``invoke``. ``IS_LED`` is 1 while one of these threads uses
the workers. ``HIRED`` is the number of workers; they end when ``IS_OVER`` is 1. ``CORES`` is the
number of the processor's cores. ``SPIN_FOR_RUN`` and ``SPIN_FOR_ROW`` are how often a thread polls
before it sleeps. ``KEEPS_APART`` is 1 if a worker leaves a run while it is on the caller's
processor.

``SHARES`` is the first of ``MOST_SHARES`` words. The high half of such a word is the number of
unclaimed tiles of a thread's share of a row. Its low half is the turn of the last row of which a
tile was claimed.
"""

MOST_SHARES = 64
"""Largest number of shares of a row; further threads have no shares of their own."""

CONTROL_WORDS = SHARES + MOST_SHARES * LINE
