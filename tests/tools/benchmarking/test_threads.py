from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.placement import NodePlacement, PartitionPlacement, Placement
from delegraph.tools import Setup, compare
from delegraph.tools.benchmarking.threads import different_threads, most_threads
from support.by_name import ByName

SINES = str(Path(__file__).parents[3] / "docs/demo/models/sines.tflite")


class Choosing(ByName):
    """A delegate that runs on twice as many threads as requested, three by default."""

    def most_threads(self, requested: int | None) -> int | None:
        return 3 if requested is None else 2 * requested


def placed(*delegates: str | None) -> Placement:
    """Return a placement with one node for each delegate; None means the runtime's kernels."""
    nodes = tuple(NodePlacement(0, i, "SIN", name) for i, name in enumerate(delegates))
    partitions = tuple(
        PartitionPlacement(0, name, i, 9, (i,), (), (), is_by_default=name == "XNNPACK")
        for i, name in enumerate(filter(None, delegates))
    )
    return Placement(nodes, partitions)


@pytest.mark.parametrize(
    ("runners", "by_default", "with_two"),
    [
        ((None,), 1, 2),
        (("XNNPACK", None), 1, 2),
        (("chooses",), 3, 4),
        (("chooses", None), 3, 4),
        (("silent",), None, 2),
        (("chooses", "silent"), None, 4),
        (("compiled",), None, 2),
    ],
)
def test_threads_are_those_of_the_runners(
    runners: tuple[str | None, ...], by_default: int | None, with_two: int
) -> None:
    delegates = [
        SimpleDelegate(Choosing("SIN", name="chooses")),
        SimpleDelegate(ByName("SIN", name="silent")),
    ]
    placement = placed(*runners)
    assert most_threads(None, placement, delegates) == by_default
    assert most_threads(2, placement, delegates) == with_two


def test_a_comparison_cautions_of_different_threads() -> None:
    others = [Setup(SINES, delegates=["none"], threads=2), Setup(SINES, delegates=["none"])]
    found = compare(others[1], others, blocks=5, seconds=0.05, processes=False)
    assert [found.one.threads, *(timed.threads for timed in found.others)] == [1, 2, 1]
    assert found.cautions[-1].startswith("threads differ: MODEL runs on 1, others on 2;")
    unlike, like = map(found.words_on, found.others)
    assert unlike == f"{found.others[0].verdict}, threads 1 beside 2"
    assert like == str(found.others[1].verdict)


def test_equal_threads_have_no_caution() -> None:
    assert different_threads(2, [2, 2]) == different_threads(None, [None]) == ""
    assert "MODEL runs on default, others on 1;" in different_threads(None, [1, None])
