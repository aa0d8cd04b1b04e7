"""The base class of ``Interpreter`` that owns its session, or a kept start in place of one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

from delegraph.collector import MANY, collector_paused
from delegraph.errors import ConfigurationError, StateError
from delegraph.runtime.arguments import OpResolverType, tensor_at
from delegraph.runtime.members import ClosedByWith

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from delegraph.delegation.delegate import Delegate
    from delegraph.delegation.rules import PlacementRules
    from delegraph.delegation.rules_file import Rules
    from delegraph.graph.model import Model
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.arguments import AnyPath
    from delegraph.runtime.delegates.requested_delegates import ManyDelegates
    from delegraph.runtime.execution.invoke_async import Background
    from delegraph.runtime.kept_start import KeptStart, Request
    from delegraph.runtime.official.custom_op_registerers import CustomOps
    from delegraph.runtime.options import FailurePolicy, InterpreterOptions
    from delegraph.runtime.session import Session
    from delegraph.runtime.subgraph import Subgraph
    from delegraph.runtime.tensor_access import Shortcuts


class OwnsSession(ClosedByWith):
    """Base class of ``Interpreter`` that makes, replaces and closes its session.

    The interpreter has a session, or until the model is read, a kept start. After closing, it has
    neither.
    """

    _session: Session | None = None
    _kept_start: KeptStart | None = None
    _start_request: Request | None = None  # of a start that is not stored yet
    _delegates: list[Delegate]
    _shortcuts: Shortcuts
    _custom_op_registerers: Sequence[Any] = ()  # see InterpreterWithCustomOps

    if TYPE_CHECKING:

        @property
        def _background(self) -> Background: ...

    def _starts_as_kept(self, path: AnyPath, num_threads: int | None) -> bool:
        """Use the start stored for *path* and *num_threads*; return False if there is none."""
        from delegraph.delegation.configuration import default_delegates  # lazy: not with delegates

        try:
            has_own_defaults = default_delegates()[0] is not None
        except ConfigurationError:
            return False  # applying the delegates says what is wrong
        if has_own_defaults or self._custom_op_registerers:
            return False
        with collector_paused(_lasting("kept_start")):
            from delegraph.runtime import kept_start  # lazy, too

            request = kept_start.requested(path, num_threads)
            if request is not None:
                self._kept_start = kept_start.found(request)
        if self._kept_start is None:
            self._start_request = request
            return False
        self._shortcuts = self._kept_start.shortcuts
        self._delegates = []
        return True

    def _keep_start(self, request: Request) -> None:
        from delegraph.runtime.kept_start_writing import keep  # lazy: once for each model

        self._start_request = None
        keep(request, self.session)

    def _open(
        self,
        model: Model,
        options: InterpreterOptions,
        custom_ops: CustomOps,
        delegates: tuple[ManyDelegates | None, ManyDelegates | None],
        resolver: OpResolverType,
        on_loaded: Callable[[], object] | None = None,
    ) -> Session:
        """Make the session of *model* and apply its delegates, by the constructor's arguments.

        Args:
            model: the model.
            options: the constructor's other arguments.
            custom_ops: custom operators, by name.
            delegates: ``experimental_delegates`` and ``delegates``.
            resolver: decides whether the model gets delegates that no argument names.
            on_loaded: function that is called before the delegates are applied.
        """
        from delegraph.runtime.session import Session  # lazy: a kept start has none

        ops = self._all_custom_ops(model, custom_ops)
        session = Session(model, options, ops, _placement_rules(options.placement.rules))
        if self._kept_start is None:
            self._session = session
            self._shortcuts = session.subgraphs[0].shortcuts
        if on_loaded is not None:
            on_loaded()
        given = [each for some in delegates for each in _chosen(some, options.failures)]
        self._delegates = given
        if given or delegates[1] is None:
            is_left_open = all(some is None for some in delegates)
            with collector_paused(_lasting("delegates.defaults")):
                from delegraph.runtime.delegates import defaults  # lazy: not with ``delegates=[]``

                apply = defaults.apply, session, given, resolver, is_left_open
                session.calls.run("Interpreter()", *apply)
        return session

    def _replace_start(self) -> None:
        """Read the model of the kept start, and move the tensors' values to its session."""
        start = self._kept_start
        if start is None:
            return  # another thread was first
        import_session()
        from delegraph.graph.loader import parse_model
        from delegraph.runtime.options import InterpreterOptions

        threads, model = start.request.num_threads, parse_model(start.request.content)
        options = InterpreterOptions(
            -1 if threads is None else threads, "builtin", False, False, False
        )
        session = self._open(model, options, {}, (None, None), OpResolverType.AUTO)
        if start.is_allocated:
            session.calls.run("allocate_tensors", session.allocate_first)
            start.hand_over(session.subgraphs[0].tensors)
        else:
            self._start_request = start.request
        self._session = session
        self._shortcuts = session.subgraphs[0].shortcuts
        self._kept_start = None

    @property
    def session(self) -> Session:
        """The session with the model and its running subgraphs, for tools.

        Raises:
            StateError: the interpreter is closed.
        """
        if self._kept_start is not None:
            self._kept_start.end(self._replace_start)
        if self._session is None:
            raise StateError("Interpreter was not initialized, or it is closed.")
        return self._session

    @property
    def _primary(self) -> Subgraph:
        return self.session.subgraphs[0]

    def _border(self, side: Literal["inputs", "outputs"]) -> list[Tensor]:
        """Return the model's inputs or outputs; a kept start has them without reading the model."""
        start = self._kept_start
        if start is not None:
            return [start.known[index] for index in getattr(start, side)]
        first = self._primary
        return [tensor_at(first.tensors, index) for index in getattr(first, side)]

    def close(self) -> None:
        """Wait for ``invoke_async``, then free model, memory and delegates; later calls raise.

        Raises:
            StateError: another call runs.
        """
        if self._kept_start is not None:
            self._kept_start.calls.run("close", self._forget_start)
        if (session := self._session) is not None:
            if "_background" in self.__dict__:  # else importing it takes longer than closing
                self._background.close()
            session.calls.run("close", self._close, session)

    def _forget_start(self) -> None:
        self._shortcuts.clear()
        self._kept_start = None

    def _close(self, session: Session) -> None:
        self._session = None
        self._delegates = []
        self.__dict__.pop("_interpreter", None)
        session.close()

    def __del__(self) -> None:
        if session := self._session:  # no call runs; no thread may start
            self._close(session)

    def _all_custom_ops(self, model: Model, given: CustomOps) -> CustomOps:
        """Return the *given* custom operators, and those of the registerers, for *model*."""
        if not self._custom_op_registerers:
            return given
        from delegraph.runtime.official.custom_op_registerers import (
            registered_ops,  # lazy import: few programs register any
        )

        return {**registered_ops(self._custom_op_registerers, model), **given}


def import_session() -> None:
    """Import the modules that read and run models, which a kept start does not need."""
    with collector_paused(_lasting("session")):
        import delegraph.graph.loader
        import delegraph.runtime.session  # noqa: F401 - each user imports what it needs of them


def _lasting(module: str) -> int:
    """Return :data:`MANY` if *module* of this package is still to be imported, else 0.

    The number stands for the long-lived objects that the import creates.
    """
    return 0 if f"{__package__}.{module}" in sys.modules else MANY


def _chosen(delegates: ManyDelegates | None, failures: FailurePolicy) -> list[Delegate]:
    if delegates is None or (isinstance(delegates, list | tuple) and not delegates):
        return []
    from delegraph.runtime.delegates.requested_delegates import (
        as_delegates,  # lazy import: only for those who ask
    )

    return as_delegates(delegates, failures.isolation)


def _placement_rules(rules: Rules | None) -> PlacementRules | None:
    if rules is None:
        return None
    from delegraph.delegation.rules_file import placement_rules  # lazy import, too

    return placement_rules(rules)
