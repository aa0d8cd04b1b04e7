"""Runs the rows of a program, alone or with the workers of a pool.

All that threads share is one word, which holds the turn of the present row and how many of its
tiles are free. Who takes a tile from it by compare-and-swap may look at the table: the run cannot
end until the tile is done. Who does the last tile of a row makes the next one present, or ends the
run. So no caller waits for a worker without a tile; a late one finds another turn and does no
harm. A thread that waits for the next row sleeps after a while, so that the operating system can
move a late one to the processor that has become free.

Python signals are handled in Python, so never here: what is counted in here is counted right,
whatever interrupts the caller before or after.
"""

from __future__ import annotations

import sys

from numba import types

from delegraph_numba_cpu.codegen.intrinsics import (
    atomic_add,
    atomic_load,
    atomic_store,
    call_kernel,
    compare_and_swap,
    jit,
    load_i32,
    load_i64,
    pause,
    sleep_briefly,
    store_i64,
    system_call,
)
from delegraph_numba_cpu.codegen.registry import machine, named_kernel
from delegraph_numba_cpu.instructions import executor as layout

ROW_BYTES = 8 * layout.ROW_WORDS
HEADER_BYTES = 8 * layout.HEADER_WORDS
CANCELLATION, IS_CANCELLED = 8 * layout.CANCELLATION, 8 * layout.IS_CANCELLED
THREADS = 8 * layout.THREADS
CLAIM, ROW, DONE = 8 * layout.CLAIM, 8 * layout.ROW, 8 * layout.DONE
LAST, TABLE, ASKED = 8 * layout.LAST, 8 * layout.TABLE, 8 * layout.ASKED
EPOCH, SLEEPERS, WAITERS = 8 * layout.EPOCH, 8 * layout.SLEEPERS, 8 * layout.WAITERS
CALLERS, IS_LED, HIRED = 8 * layout.CALLERS, 8 * layout.IS_LED, 8 * layout.HIRED
IS_OVER, CORES = 8 * layout.IS_OVER, 8 * layout.CORES
SPIN_FOR_RUN, SPIN_FOR_ROW = 8 * layout.SPIN_FOR_RUN, 8 * layout.SPIN_FOR_ROW

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(machine(), 0) if sys.platform == "linux" else 0
WAIT, WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE
EVERYONE = 0x7FFFFFFF
LOW = 0xFFFFFFFF
TILE = 1 << 32  # in the word CLAIM
BETWEEN_RUNS = -1 << 32


@named_kernel("executor", layout.RUN)
def run(table, unused, unused_too):
    """Run every tile of every row."""
    run_alone(table)


@named_kernel("executor", layout.INVOKE)
def invoke(control, table, threads):
    """Run every tile of every row, with workers if they are wanted and free."""
    atomic_add(control + CALLERS, 1)
    if threads > 1 and compare_and_swap(control + IS_LED, 0, 1) == 0:
        lead(control, table, threads)
        atomic_store(control + IS_LED, 0)
    else:
        run_alone(table)
    atomic_add(control + CALLERS, -1)


@named_kernel("executor", layout.WORK)
def work(control, unused, unused_too):
    """Serve runs as the pool's next worker until the end."""
    worker = atomic_add(control + HIRED, 1) + 1  # two of one number would share scratch memory
    seen = 0  # of a run before the first
    while True:
        seen = next_epoch(control, seen)
        if atomic_load(control + IS_OVER):
            return
        share(control, worker)


@named_kernel("executor", layout.END)
def end(control, unused, unused_too):
    """Let the workers stop serving, once they are through with the present run."""
    atomic_store(control + IS_OVER, 1)
    begin_epoch(control)


@named_kernel("executor", layout.LOOK)
def look(address, count, unused):
    """Wait for nothing, in the way that waiting is done."""
    for _ in range(count):
        if atomic_load(address) == -1:
            return
        pause()


@jit
def run_alone(table):
    """Run every tile of every row in this thread."""
    store_i64(table + IS_CANCELLED, 0)
    store_i64(table + THREADS, 1)
    cancellation = load_i64(table + CANCELLATION)
    row = table + HEADER_BYTES
    for _ in range(load_i64(table)):
        function, tiles, block = load_i64(row), load_i64(row + 8), load_i64(row + 16)
        for tile in range(tiles):
            if load_i32(cancellation):
                store_i64(table + IS_CANCELLED, 1)
                return
            call_kernel(function, block, tile, 0)
        row += ROW_BYTES


@jit
def lead(control, table, threads):
    """Run every tile of every row together with workers; return when the last tile is done."""
    store_i64(table + IS_CANCELLED, 0)
    store_i64(table + THREADS, threads)
    before_first = table + HEADER_BYTES - ROW_BYTES
    store_i64(control + LAST, before_first + load_i64(table) * ROW_BYTES)
    store_i64(control + TABLE, table)
    atomic_store(control + ASKED, threads)
    go_on(control, before_first)
    begin_epoch(control)
    share(control, 0)


@jit
def share(control, worker):
    """Run the tiles that can be had until the run ends, or there is no room for this worker."""
    while True:
        found = atomic_load(control + CLAIM)
        if found < 0 or (worker and worker >= room(control)):
            return
        if found < TILE:
            wait_for_turn(control, found)
            continue
        if compare_and_swap(control + CLAIM, found, found - TILE) != found:
            continue
        row = load_i64(control + ROW)
        run_tile(control, row, load_i64(row + 8) - (found >> 32), worker)
        if atomic_add(control + DONE, -1) == 1:
            go_on(control, row)


@jit
def run_tile(control, row, tile, worker):
    """Run a tile that this thread has claimed, or leave it out when the run is cancelled."""
    table = load_i64(control + TABLE)
    if load_i32(load_i64(table + CANCELLATION)):
        store_i64(table + IS_CANCELLED, 1)
    else:
        call_kernel(load_i64(row), load_i64(row + 16), tile, worker)


@jit
def go_on(control, row):
    """Make the next row that has tiles the present one, or end the run; *row* is complete."""
    turn = (atomic_load(control + CLAIM) + 1) & LOW
    last, tiles = load_i64(control + LAST), 0
    while tiles == 0 and row < last:
        row += ROW_BYTES
        tiles = load_i64(row + 8)
    store_i64(control + ROW, row)
    store_i64(control + DONE, tiles)
    atomic_store(control + CLAIM, (tiles * TILE if tiles else BETWEEN_RUNS) | turn)
    if atomic_load(control + WAITERS) > 0:
        wake(control + CLAIM)


@jit
def room(control):
    """Return how many threads may take part in the present run: as many as asked for.

    They are fewer when others call as well: callers and workers together are never more than the
    processor has cores, unless one caller alone asks for more.
    """
    asked = atomic_load(control + ASKED)
    beside = max(asked, load_i64(control + CORES)) + 1 - atomic_load(control + CALLERS)
    return min(asked, beside)


@jit
def wait_for_turn(control, found):
    """Wait until another row is the present one than when CLAIM was *found* so."""
    looks, patience = 0, load_i64(control + SPIN_FOR_ROW)
    while atomic_load(control + CLAIM) == found:
        looks += 1
        if looks <= patience:
            pause()
        else:
            atomic_add(control + WAITERS, 1)
            sleep_while(control + CLAIM, found)
            atomic_add(control + WAITERS, -1)


@jit
def begin_epoch(control):
    """Let everyone who waits for another epoch go on."""
    atomic_store(control + EPOCH, (atomic_load(control + EPOCH) + 1) & EVERYONE)
    if atomic_load(control + SLEEPERS) > 0:
        wake(control + EPOCH)


@jit
def next_epoch(control, seen):
    """Wait for another epoch than *seen* and return it."""
    looks, patience = 0, load_i64(control + SPIN_FOR_RUN)
    while True:
        epoch = atomic_load(control + EPOCH)
        if epoch != seen:
            return epoch
        looks += 1
        if looks <= patience:
            pause()
        else:
            atomic_add(control + SLEEPERS, 1)
            sleep_while(control + EPOCH, seen)
            atomic_add(control + SLEEPERS, -1)


@jit
def wake(address):
    """Wake everyone who sleeps at an address."""
    if _FUTEX:
        system_call(types.int64(_FUTEX), address, types.int64(WAKE), types.int64(EVERYONE), 0)


@jit
def sleep_while(address, value):
    """Sleep while the int64 at an address is *value*, or be woken for nothing.

    The system looks at its low half only, which is another one each time that somebody wakes.
    """
    if not _FUTEX:
        sleep_briefly()
    elif atomic_load(address) == value:
        system_call(types.int64(_FUTEX), address, types.int64(WAIT), value & LOW, 0)
