"""Members of ``Interpreter`` that apply, remove and describe delegates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delegraph.delegation.incident import Incident
    from delegraph.delegation.placement import Placement
    from delegraph.runtime.delegates.requested_delegates import AnyDelegate
    from delegraph.runtime.memory_views import MemoryViews
    from delegraph.runtime.session import Session


class TakesDelegates:
    """Base class of ``Interpreter`` that applies, removes and describes delegates."""

    if TYPE_CHECKING:
        _views: MemoryViews

        @property
        def session(self) -> Session: ...  # noqa: D102 - Interpreter documents it

    def modify_graph_with_delegate(self, delegate: AnyDelegate) -> None:
        """Apply a delegate to every subgraph, after the delegates applied before.

        The default delegate, if there is one, stays the last. Subgraphs whose name starts with
        ``VALIDATION:`` are not changed. The method can be called at any time: allocated tensors
        stay allocated, and inputs and variables keep their data.

        Raises:
            PluginError: a delegate asked for by name is missing or broken.
            DelegateError: the delegate failed; every subgraph is as it was before the call.
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        from delegraph.runtime.delegates.default_delegate import apply_before_the_rest
        from delegraph.runtime.delegates.requested_delegates import as_delegate

        self._views.require_none()
        chosen = as_delegate(delegate, self.session.options.failures.isolation)
        session = self.session
        session.calls.run("modify_graph_with_delegate", apply_before_the_rest, session, chosen)

    def remove_delegate(self, name: str) -> None:
        """Remove the delegates with a name; apply the others again; tensor data is kept.

        Raises:
            ArgumentError: no delegate with that name is applied; the message lists the applied
                ones.
            DelegateError: another delegate failed; that delegate and those after it are removed.
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        self._views.require_none()
        self.session.calls.run("remove_delegate", self.session.remove, name)

    def remove_all_delegates(self) -> None:
        """Return all nodes to Delegraph's kernels, at any time; tensor data is kept.

        Raises:
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        self._views.require_none()
        self.session.calls.run("remove_all_delegates", self.session.remove_all_delegates)

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, with the reasons of delegates that rejected it."""
        return self.session.placement()

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates that ``on_failure`` did not raise as errors."""
        return self.session.incidents.all()
