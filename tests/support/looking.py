"""A delegate that only looks."""

from __future__ import annotations

from collections.abc import Callable

from delegraph import Delegate, DelegateContext


class Looking(Delegate):
    """Delegate that claims nothing, and calls a function with the subgraph when it is applied."""

    def __init__(self, look: Callable[[DelegateContext], None]) -> None:
        self._look = look

    def name(self) -> str:
        return "looking"

    def prepare(self, context: DelegateContext) -> None:
        self._look(context)
