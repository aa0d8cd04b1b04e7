from __future__ import annotations

from delegraph.tools.profiling.live_bytes import live_bytes
from support.recordings import MUL, TWO_RUNS, event, recorded, run


def test_values_count_from_their_writer_to_their_last_reader() -> None:
    """Of x, a, b, c, d, y; tensor i has 4 (i + 1) bytes."""
    found = recorded(*TWO_RUNS)
    sizes = {t.name: 4 * (t.index + 1) for t in found.model.subgraphs[0].tensors}
    x, a, b, c, d, y = (sizes[name] for name in "xabcdy")
    assert list(live_bytes(found))[:7] == [
        (0, x),
        (100, x + a),
        (300, x + a + b),
        (400, x + b + c),
        (500, b + c + d),
        (700, b + d + y),
        (1000, 0),
    ]


def test_constants_do_not_count() -> None:
    found = recorded(*TWO_RUNS)
    total = sum(t.bytes or 0 for t in found.tensors.values() if t.name != "two")
    assert max(size for _, size in live_bytes(found)) < total


def test_a_value_that_nobody_reads_does_not_count() -> None:
    found = recorded(run(0, 100, event("MUL", MUL, 10, 20)))
    sizes = {t.name: 4 * (t.index + 1) for t in found.model.subgraphs[0].tensors}
    assert list(live_bytes(found)) == [(0, sizes["x"]), (10, sizes["x"]), (100, 0)]


def test_litert_does_not_tell_when_values_come_and_go() -> None:
    assert list(live_bytes(recorded(*TWO_RUNS, runtime="litert"))) == []
