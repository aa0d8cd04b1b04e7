"""A delegate that fails where a test wants it to; tests have it applied by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delegraph import DelegateFlags
from support.by_name import ByName, ByNameKernel

PLUGIN = """\
from delegraph import DelegateSpec, hookimpl

def _load():
    from support.failing_default import made
    return made

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("failing", "fails where it is told to", _load, default_rank=0)]
"""


class Failing(ByName):
    """Default delegate that computes ADD and SIN, and raises from its *n*-th call of a phase on.

    Attributes:
        visits: how often each phase was reached.
    """

    def __init__(
        self,
        at: str = "never",
        *,
        n: int = 1,
        ops: tuple[str, ...] = ("ADD", "SIN"),
        flags: DelegateFlags = DelegateFlags.ALLOW_DYNAMIC_TENSORS,
        error: type[Exception] = RuntimeError,
        spoil: Callable[[Any, Any], None] | None = None,
    ) -> None:
        super().__init__(*ops, flags=flags, name="failing", kernel=FailingKernel)
        self.at, self.n, self.error, self.spoil = at, n, error, spoil
        self.visits: dict[str, int] = {}

    def reach(self, phase: str, *about: Any) -> None:
        """Raise if the failure is due at this call."""
        self.visits[phase] = self.visits.get(phase, 0) + 1
        if phase == self.at and self.visits[phase] >= self.n:
            if self.spoil is not None:
                self.spoil(*about)
            raise self.error(f"boom at {phase}")

    def initialize(self, context: Any) -> None:
        self.reach("initialize")

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> Any:
        self.reach("claim")
        return super().is_node_supported_by_delegate(registration, node, context)


class FailingKernel(ByNameKernel):
    delegate: Failing

    def init(self, context: Any, params: Any) -> None:
        self.delegate.reach("init", context, params)
        super().init(context, params)

    def prepare(self, context: Any, node: Any) -> None:
        self.delegate.reach("prepare")
        super().prepare(context, node)

    def eval(self, context: Any, node: Any) -> None:
        super().eval(context, node)
        self.delegate.reach("eval", context, node)

    def close(self) -> None:
        self.delegate.reach("free")


NEXT: list[Failing] = []
"""What the plugin makes next."""


def made() -> Failing:
    """Return the delegate that the test stored in ``NEXT``."""
    return NEXT[-1]
