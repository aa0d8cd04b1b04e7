"""Base classes of interpreters, with members whose work other modules do when they are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10

    from delegraph.delegation.incident import Incident
    from delegraph.delegation.placement import Placement
    from delegraph.runtime.delegates.requested_delegates import AnyDelegate
    from delegraph.runtime.execution.invoke_async import Background, Run
    from delegraph.runtime.memory_views import MemoryViews
    from delegraph.runtime.session import Session


class ClosedByWith(ABC):
    """A base of interpreters: ``with Interpreter(...) as interpreter``."""

    @abstractmethod
    def close(self) -> None:
        """Release the interpreter's memory and delegates."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class InvokesAsync:
    """A base of interpreters that invoke in a thread of their own."""

    if TYPE_CHECKING:
        _views: MemoryViews

        @property
        def session(self) -> Session: ...  # noqa: D102 - Interpreter documents it

    def invoke_async(self) -> Future[None]:
        """Run the model on the present inputs like ``invoke``, in a background thread.

        Until the Future is done, inputs may not be set nor outputs read: such calls raise
        ``StateError``. Close waits for it. Several interpreters may run at the same time.

        Returns:
            A Future whose ``result()`` is None, or raises what ``invoke`` raises. Its ``cancel()``
            asks the run to stop, as the interpreter's ``cancel`` does where there is one, and
            returns False: it ends with ``CallCancelledError``, or as usual where it was too late.

        Raises:
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        self._background.require_idle("invoke_async", even_here=True)
        return self._background.start(*self._background_invoke(), keep=self)

    def _background_invoke(self) -> tuple[Run, Callable[[], None]]:
        """Return a function that invokes as the only call, and a function that stops it."""
        self._views.require_none()
        run, invoke = self.session.calls.run, self.session.subgraphs[0].invoke
        return lambda begin: run("invoke_async", begin, invoke), self.session.cancellation.request

    @cached_property
    def _background(self) -> Background:
        from delegraph.runtime.execution.invoke_async import Background  # here: few programs do

        return Background()


class TakesDelegates:
    """Base class of ``Interpreter`` that applies, removes and describes delegates."""

    if TYPE_CHECKING:
        _views: MemoryViews

        @property
        def session(self) -> Session: ...  # noqa: D102 - Interpreter documents it

    def modify_graph_with_delegate(self, delegate: AnyDelegate) -> None:
        """Apply a delegate to every subgraph, after the delegates applied before.

        The one that computes the rest by default stays the last one. Subgraphs whose name starts
        with ``VALIDATION:`` are left alone. It can be called at any time: tensors that were
        allocated are so afterwards, inputs and variables keep their data.

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
        """Remove the delegates of one name; apply the remaining ones again; tensor data is kept.

        Raises:
            ArgumentError: none of that name is applied; the message has those that are.
            DelegateError: one of the others failed; it and those after it are off.
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


class NotebookView:
    """Base class of ``Interpreter`` with its text and HTML forms."""

    if TYPE_CHECKING:
        _session: Session | None

        @property
        def placement(self) -> Placement: ...  # noqa: D102 - Interpreter documents it
        def get_input_details(self) -> list[dict[str, Any]]: ...  # noqa: D102 - and these
        def get_output_details(self) -> list[dict[str, Any]]: ...  # noqa: D102

    def __repr__(self) -> str:
        session = getattr(self, "_session", None)
        return f"<{type(self).__name__} {'that is closed' if session is None else session}>"

    def _repr_html_(self) -> str:
        """Return inputs, outputs and the placement."""
        from delegraph.delegation.html_tables import html_table  # here: only notebooks ask

        if getattr(self, "_session", None) is None:
            return html_table(repr(self), (), ())
        tensors = [("input", details) for details in self.get_input_details()]
        tensors += [("output", details) for details in self.get_output_details()]
        rows = [(kind, *_tensor(details)) for kind, details in tensors]
        columns = ("", "name", "type", "shape", "scale", "zero point")
        return html_table(repr(self), columns, rows) + self.placement._repr_html_()


def _tensor(details: dict[str, Any]) -> tuple[object, ...]:
    scale, zero_point = details["quantization"]
    quantized = (float(scale), int(zero_point)) if scale else (None, None)
    shape = details["shape_signature"].tolist()
    return (details["name"], details["dtype"].__name__, shape, *quantized)
