"""What authors of delegates test them with: the conformance kit.

``DelegateConformance`` is the class to subclass. The rest is loaded when it is first used, because
pytest imports this package in every run of an environment, for its plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.testing.delegate_conformance import DelegateConformance as DelegateConformance

__all__ = ["DelegateConformance"]


def __getattr__(name: str) -> Any:
    if name != "DelegateConformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from delegraph.testing.delegate_conformance import DelegateConformance

    return DelegateConformance
