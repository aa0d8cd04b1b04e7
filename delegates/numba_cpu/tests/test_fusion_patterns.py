"""Fusions in generated models: a small sweep reaches all of them, and finds no difference."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from delegated import delegate
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.patterns import pattern_case
from delegraph.testing.sweep.sweep_case import SweepCase
from delegraph_numba_cpu.lowering import schedule
from delegraph_numba_cpu.lowering.schedule import FUSERS
from delegraph_numba_cpu.program import builder

CASES = 200

MEMBERS = {
    "fuse_inverted_residual": {"ADD", "CONV_2D", "DEPTHWISE_CONV_2D", "PAD"},
    "fuse_layer": {"ADD", "CONV_2D", "DEPTHWISE_CONV_2D", "PAD", "PADV2", "PRELU", "RELU"},
    "fuse_strip": {"CONV_2D", "DEPTHWISE_CONV_2D"},
    "fuse_attention": {"ADD", "BATCH_MATMUL", "DIV", "MUL", "RESHAPE", "SOFTMAX", "TRANSPOSE"},
    "fuse_chain": {"ADD", "MUL"},
}
"""Mapping from each fuser to operators that are in some of its fusions."""


@pytest.mark.repetition(1)  # each runs 200 models
@pytest.mark.parametrize("workers", [1, 2])
def test_all_fusions_are_reached_and_compute_as_the_core(workers, monkeypatch):
    monkeypatch.setattr(builder, "TILE_NANOSECONDS", 20)  # so that most kernels have several tiles
    found: dict[str, Counter[str]] = {fuser.__name__: Counter() for fuser in FUSERS}

    def counted(fuser):
        def fuse(partition, position, builder):
            fusion = fuser(partition, position, builder)
            if fusion is not None:
                names = {partition.calls[member].name for member in fusion.members}
                found[fuser.__name__].update(names)
            return fusion

        return fuse

    monkeypatch.setattr(schedule, "FUSERS", tuple(map(counted, FUSERS)))
    options = {"num_threads": workers, "kept_programs": False}
    comparison = Comparison("numba_cpu", make=lambda: delegate(**options))
    for number in range(CASES):
        case, names = pattern_case(Random(number))
        ending = comparison.judge(SweepCase(case.op, case.model(), case.steps * 2))
        assert ending.fault is None, (number, names, ending.fault)
    assert all(MEMBERS[name] <= set(members) for name, members in found.items()), found
