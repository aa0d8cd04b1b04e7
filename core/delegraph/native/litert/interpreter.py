"""``LiteRtInterpreter``: an official interpreter with Delegraph's delegates and placement."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.delegation.delegate import Delegate
from delegraph.delegation.incident import Incident
from delegraph.delegation.matched_rules import MatchedRules
from delegraph.delegation.placement import Placement
from delegraph.delegation.rules import require_full
from delegraph.delegation.rules_file import placement_rules
from delegraph.errors import ArgumentError, DelegateError, StateError
from delegraph.graph.external_buffers import official_source
from delegraph.native.litert import thunks
from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.native.litert.given_delegates import (
    AnnouncedDelegates,
    failed_while_made,
    split_delegates,
)
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.native.litert.placement import placement_of, require_allowed
from delegraph.native.litert.switch_interval import switching
from delegraph.native.litert.unloaded import unloaded_error
from delegraph.runtime.arguments import check_choice, checked_num_threads, model_of
from delegraph.runtime.delegates import defaults
from delegraph.runtime.delegates.custom_op_delegates import compiled_by
from delegraph.runtime.delegates.requested_delegates import ManyDelegates, as_delegates
from delegraph.runtime.execution.invoke_async import Run
from delegraph.runtime.execution.profile import Profile
from delegraph.runtime.members import ClosedByWith, InvokesAsync
from delegraph.runtime.op_resolver import OpResolverType, default_delegates_are_wanted, numerics_of
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
    unchanged, with their traceback; the runtime's own errors come without the texts of earlier
    errors. Delegates of compiled partitions in the file are applied first, then the other Python
    delegates. The runtime's own XNNPACK gets the remaining nodes, unless
    ``experimental_op_resolver_type`` forbids it. Delegates are fixed at construction: other
    delegates need another interpreter.

    Args:
        model_path: path of a ``.tflite`` file, or ``FILE#SECTION`` of a bundle, which is read.
        model_content: the bytes of a model. Either this or ``model_path``.
        experimental_delegates: delegates to apply, in order: names, objects, and official ones.
        num_threads: as in ``delegraph.Interpreter``; at most eight for each processor.
        experimental_op_resolver_type: Delegraph's enumeration or the official one.
        delegates: names, objects, or a mapping from names to options.
        placement: as in ``delegraph.Interpreter``, without ``partitions``. The runtime's own
            delegates follow no rules: if one of them has a node that a rule forbids,
            ``allocate_tensors`` raises an error. ``require="full"`` counts them among the
            delegates.
        limits: only ``weights_dir``, because the official runtime has no limits.
        failures: as in ``delegraph.Interpreter``, without ``"shadow"`` and ``validate``.
        runtime: ``"ai_edge_litert"``, ``"tflite_runtime"`` or ``"tensorflow"``; default: the first.
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

    _official: Any = None  # until __init__ sets it
    _made: Sequence[LiteRtDelegate] = ()  # the delegates that this interpreter has created

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = OpResolverType.AUTO,
        *,
        delegates: ManyDelegates | None = None,
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
        policy: FailurePolicy = groups["failures"]
        self._model = model_of(model_path, model_content, weights_dir=groups["limits"].weights_dir)
        path, model_content = official_source(self._model, model_path, model_content)
        module = interpreter_module(runtime)
        resolver = getattr(experimental_op_resolver_type, "name", experimental_op_resolver_type)
        check_choice("op resolver type", resolver, list(OpResolverType.__members__))
        numerics = numerics_of(OpResolverType[resolver])
        self._require = groups["placement"].require
        found = placement_rules(groups["placement"].rules)
        self._rules = MatchedRules(found, self._model) if found else None
        isolation = policy.isolation
        given = split_delegates(experimental_delegates or (), isolation)
        own = [*given, *as_delegates(delegates, isolation)]
        self._by_default: Sequence[Delegate] = ()
        is_left_open = delegates is None and experimental_delegates is None
        if is_left_open and default_delegates_are_wanted(OpResolverType[resolver]):
            own = self._by_default = defaults.configured(isolation)
        if own or delegates is None:
            own = [*compiled_by(self._model, isolation), *own]
        self._delegates = [
            delegate
            if hasattr(delegate, "_get_native_delegate_pointer")
            else LiteRtDelegate(
                delegate,
                self._model,
                numerics,
                self._rules,
                cache_dir,
                policy.on_failure,  # type: ignore[arg-type]  # it refuses "shadow"
                is_default=any(delegate is known for known in self._by_default),
            )
            for delegate in own
        ]
        self._made = [d for d, given in zip(self._delegates, own, strict=True) if d is not given]
        self._switch_interval = switch_interval
        self._messages = _Messages()

        def made() -> Any:
            with self._raising(self._refused):
                return module.Interpreter(
                    model_path=path,
                    model_content=model_content,
                    experimental_delegates=AnnouncedDelegates(self._delegates, on_loaded),
                    num_threads=checked_num_threads(num_threads),
                    experimental_op_resolver_type=module.OpResolverType[resolver],
                    **arguments,
                )

        self._left_out: Sequence[LiteRtDelegate] = ()
        try:
            self._official = made()
        except Exception as error:
            self._left_out = [delegate for delegate in self._own if delegate.failures.is_default]
            if not self._left_out:
                raise
            self._delegates = [each for each in self._delegates if each not in self._left_out]
            self._official = made()  # raises the runtime's own errors
            failed_while_made(self._left_out, error)

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
        return lambda begin: begin(self.invoke), _no_stop

    def get_signature_runner(self, signature_key: str | None = None) -> Callable[..., Any]:
        """Return a callable for a signature; see the official method."""
        with self._raising():
            return _Runner(self, self._interpreter.get_signature_runner(signature_key))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the official interpreter; its methods raise delegates' errors."""
        found = getattr(self._interpreter, name)
        return _raising_call(self, found) if callable(found) else found

    # -- delegates -----------------------------------------------------------------------------

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, with the reasons of delegates that rejected it.

        The runtime's own delegates are visible only after ``allocate_tensors``, and only in the
        first subgraph.
        """
        official, by_default = self._interpreter, self._by_default
        return placement_of(self._model, self._own, official, by_default, self.incidents)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates after which the interpreter went on, as ``on_failure`` says."""
        own = (*self._left_out, *self._own)
        return tuple(incident for delegate in own for incident in delegate.incidents)

    @property
    def _own(self) -> list[LiteRtDelegate]:
        """Delegates written in Python; the other delegates are official ones."""
        return [delegate for delegate in self._delegates if isinstance(delegate, LiteRtDelegate)]

    def modify_graph_with_delegate(self, delegate: Any) -> NoReturn:
        """Raise ``DelegateError``: LiteRT accepts delegates only in the constructor."""
        raise self._fixed([d.delegate_name for d in self._own], "and this one")

    def remove_delegate(self, name: str) -> NoReturn:
        """Raise ``DelegateError``: LiteRT cannot remove a delegate. The text gives advice."""
        raise self._fixed([d.delegate_name for d in self._own if d.delegate_name != name])

    def remove_all_delegates(self) -> NoReturn:
        """Raise ``DelegateError``: LiteRT cannot remove a delegate."""
        raise self._fixed([])

    def _fixed(self, names: Sequence[str], more: str = "") -> DelegateError:
        wanted = " ".join(filter(None, [f"delegates={list(names)!r}", more]))
        return DelegateError(
            "LiteRT takes delegates only when an interpreter is made, and gives none back: make "
            f"another LiteRtInterpreter with {wanted}, and set its tensors anew"
        )

    def _check_placement(self) -> None:
        """Raise an error unless the placement meets ``rules`` and ``require``.

        Raises:
            PlacementError: the placement does not meet them.
        """
        if self._rules is None and self._require is None:
            return
        placement = self.placement
        if self._rules is not None:
            require_allowed(placement, self._rules)
            self._rules.check_pins(placement)
        if self._require == "full":
            require_full(placement)

    @contextmanager
    def profile(self, *, whole_partitions: bool = False) -> Iterator[Profile]:
        """Record the delegate nodes of Python delegates and their own events; see ``Profile``.

        LiteRT does not report its own nodes and delegates, so they have no events.
        """
        profile = Profile(whole_partitions=whole_partitions)
        for delegate in self._own:
            delegate.profile = profile
        try:
            yield profile
        finally:
            for delegate in self._own:
                delegate.profile = None

    # -- life ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for ``invoke_async``, then release interpreter and delegates; later calls raise."""
        self._background.close()
        self._official = None
        for delegate in self._made:
            delegate.forget_resources()
        self._delegates, self._made = [], ()

    @property
    def _interpreter(self) -> Any:
        if self._official is None:
            raise StateError("Interpreter was not initialized, or it is closed.")
        self._background.require_idle("the interpreter")
        return self._official

    def _refused(self) -> str:
        """Return which delegate the runtime has refused, and why, as far as that is known."""
        refused = next((delegate for delegate in self._own if not delegate.claims), None)
        if refused is None:
            return "LiteRT refuses a delegate without a word"
        return (
            f"LiteRT refuses delegate {refused.delegate_name!r} without a word; it does so when "
            "shapes of the graph are known only while invoking and the delegate's flags() lack "
            "ALLOW_DYNAMIC_TENSORS"
        )

    @contextmanager
    def _raising(self, unsaid: Callable[[], str] | None = None) -> Iterator[None]:
        """Context that raises the delegate's exception in place of the runtime's error report.

        Args:
            unsaid: returns the reason if the runtime reports a failure without a text.
        """
        failure: RuntimeError | ValueError | None = None
        raised = None
        self._background.require_idle("the interpreter")
        thunks.await_raised()
        try:
            yield
        except (RuntimeError, ValueError) as reported:
            failure = reported
        finally:
            raised = thunks.take_raised()
        if failure is None:
            if isinstance(raised, KeyboardInterrupt | SystemExit):
                raise raised
            return
        text = str(failure)
        news = self._messages.news(text)
        if raised is not None:
            note = f"The runtime reports: {news}"
            if hasattr(raised, "add_note") and note not in getattr(raised, "__notes__", ()):  # 3.11
                raised.add_note(note)
            raise raised
        if f"unresolved custom op: {CUSTOM_OP}" in news:
            raise unloaded_error(self._model, self._own) from failure
        if not news and unsaid is not None:
            raise DelegateError(unsaid()) from failure
        raise type(failure)(news).with_traceback(failure.__traceback__) if news != text else failure


def _no_stop() -> None:
    """Do nothing, because the official interpreter cannot be stopped."""


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
            outputs = self._official(**inputs)  # allocates too, without notice
        self._interpreter._check_placement()
        return outputs

    @property
    def _interpreter_wrapper(self) -> Any:
        """Wrapper object of the official runner, for programs that use it directly."""
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


class _Messages:
    """Finds the new part of the runtime's error text, which the runtime never clears."""

    def __init__(self) -> None:
        self._said = ""

    def news(self, text: str) -> str:
        """Return the lines of *text* that are new, each once."""
        fresh = text.removeprefix(self._said) if self._said else text
        self._said = text
        return "\n".join(dict.fromkeys(line for line in fresh.splitlines() if line)) or text
