"""``LiteRtInterpreter``: an official interpreter with Delegraph's delegates and placement."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn

from delegraph.delegation.incident import Incident
from delegraph.delegation.placement import Placement
from delegraph.errors import ArgumentError, DelegateError, StateError
from delegraph.graph.external_buffers import official_source
from delegraph.native.litert.applied_delegates import AppliedDelegates
from delegraph.native.litert.given_delegates import AnnouncedDelegates
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.native.litert.interpreter_nodes import InterpreterNodes
from delegraph.native.litert.observer import Observer
from delegraph.native.litert.switch_interval import switching
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.runtime.arguments import (
    OpResolverType,
    check_choice,
    checked_num_threads,
    default_delegates_are_wanted,
    model_of,
    numerics_of,
)
from delegraph.runtime.delegates.requested_delegates import ManyDelegates
from delegraph.runtime.execution.invoke_async import Run
from delegraph.runtime.execution.profile import Profile
from delegraph.runtime.members import ClosedByWith, InvokesAsync
from delegraph.runtime.options import (
    FailurePolicy,
    Limits,
    PlacementPolicy,
    groups_of,
    require_official,
)


class LiteRtInterpreter(InvokesAsync, ClosedByWith):
    """Runs a model in an official interpreter, with delegates written in Python.

    Arguments and methods are those of the official class. Exceptions of delegates are raised
    unchanged, with their traceback; the runtime's own errors omit the texts of earlier errors.
    Delegates of compiled partitions in the file are applied first, then the other Python delegates.
    The runtime's own XNNPACK gets the remaining nodes, unless ``experimental_op_resolver_type``
    forbids it. Delegates are fixed at construction; other delegates need another interpreter.

    Args:
        model_path: path of a ``.tflite`` file, or ``FILE#SECTION`` of a bundle, which is read.
        model_content: the bytes of a model. Give this or ``model_path``.
        experimental_delegates: delegates to apply, in order: names, objects, and official
            delegates.
        num_threads: as in ``delegraph.Interpreter``; at most eight for each processor.
        experimental_op_resolver_type: Delegraph's enumeration or the official one.
        delegates: as in ``delegraph.Interpreter``: names, objects, or a mapping from names to
            options.
        custom_ops: as in ``delegraph.Interpreter``. They are computed after all other delegates
            have been asked, as the delegate ``custom_ops``.
        placement: as in ``delegraph.Interpreter``, without ``partitions``. The runtime's own
            delegates ignore rules: if one of them claims a node that a rule forbids,
            ``allocate_tensors`` raises an error. ``require="full"`` counts them among the
            delegates.
        limits: as in ``delegraph.Interpreter``. A call stops at the next node of a Python delegate.
            ``memory`` limits the memory that the runtime allocates for tensors when nodes are
            prepared.
        failures: as in ``delegraph.Interpreter``.
        runtime: ``"ai_edge_litert"``, ``"tflite_runtime"`` or ``"tensorflow"``; by default the
            first that is installed.
        switch_interval: seconds after which a busy Python thread must yield to the delegate's
            kernels during ``invoke``; see ``sys.setswitchinterval``. It applies to the whole
            process.
        on_loaded: as in ``delegraph.Interpreter``.
        cache_dir: as in ``delegraph.Interpreter``.
        arguments: further arguments of the official constructor.

    Raises:
        ArgumentError: (ValueError) arguments are wrong, or the file does not exist.
        MalformedModelError: (ValueError) the model is damaged.
        PluginError: a named delegate is missing or broken.
        UnsupportedRuntimeError: (RuntimeError) there is no official runtime, or it has unknown
            structs.
    """

    _official: Any = None  # set by __init__
    _applied: AppliedDelegates

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = OpResolverType.AUTO,
        *,
        delegates: ManyDelegates | None = None,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        placement: PlacementPolicy | None = None,
        limits: Limits | None = None,
        failures: FailurePolicy | None = None,
        runtime: str | None = None,
        switch_interval: float | None = None,
        on_loaded: Callable[[], object] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        **arguments: Any,
    ) -> None:
        if switch_interval is not None and not switch_interval > 0:
            raise ArgumentError(f"switch_interval is {switch_interval!r}, expected seconds > 0")
        groups = groups_of(placement, limits, failures, arguments)
        require_official(groups)
        limits = groups["limits"]
        self._model = model_of(
            model_path, model_content, limits.tables, limits.memory, limits.weights_dir
        )
        path, model_content = official_source(self._model, model_path, model_content)
        module = interpreter_module(runtime)
        resolver = getattr(experimental_op_resolver_type, "name", experimental_op_resolver_type)
        check_choice("experimental_op_resolver_type", resolver, list(OpResolverType.__members__))
        self._applied = AppliedDelegates(
            self._model,
            experimental_delegates,
            delegates,
            groups["placement"],
            groups["limits"],
            groups["failures"],
            numerics_of(OpResolverType[resolver]),
            cache_dir,
            custom_ops=custom_ops,
            takes_defaults=default_delegates_are_wanted(OpResolverType[resolver]),
        )
        self._switch_interval = switch_interval
        self._observers = [Observer(self._model)] if self._applied.limits_memory else []

        def made() -> Any:
            return module.Interpreter(
                model_path=path,
                model_content=model_content,
                experimental_delegates=AnnouncedDelegates(
                    [*self._applied.all, *self._observers], on_loaded
                ),
                num_threads=checked_num_threads(num_threads),
                experimental_op_resolver_type=module.OpResolverType[resolver],
                **arguments,
            )

        self._official = self._applied.make(made)

    # -- running -------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Prepare the runtime and the delegates' kernels for the present shapes.

        Raises:
            PlacementError: the placement does not satisfy ``placement``.
            UnresolvedOpError: no delegate runs a partition that is compiled ahead of time.
            Exception: the exception of a delegate.
            RuntimeError: the runtime failed.
        """
        with self._raising():
            self._interpreter.allocate_tensors()
        self._check_placement()

    def invoke(self) -> None:
        """Run the model on the present inputs.

        Raises:
            Exception: the exception of a delegate's kernel.
            RuntimeError: the runtime failed.
        """
        seconds = self._switch_interval
        with self._raising(), nullcontext() if seconds is None else switching(seconds):
            self._interpreter.invoke()

    def _background_invoke(self) -> tuple[Run, Callable[[], None]]:
        self._interpreter._ensure_safe()
        return lambda begin: begin(self.invoke), self.cancel

    def cancel(self) -> None:
        """Ask the running call to stop at the next node of a Python delegate; from any thread.

        The call raises ``CallCancelledError``. Without a running call, nothing happens.
        """
        self._applied.cancellation.request()

    def get_signature_runner(self, signature_key: str | None = None) -> Callable[..., Any]:
        """Return a callable for a signature; a model with one signature needs no key."""
        with self._raising():
            return _Runner(self, self._interpreter.get_signature_runner(signature_key))

    def __getattr__(self, name: str) -> Any:
        """Return attribute *name* of the official interpreter; methods raise delegates' errors."""
        found = getattr(self._interpreter, name)
        return _raising_call(self, found) if callable(found) else found

    # -- delegates -----------------------------------------------------------------------------

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, with the reasons of delegates that rejected it.

        The runtime's own delegates are visible only after ``allocate_tensors``, and only in the
        first subgraph.
        """
        return self._applied.placement(self._nodes())

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates after which the interpreter continued; see ``on_failure``."""
        return self._applied.incidents

    def modify_graph_with_delegate(self, delegate: Any) -> NoReturn:
        """Raise ``DelegateError``, since LiteRT accepts delegates only in the constructor."""
        raise self._fixed([d.delegate_name for d in self._applied.own], "and this one")

    def remove_delegate(self, name: str) -> NoReturn:
        """Raise ``DelegateError`` with advice, since LiteRT cannot remove a delegate."""
        raise self._fixed([d.delegate_name for d in self._applied.own if d.delegate_name != name])

    def remove_all_delegates(self) -> NoReturn:
        """Raise ``DelegateError``, since LiteRT cannot remove a delegate."""
        raise self._fixed([])

    def _fixed(self, names: Sequence[str], more: str = "") -> DelegateError:
        wanted = " ".join(filter(None, [f"delegates={list(names)!r}", more]))
        return DelegateError(
            "LiteRT takes delegates only when an interpreter is made, and cannot remove them: make "
            f"another LiteRtInterpreter with {wanted}, and set its tensors anew"
        )

    def _check_placement(self) -> None:
        self._applied.check(self._nodes())
        for observer in self._observers:
            self._applied.require_memory(observer)

    def _nodes(self) -> InterpreterNodes:
        return InterpreterNodes(self._interpreter)

    @contextmanager
    def profile(self, *, whole_partitions: bool = False) -> Iterator[Profile]:
        """Context that yields a profile, which records the runs of the Python delegates' nodes.

        With *whole_partitions*, a delegate node is recorded as a whole, even if the delegate
        records the nodes in it. LiteRT does not report its own nodes and delegates, so they have no
        events.
        """
        with self._applied.profile(whole_partitions=whole_partitions) as profile:
            yield profile

    # -- life ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for ``invoke_async``, then release interpreter and delegates; later calls raise."""
        self._background.close()
        self._official = None
        self._applied.close()

    @property
    def _interpreter(self) -> Any:
        if self._official is None:
            raise StateError("Interpreter was not initialized, or it is closed.")
        self._background.require_idle("the interpreter")
        return self._official

    def _raising(self) -> AbstractContextManager[None]:
        """Return a context that raises a delegate's exception in place of the runtime's error."""
        self._background.require_idle("the interpreter")
        return self._applied.raising()


def _raising_call(interpreter: LiteRtInterpreter, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        with interpreter._raising():
            return method(*arguments, **named)

    return call


class _Runner:
    """An official signature runner whose calls raise the delegates' exceptions."""

    def __init__(self, interpreter: LiteRtInterpreter, official: Any) -> None:
        self._interpreter = interpreter
        self._official = official

    def __call__(self, **inputs: Any) -> Any:
        with self._interpreter._raising():
            outputs = self._official(**inputs)  # may also allocate tensors
        self._interpreter._check_placement()
        return outputs

    @property
    def _interpreter_wrapper(self) -> Any:
        """Wrapper object of the official runner, for programs that use this attribute."""
        return _Wrapper(self._interpreter, self._official._interpreter_wrapper)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._official, name)


class _Wrapper:
    """The official wrapper of the C++ interpreter; its methods raise exceptions of delegates."""

    def __init__(self, interpreter: LiteRtInterpreter, official: Any) -> None:
        self._interpreter = interpreter
        self._official = official

    def __getattr__(self, name: str) -> Any:
        return _raising_call(self._interpreter, getattr(self._official, name))
