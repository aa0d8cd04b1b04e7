"""Runs the rows of a program, alone or with the workers of a pool.

The tiles of a row are divided into shares, one for each thread. A thread takes the tiles of its own
share first, then tiles of other shares. Tiles divide images from top to bottom, so a thread finds
its results of the row before in its caches. No thread waits for a late thread.

A word for each share holds the turn of a row and the number of unclaimed tiles. The first thread
that claims a tile of a share in a turn finds an earlier turn there. So the thread that begins a row
writes only the word that all threads watch, and no other word that is in another thread's cache. A
thread claims a tile by compare-and-swap. It may then read the table, since the run cannot end
before the tile is done. The thread that finishes the last tile of a row makes the next row the
present one, or ends the run; it runs rows of a single tile itself. A late worker finds a later turn
and does no harm. A thread that waits for the next row sleeps after a while. The operating system
can then run a late thread on the free processor.

Python handles signals only between its own instructions, and so not in this code. Counts here are
correct even if a signal interrupts the caller before or after.
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
    present_processor,
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
TURN, ROW, TILES = 8 * layout.TURN, 8 * layout.ROW, 8 * layout.TILES
DONE = 8 * layout.DONE
LAST, TABLE, ASKED = 8 * layout.LAST, 8 * layout.TABLE, 8 * layout.ASKED
PROCESSOR = 8 * layout.PROCESSOR
EPOCH, SLEEPERS, WAITERS = 8 * layout.EPOCH, 8 * layout.SLEEPERS, 8 * layout.WAITERS
CALLERS, IS_LED, HIRED = 8 * layout.CALLERS, 8 * layout.IS_LED, 8 * layout.HIRED
IS_OVER, CORES, KEEPS_APART = 8 * layout.IS_OVER, 8 * layout.CORES, 8 * layout.KEEPS_APART
SPIN_FOR_RUN, SPIN_FOR_ROW = 8 * layout.SPIN_FOR_RUN, 8 * layout.SPIN_FOR_ROW
SHARES, SHARE_BYTES = 8 * layout.SHARES, 8 * layout.LINE

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(machine(), 0) if sys.platform == "linux" else 0
WAIT, WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE
EVERYONE = 0x7FFFFFFF
LOW = 0xFFFFFFFF
TILE = 1 << 32  # in the word of a share
BETWEEN_RUNS = -1 << 32


@named_kernel("executor", layout.RUN)
def run(table, unused, unused_too):
    """Run every tile of every row (kernel call) of a program's table in the calling thread.

    The other arguments are unused, because all entry functions take three.
    """
    run_alone(table)


@named_kernel("executor", layout.INVOKE)
def invoke(control, table, threads):
    """Run every tile of every row (kernel call) of a program, with worker threads if they are idle.

    Args:
        control: address of the memory that callers and workers share.
        table: address of the program's table of rows.
        threads: number of threads that are wanted, including this thread.
    """
    atomic_add(control + CALLERS, 1)
    if threads > 1 and compare_and_swap(control + IS_LED, 0, 1) == 0:
        lead(control, table, threads)
        atomic_store(control + IS_LED, 0)
    else:
        run_alone(table)
    atomic_add(control + CALLERS, -1)


@named_kernel("executor", layout.WORK)
def work(control, unused, unused_too):
    """Loop of a worker thread: run tiles of every program that is run, until the pool ends.

    Args:
        control: address of the memory that callers and workers share.
        unused: any number, as all entry functions take three arguments.
        unused_too: any number.
    """
    worker = atomic_add(control + HIRED, 1) + 1  # the number selects its scratch memory
    seen = 0  # the epoch before the first run
    while True:
        seen = next_epoch(control, seen)
        if atomic_load(control + IS_OVER):
            return
        share(control, worker)


@named_kernel("executor", layout.END)
def end(control, unused, unused_too):
    """Make all worker threads stop after their present run.

    Args:
        control: address of the memory that callers and workers share.
        unused: any number, as all entry functions take three arguments.
        unused_too: any number.
    """
    atomic_store(control + IS_OVER, 1)
    begin_epoch(control)


@named_kernel("executor", layout.LOOK)
def look(address, count, unused):
    """Poll a word in memory as waiting threads do; the caller measures how long that takes.

    If the word is -1, polling ends at once.

    Args:
        address: address of the word.
        count: number of polls.
        unused: any number, as all entry functions take three arguments.
    """
    for _ in range(count):
        if atomic_load(address) == -1:
            return
        pause()


@jit
def run_alone(table):
    """Run every tile of every row of *table* in this thread; stop if the run is cancelled."""
    store_i64(table + IS_CANCELLED, 0)
    store_i64(table + THREADS, 1)
    cancellation = load_i64(table + CANCELLATION)
    row = table + HEADER_BYTES
    for _ in range(load_i64(table)):
        function, tiles, record = load_i64(row), load_i64(row + 8), load_i64(row + 16)
        for tile in range(tiles):
            if load_i32(cancellation):
                store_i64(table + IS_CANCELLED, 1)
                return
            call_kernel(function, record, tile, 0)
        row += ROW_BYTES


@jit
def lead(control, table, threads):
    """Run every tile of a program together with the workers; return after the last tile.

    Args:
        control: address of the memory that callers and workers share.
        table: address of the program's table of rows.
        threads: number of threads that are wanted, including this thread.
    """
    turn = (atomic_load(control + TURN) + 1) & LOW
    atomic_store(control + TILES, turn)  # no tiles; a worker late from the last run claims none
    store_i64(table + IS_CANCELLED, 0)
    store_i64(table + THREADS, threads)
    before_first = table + HEADER_BYTES - ROW_BYTES
    store_i64(control + LAST, before_first + load_i64(table) * ROW_BYTES)
    store_i64(control + TABLE, table)
    atomic_store(control + ASKED, threads)
    atomic_store(control + PROCESSOR, present_processor())
    for number in range(share_count(control)):  # a turn long ago would look like a later one
        atomic_store(control + SHARES + number * SHARE_BYTES, turn)
    atomic_store(control + TURN, turn)
    begin_epoch(control)
    go_on(control, before_first, 0)
    share(control, 0)


@jit
def share(control, worker):
    """Run unclaimed tiles until the run ends, or until too many threads take part in it.

    Args:
        control: address of the memory that callers and workers share.
        worker: number of this thread; 0 is the caller.
    """
    while True:
        turn = atomic_load(control + TURN)
        if turn < 0 or (worker and worker >= room(control)):
            return
        if worker and has_processor_of_caller(control):
            return
        if not run_unclaimed(control, worker, turn):
            wait_for_turn(control, turn)


@jit
def run_unclaimed(control, worker, turn):
    """Run unclaimed tiles of the present row; return whether another row has begun meanwhile.

    A thread takes the tiles of its own share first.

    Args:
        control: address of the memory that callers and workers share.
        worker: number of this thread.
        turn: number of the row's turn; only tiles of this turn are claimed.
    """
    row, shares = atomic_load(control + ROW), share_count(control)
    found = atomic_load(control + TILES)  # written before the others, so read after them
    if found & LOW != turn:
        return True  # the others may be words of a later row
    tiles = found >> 32
    for i in range(shares):
        number = (worker + i) % shares
        end = tiles * (number + 1) // shares
        size = end - tiles * number // shares
        while True:
            left = claimed(control + SHARES + number * SHARE_BYTES, size, turn)
            if left <= 0:
                break
            run_tile(control, row, end - left, worker)
            if atomic_add(control + DONE, -1) == 1:
                go_on(control, row, worker)
                return True
    return False


@jit
def claimed(word, size, turn):
    """Claim a tile of a share; return how many were unclaimed before, 0 if the claim failed.

    Args:
        word: address of the share's word.
        size: number of tiles of the share.
        turn: number of the row's turn. If the word has a later one, the row is done.
    """
    while True:
        found = atomic_load(word)
        age = (turn - found) & LOW
        left = found >> 32 if age == 0 else size
        if left <= 0 or age > EVERYONE:
            return 0
        if compare_and_swap(word, found, (left - 1) * TILE | turn) == found:
            return left


@jit
def share_count(control):
    """Return the number of shares into which each row of the present run is divided."""
    return min(atomic_load(control + ASKED), layout.MOST_SHARES)


@jit
def run_tile(control, row, tile, worker):
    """Run a tile that this thread has claimed, or skip it if the run is cancelled.

    Args:
        control: address of the memory that callers and workers share.
        row: address of the row (kernel call) in the table.
        tile: number of the tile.
        worker: number of this thread.
    """
    table = load_i64(control + TABLE)
    if load_i32(load_i64(table + CANCELLATION)):
        store_i64(table + IS_CANCELLED, 1)
    else:
        call_kernel(load_i64(row), load_i64(row + 16), tile, worker)


@jit
def go_on(control, row, worker):
    """Begin the next row (kernel call) that has several tiles, or end the run.

    It is called when the last tile of a row is done. Rows of a single tile before the next one are
    run here, as other threads have nothing to do for them.

    Args:
        control: address of the memory that callers and workers share.
        row: address of the row that is done.
        worker: number of this thread.
    """
    turn = (atomic_load(control + TURN) + 1) & LOW
    last, tiles = load_i64(control + LAST), 0
    while tiles < 2 and row < last:
        row += ROW_BYTES
        tiles = load_i64(row + 8)
        if tiles == 1:
            run_tile(control, row, 0, worker)
    if tiles < 2:
        atomic_store(control + TURN, BETWEEN_RUNS | turn)
    else:
        atomic_store(control + TILES, tiles * TILE | turn)
        atomic_store(control + ROW, row)
        store_i64(control + DONE, tiles)
        atomic_store(control + TURN, turn)
    if atomic_load(control + WAITERS) > 0:
        wake(control + TURN)


@jit
def room(control):
    """Return the number of threads that may take part in the present run.

    With one caller, it is the requested number. With more callers, it keeps the number of callers
    and workers within the number of cores, or within the requested number if that is larger.
    """
    asked = atomic_load(control + ASKED)
    beside = max(asked, load_i64(control + CORES)) + 1 - atomic_load(control + CALLERS)
    return min(asked, beside)


@jit
def has_processor_of_caller(control):
    """Whether this thread, a worker, runs on the caller's processor, so that the caller cannot run.

    The operating system puts both threads there while another process keeps the other processors
    busy.
    """
    callers = atomic_load(control + PROCESSOR)
    return load_i64(control + KEEPS_APART) and present_processor() == callers


@jit
def wait_for_turn(control, found):
    """Wait until another row is the present one, with a turn other than *found*.

    The thread polls at first, then sleeps.
    """
    looks, patience = 0, load_i64(control + SPIN_FOR_ROW)
    while atomic_load(control + TURN) == found:
        looks += 1
        if looks <= patience:
            pause()
        else:
            atomic_add(control + WAITERS, 1)
            sleep_while(control + TURN, found)
            atomic_add(control + WAITERS, -1)


@jit
def begin_epoch(control):
    """Announce a new run, or the end of the pool, and wake all workers that wait for one.

    *control* is the address of the memory that callers and workers share.
    """
    atomic_store(control + EPOCH, (atomic_load(control + EPOCH) + 1) & EVERYONE)
    if atomic_load(control + SLEEPERS) > 0:
        wake(control + EPOCH)


@jit
def next_epoch(control, seen):
    """Wait until a new run is announced, and return its number; the thread polls, then sleeps.

    Args:
        control: address of the memory that callers and workers share.
        seen: number of the last run that this worker knows.
    """
    looks, patience = 0, load_i64(control + SPIN_FOR_RUN)
    if has_processor_of_caller(control):
        sleep_briefly()  # no caller of many short runs has to wake it for each of them
        patience = 0
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
    """Wake all threads that sleep at an address."""
    if _FUTEX:
        system_call(types.int64(_FUTEX), address, types.int64(WAKE), types.int64(EVERYONE), 0)


@jit
def sleep_while(address, value):
    """Sleep while the int64 at an address is *value*; the thread may also wake without a reason.

    The system compares only the low half of the word, which changes at each wake-up.
    """
    if not _FUTEX:
        sleep_briefly()
    elif atomic_load(address) == value:
        system_call(types.int64(_FUTEX), address, types.int64(WAIT), value & LOW, 0)
