"""Runs the rows of a program, alone or with the workers of a pool.

Tiles are claimed one by one, by compare-and-swap on a word that holds the run's epoch and the next
tile. A worker that was delayed finds another epoch, or no tile left, and does no harm: nobody waits
for a worker that has not claimed a tile. A thread that waits for the end of a row sleeps after a
while, so that the operating system can move a late one to the processor that has become free.
"""

from __future__ import annotations

import platform
import sys

from numba import types

from delegraph_numba_cpu.blocks import executor as layout
from delegraph_numba_cpu.kernels.machine import (
    atomic_add,
    atomic_load,
    atomic_store,
    call_kernel,
    compare_and_swap,
    jit,
    load_i64,
    pause,
    sleep_briefly,
    system_call,
)
from delegraph_numba_cpu.kernels.registry import named_kernel

ROW_BYTES = 8 * layout.ROW_WORDS
DONE = 8 * layout.LINE
HEADER_BYTES = 8 * layout.HEADER_WORDS
EPOCH, STOP, SLEEPERS = 8 * layout.EPOCH, 8 * layout.STOP, 8 * layout.SLEEPERS
TABLE, LIMIT, ACTIVE = 8 * layout.TABLE, 8 * layout.LIMIT, 8 * layout.ACTIVE
WAITERS, NAP = 8 * layout.WAITERS, 8 * layout.NAP_SECONDS
SPIN_FOR_RUN, SPIN_FOR_ROW = 8 * layout.SPIN_FOR_RUN, 8 * layout.SPIN_FOR_ROW

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0
WAIT, WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE
EVERYONE = 0x7FFFFFFF
NONE_LEFT, OTHER_RUN = -1, -2
LOW = 0xFFFFFFFF
FAREWELL = 200  # looks for workers to leave a table


@named_kernel("executor", layout.RUN)
def run(table, worker, unused):
    """Run every tile of every row."""
    row = table + HEADER_BYTES
    for _ in range(load_i64(table)):
        function, tiles, block = load_i64(row), load_i64(row + 8), load_i64(row + 16)
        for tile in range(tiles):
            call_kernel(function, block, tile, worker)
        row += ROW_BYTES


@named_kernel("executor", layout.INVOKE)
def invoke(control, table, unused):
    """Run the rows together with the workers; return when all is done."""
    epoch = (atomic_load(control + EPOCH) + 1) & 0x7FFFFFFF
    for i in range(load_i64(table) - 1, -1, -1):
        claims = load_i64(table + HEADER_BYTES + i * ROW_BYTES + 24)
        atomic_store(claims + DONE, epoch << 32)
        atomic_store(claims, epoch << 32)
    atomic_store(control + TABLE, table)
    atomic_store(control + EPOCH, epoch)
    if atomic_load(control + SLEEPERS) > 0:
        wake(control + EPOCH)
    share(control, table, 0, epoch)
    atomic_store(control + TABLE, 0)
    for _ in range(FAREWELL):  # nobody waits for a worker that takes longer; see pool.py
        if atomic_load(control + ACTIVE) == 0:
            break
        pause()


@named_kernel("executor", layout.WORK)
def work(control, worker, unused):
    """Serve runs as worker number *worker* until the pool stops."""
    seen = 0  # of a run before the first
    while True:
        seen = next_epoch(control, seen)
        if atomic_load(control + STOP):
            return
        atomic_add(control + ACTIVE, 1)  # from here on a table is kept
        table = atomic_load(control + TABLE)
        if table and atomic_load(control + EPOCH) == seen:
            share(control, table, worker, seen)
        atomic_add(control + ACTIVE, -1)


@named_kernel("executor", layout.LOOK)
def look(address, count, unused):
    """Wait for nothing, in the way that waiting is done."""
    for _ in range(count):
        if atomic_load(address) == -1:
            return
        pause()


@jit
def share(control, table, worker, epoch):
    """Run the tiles that can be had, row by row; a row starts when the one before is complete."""
    for i in range(load_i64(table)):
        row = table + HEADER_BYTES + i * ROW_BYTES
        function, tiles, block, claims = (
            load_i64(row),
            load_i64(row + 8),
            load_i64(row + 16),
            load_i64(row + 24),
        )
        while True:
            if worker >= atomic_load(control + LIMIT):  # never the caller, who is number 0
                return
            tile = claim(claims, epoch, tiles)
            if tile < 0:
                break
            call_kernel(function, block, tile, worker)
            done = (atomic_add(claims + DONE, 1) & LOW) + 1
            if done == tiles and atomic_load(control + WAITERS) > 0:
                wake(claims + DONE)
        if tile == OTHER_RUN or not wait_for_row(control, claims, epoch, tiles):
            return


@jit
def claim(address, epoch, tiles):
    """Return a tile of this run that nobody has, ``NONE_LEFT`` or ``OTHER_RUN``."""
    found = atomic_load(address)
    while True:
        if found >> 32 != epoch:
            return OTHER_RUN
        tile = found & LOW
        if tile >= tiles:
            return NONE_LEFT
        before = compare_and_swap(address, found, found + 1)
        if before == found:
            return tile
        found = before


@jit
def wait_for_row(control, claims, epoch, tiles):
    """Wait until all tiles of a row are done; False when another run has begun meanwhile."""
    looks, patience = 0, load_i64(control + SPIN_FOR_ROW)
    while True:
        done = atomic_load(claims + DONE)
        if done >> 32 != epoch:
            return False
        if (done & LOW) >= tiles:
            return True
        looks += 1
        if looks <= patience:
            pause()
        else:  # for a limited time: the wake may be that of another run
            atomic_add(control + WAITERS, 1)
            sleep_while(claims + DONE, done, control + NAP)
            atomic_add(control + WAITERS, -1)


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
            sleep_while(control + EPOCH, seen, 0)
            atomic_add(control + SLEEPERS, -1)


@jit
def wake(address):
    """Wake everyone who sleeps at an address."""
    if _FUTEX:
        system_call(types.int64(_FUTEX), address, types.int64(WAKE), types.int64(EVERYONE), 0)


@jit
def sleep_while(address, value, limit):
    """Sleep while the low half of the int64 at an address is *value*, or be called for nothing.

    *limit* is the address of a ``timespec``, or 0.
    """
    if not _FUTEX:
        sleep_briefly()
    elif atomic_load(address) == value:
        system_call(types.int64(_FUTEX), address, types.int64(WAIT), value & LOW, limit)
