"""The sample of repeated cases that ``make test`` runs, and the rest, for ``make test-all``.

Cases of a parametrized test are drawn until each value of each parameter is in one of them. So a
test of 3 levels and 4 sizes has 4 cases instead of 12, every level and every size among them. No
test has more cases than :data:`CASES`, unless it is marked: ``@pytest.mark.repetition(50)`` lets
the sample have 50 cases, and ``repetition(0)`` none. Tests of one module that show the same thing
in several places may be a group: ``repetition(2, "hangs")`` draws 2 cases of all its tests.

``--sample SEED`` runs the sample that a seed draws, ``--rest SEED`` exactly the other cases, and
without either option every case runs. ``--sample SEED --part 4`` runs about a fourth of a sample.
All tests of the conformance kit are in both: a sample tries few models in each
(``--delegate-quick``), and the rest tries all of them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest

from delegraph.testing import DelegateConformance

CASES = 4
"""Largest number of cases of a test in a sample."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("sampling")
    group.addoption("--sample", metavar="SEED", help="run the cases that this seed draws")
    group.addoption("--part", metavar="N", type=int, default=1, help="run one N-th of the sample")
    group.addoption("--rest", metavar="SEED", help="run the cases that --sample SEED leaves out")


def pytest_configure(config: pytest.Config) -> None:
    """Let the conformance kit of a sample try few models."""
    if config.getoption("sample") is not None:
        config.option.delegate_quick = True


def pytest_report_header(config: pytest.Config) -> str | None:
    """Line that says how the cases of a run can be chosen again."""
    for option, meaning in (
        ("sample", "a sample of"),
        ("rest", "the cases left out by a sample of"),
    ):
        seed = config.getoption(option)
        if seed is not None:
            return f"sampling: {meaning} repeated cases, chosen by --{option} {seed}"
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the options leave out."""
    sample, rest = config.getoption("sample"), config.getoption("rest")
    is_check = config.getoption("delegate_stack", None) is not None  # a process of the kit's
    if is_check or (sample is None and rest is None):
        return
    drawn = drawn_items(items, sample if rest is None else rest)
    part = config.getoption("part")
    is_kept = {item: item in drawn and _is_of_part(item, sample, part) for item in items}
    if rest is not None:
        is_kept = {item: item not in drawn or is_of_the_kit(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not is_kept[item]])
    items[:] = [item for item in items if is_kept[item]]


def _is_of_part(item: pytest.Item, seed: str, part: int) -> bool:
    """Whether *item* is in one *part*-th of the tests, another one for each seed."""
    return part == 1 or random.Random(f"{seed} {item.nodeid}").randrange(part) == 0


def is_of_the_kit(item: pytest.Item) -> bool:
    """Whether *item* is a test of the conformance kit."""
    kind = getattr(item, "cls", None)
    return isinstance(kind, type) and issubclass(kind, DelegateConformance)


def drawn_items(items: Sequence[pytest.Item], seed: str) -> set[pytest.Item]:
    """Return the tests of a sample: all that have one case, and drawn cases of the others."""
    tests: dict[tuple[str, int | None], list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("repetition")
        count, *group = marker.args if marker else [len(items) if is_of_the_kit(item) else None]
        module, _, name = item.nodeid.partition("[")[0].partition("::")
        tests[f"{module}::{group[0] if group else name}", count].append(item)
    drawn: set[pytest.Item] = set()
    for (name, count), cases in tests.items():
        numbers = drawn_cases([_values(item) for item in cases], f"{seed} {name}", count)
        drawn.update(cases[i] for i in numbers)
    return drawn


def _values(item: pytest.Item) -> tuple[str, ...]:
    """Name of the value that each ``parametrize`` of a test has given to a case."""
    return tuple(item.callspec._idlist) if hasattr(item, "callspec") else ()


def drawn_cases(cases: Sequence[Sequence[str]], seed: str, count: int | None) -> list[int]:
    """Return the numbers of the drawn cases.

    Args:
        cases: of each case, the values of its parameters, by name.
        seed: text that decides the order in which cases are drawn.
        count: how many to draw; None for as many as show every value, at most :data:`CASES`.

    >>> len(drawn_cases([("avx2", "odd"), ("avx2", "even"), ("neon", "odd")], "1", 1))
    1
    """
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    if count is not None:
        return order[:count]
    drawn: list[int] = []
    missing = {value for case in cases for value in enumerate(case)}
    while len(drawn) < CASES and (missing or not drawn):
        best = max(order, key=lambda i: len(missing.intersection(enumerate(cases[i]))))
        drawn.append(best)
        missing.difference_update(enumerate(cases[best]))
    return drawn
