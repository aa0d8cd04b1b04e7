"""Entry points of the executor; they take their words as arguments, not in a block."""

RUN = "run"
"""``run(table, worker, 0)``: every tile of every row, in this thread."""

INVOKE = "invoke"
"""``invoke(control, table, limit)``: the same, shared with the pool's workers below *limit*."""

WORK = "work"
"""``work(control, worker, spin)``: serve until the pool stops."""

LINE = 8
"""Words of a cache line."""

HEADER_WORDS = LINE
"""A table begins with the number of its rows."""

ROW_WORDS = 4
"""A row: kernel's address, number of tiles, address of its block, address of its claim words."""

CLAIM_WORDS = 2 * LINE
"""Claim words of a row, two cache lines: epoch and next tile; epoch and tiles done."""

EPOCH, STOP, SLEEPERS, TABLE, LIMIT, ACTIVE = range(0, 6 * LINE, LINE)
"""The words of a pool's control block, each on a cache line of its own."""

CONTROL_WORDS = 6 * LINE
