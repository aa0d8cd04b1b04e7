"""Runs the rows of a program, alone or with the workers of a pool.

Tiles are claimed one by one, by compare-and-swap on a word that holds the run's epoch and the next
tile. A worker that was delayed finds another epoch, or no tile left, and does no harm: nobody waits
for a worker that has not claimed a tile.
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
    system_call,
    yield_processor,
)
from delegraph_numba_cpu.kernels.registry import kernel

ROW_BYTES = 8 * layout.ROW_WORDS
DONE = 8 * layout.LINE
HEADER_BYTES = 8 * layout.HEADER_WORDS
EPOCH, STOP, SLEEPERS = 8 * layout.EPOCH, 8 * layout.STOP, 8 * layout.SLEEPERS
TABLE, LIMIT, ACTIVE = 8 * layout.TABLE, 8 * layout.LIMIT, 8 * layout.ACTIVE

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0
WAIT, WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE
NONE_LEFT, OTHER_RUN = -1, -2
LOW = 0xFFFFFFFF
PATIENCE = 64  # looks between two pleas to the operating system


@kernel(layout.RUN)
def run(table, worker, unused):
    """Run every tile of every row."""
    row = table + HEADER_BYTES
    for _ in range(load_i64(table)):
        function, tiles, block = load_i64(row), load_i64(row + 8), load_i64(row + 16)
        for tile in range(tiles):
            call_kernel(function, block, tile, worker)
        row += ROW_BYTES


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
def share(table, worker, epoch):
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
            tile = claim(claims, epoch, tiles)
            if tile < 0:
                break
            call_kernel(function, block, tile, worker)
            atomic_add(claims + DONE, 1)
        if tile == OTHER_RUN:
            return
        looks = 0
        while True:
            done = atomic_load(claims + DONE)
            if done >> 32 != epoch:
                return
            if (done & LOW) >= tiles:
                break
            looks += 1
            if looks % PATIENCE == 0:
                yield_processor()


@kernel(layout.INVOKE)
def invoke(control, table, limit):
    """Run the rows together with the workers; return when all is done."""
    epoch = (atomic_load(control + EPOCH) + 1) & 0x7FFFFFFF
    for i in range(load_i64(table) - 1, -1, -1):
        claims = load_i64(table + HEADER_BYTES + i * ROW_BYTES + 24)
        atomic_store(claims + DONE, epoch << 32)
        atomic_store(claims, epoch << 32)
    atomic_store(control + TABLE, table)
    atomic_store(control + LIMIT, limit)
    atomic_store(control + EPOCH, epoch)
    if atomic_load(control + SLEEPERS) > 0:
        wake(control + EPOCH)
    share(table, 0, epoch)


@kernel(layout.WORK)
def work(control, worker, spin):
    """Serve runs as worker number *worker*; look *spin* times for the next before sleeping."""
    seen = atomic_load(control + EPOCH)
    while True:
        seen = next_epoch(control, seen, spin)
        if atomic_load(control + STOP):
            return
        atomic_add(control + ACTIVE, 1)  # from here on the table is kept
        if atomic_load(control + EPOCH) == seen and worker < atomic_load(control + LIMIT):
            share(atomic_load(control + TABLE), worker, seen)
        atomic_add(control + ACTIVE, -1)


@jit
def next_epoch(control, seen, spin):
    """Wait for another epoch than *seen* and return it."""
    looks = 0
    while True:
        epoch = atomic_load(control + EPOCH)
        if epoch != seen:
            return epoch
        looks += 1
        if looks > spin:
            atomic_add(control + SLEEPERS, 1)
            sleep_while(control + EPOCH, seen)
            atomic_add(control + SLEEPERS, -1)
        elif looks % PATIENCE == 0:
            yield_processor()


@jit
def wake(address):
    """Wake everyone who sleeps at an address."""
    if _FUTEX:
        system_call(types.int64(_FUTEX), address, types.int64(WAKE), types.int64(64))


@jit
def sleep_while(address, value):
    """Sleep while the low half of the int64 at an address is *value*, or be called for nothing."""
    if _FUTEX:
        if atomic_load(address) == value:
            system_call(types.int64(_FUTEX), address, types.int64(WAIT), value & LOW)
    else:
        yield_processor()
