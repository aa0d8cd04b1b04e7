"""Number of threads on which a set-up runs, by request or by its delegates' own choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.delegation.placement import Placement
    from delegraph.tools.setup import AnyInterpreter, Setup


def most_threads(
    requested: int | None, placement: Placement, delegates: Sequence[Delegate]
) -> int | None:
    """Largest number of threads of a run; None if a delegate chooses it and does not report it.

    Kernels of each runtime, and XNNPACK, run on the requested number, by default one. A delegate
    that does not report its number counts with the requested number. *delegates* are the applied
    ones that are Python objects.
    """
    from delegraph.delegation.driver import SimpleDelegate  # lazy: answers need only the texts

    named = {each.name(): each for each in delegates}
    found: set[int | None] = set()
    for partition in placement.partitions:
        delegate = named.get(partition.delegate)
        if isinstance(delegate, SimpleDelegate):
            told = delegate.simple.most_threads(requested)
            found.add(requested if told is None else told)
        else:
            is_of_runtime = delegate is None and partition.is_by_default
            found.add(requested or 1 if is_of_runtime else requested)
    if any(node.delegate is None for node in placement.computed_nodes()):
        found.add(requested or 1)
    known = [count for count in found if count is not None]
    return max(known, default=1) if len(known) == len(found) else None


def applied_delegates(setup: Setup, interpreter: AnyInterpreter) -> Sequence[Delegate]:
    """Return the delegates that *interpreter* applies, as objects.

    LiteRT's interpreters do not tell them, so these have those of *setup*, which are objects.
    """
    session: Any = getattr(interpreter, "session", None)  # of Delegraph's own runtime
    applied: Any = setup.delegates or [] if session is None else session.delegates
    return list(applied)


def threads_text(threads: int | None) -> str:
    """Text of a number of threads; ``default`` if a delegate chooses it and does not report it."""
    return "default" if threads is None else str(threads)


def different_threads(one: int | None, others: Iterable[int | None]) -> str:
    """Caution if set-ups run on another number of threads than the tested one; else empty.

    *one* is the tested set-up's number. None stands for a delegate that does not report it.
    """
    unlike = [threads_text(count) for count in dict.fromkeys(others) if count != one]
    if not unlike:
        return ""
    numbers = f"MODEL runs on {threads_text(one)}, others on {' and '.join(unlike)}"
    return f"threads differ: {numbers}; --threads N asks all for the same"
