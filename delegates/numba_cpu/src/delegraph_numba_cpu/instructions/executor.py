"""Entry points of the executor, which take words as arguments."""

RUN = "run"
"""``run(table, 0, 0)``: run all tiles of all rows in this thread."""

INVOKE = "invoke"
"""``invoke(control, table, threads)``: run a table on up to *threads* threads of an idle pool.

The caller is one of them. It returns when no worker uses the table any more.
"""

WORK = "work"
"""``work(control, 0, 0)``: be the next worker of a pool, until the pool stops."""

END = "end"
"""``end(control, 0, 0)``: stop the workers."""

LOOK = "look"
"""``look(address, count, 0)``: poll *count* times, to measure the time of a poll."""

LINE = 8
"""Number of words of a cache line."""

ROWS, CANCELLATION, IS_CANCELLED, THREADS, NEVER = range(5)
"""The words that a table begins with.

``ROWS`` is their number. ``CANCELLATION`` is the address of an int32: while it is not 0, tiles are
left out, and ``IS_CANCELLED`` becomes 1, as it does when a kernel finds a failure; for
who has nothing to cancel by, it is the address of ``NEVER``, which stays 0. ``THREADS`` is how many
the last run was given.
"""

HEADER_WORDS = LINE
"""Number of words before the first row of a table."""

ROW_WORDS = 3
"""Number of words of a row: the kernel's address, the number of tiles, the instruction's address.
"""

TURN, ROW, LAST, TABLE, ASKED = range(5)
DONE, EPOCH, SLEEPERS, WAITERS, CALLERS, IS_LED, HIRED = range(LINE, 8 * LINE, LINE)
IS_OVER, CORES, SPIN_FOR_RUN, SPIN_FOR_ROW = range(8 * LINE, 8 * LINE + 4)
SHARES = 9 * LINE
"""The words of a pool's control block; what changes often has a cache line of its own.

``TURN`` counts rows in its low half; the high half is 0 during a run. ``ROW`` is the address of the
present row, ``LAST`` that of the last row, ``TABLE`` that of the table, and ``ASKED`` the number of
threads that may take part. ``DONE`` is the number of the row's tiles that are not done. ``EPOCH``
counts runs; ``SLEEPERS`` wait for a run, and ``WAITERS`` for the next row. ``CALLERS`` are in
``invoke``, one of whom has the workers while ``IS_LED`` is 1. ``HIRED`` counts workers, who go when
``IS_OVER`` is 1. ``CORES`` is how many the processor has; the others say how often one looks before
sleeping. ``SHARES`` is the first of ``MOST_SHARES`` words, each with a cache line of its own. A
word's high half is the number of unclaimed tiles of a thread's share of a row, its low half the
row's turn.
"""

MOST_SHARES = 64
"""Largest number of shares of a row; further threads take tiles of any share."""

CONTROL_WORDS = SHARES + MOST_SHARES * LINE
