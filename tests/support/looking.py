"""A delegate that only looks."""

from __future__ import annotations

from collections.abc import Callable

from delegraph import Delegate, DelegateContext


class Looking(Delegate):
    """Lets a function look at the subgraph while a delegate is being applied; claims nothing."""

    def __init__(self, look: Callable[[DelegateContext], None]) -> None:
        self._look = look

    def name(self) -> str:
        return "looking"

    def prepare(self, context: DelegateContext) -> None:
        self._look(context)
