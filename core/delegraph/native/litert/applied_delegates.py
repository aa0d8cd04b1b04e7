"""Delegates of one official interpreter or compiled model: selection, policies, errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.delegation.delegate import Delegate
from delegraph.delegation.incident import Incident
from delegraph.delegation.matched_rules import MatchedRules
from delegraph.delegation.placement import Placement
from delegraph.delegation.rules import require_full
from delegraph.delegation.rules_file import placement_rules
from delegraph.errors import DelegateError
from delegraph.graph.calls import require_depth
from delegraph.graph.model import Model
from delegraph.native.litert import thunks
from delegraph.native.litert.custom_op_delegate import custom_op_delegate
from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.native.litert.given_delegates import (
    experimental_delegates,
    failed_while_made,
    split_delegates,
)
from delegraph.native.litert.observer import Observer
from delegraph.native.litert.placement import RuntimeNodes, placement_of, require_allowed
from delegraph.native.litert.unloaded import require_resolved, unloaded_error
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.runtime.arguments import folder_of
from delegraph.runtime.delegates import defaults
from delegraph.runtime.delegates.custom_op_delegates import compiled_by
from delegraph.runtime.delegates.requested_delegates import ManyDelegates
from delegraph.runtime.execution.calls import Cancellation, NestedCancellation
from delegraph.runtime.execution.profile import Profile
from delegraph.runtime.op_resolver import OpResolver
from delegraph.runtime.options import FailurePolicy, Limits, PlacementPolicy

_Made = TypeVar("_Made")


class AppliedDelegates:
    """The delegates of one official interpreter or compiled model, and policies for them.

    Attributes:
        model: the model that the object runs.
        all: all delegates in the order of application, including official delegates.
        by_default: delegates that the user's configuration applies.
        cancellation: stop request for the running call.
        observer: object that reports the runtime's nodes; None if the runtime's own errors name
            operators without a kernel.

    Args:
        model: the model.
        experimental: the delegates of the official argument, or None.
        delegates: further delegates as users write them. If both are None, the configuration
            chooses.
        placement: policy for the placement.
        limits: limits on memory, time and size.
        failures: policy for failures.
        numerics: kernels that the runtime uses, builtin or reference.
        cache_dir: folder for data that delegates compile.
        custom_ops: custom operators in Python for this model, by name.
        takes_defaults: whether the configuration's delegates may be applied.
    """

    def __init__(
        self,
        model: Model,
        experimental: Sequence[Any] | None,
        delegates: ManyDelegates | Sequence[Any] | None,
        placement: PlacementPolicy,
        limits: Limits,
        failures: FailurePolicy,
        numerics: Numerics,
        cache_dir: str | os.PathLike[str] | None,
        *,
        custom_ops: Mapping[str, AnyCustomOp] | None,
        takes_defaults: bool,
    ) -> None:
        self.model = model
        self._require = placement.require
        kept_in = folder_of(cache_dir)
        found = placement_rules(placement.rules)
        self._rules = MatchedRules(found, model) if found else None
        isolation = failures.isolation
        given = experimental_delegates(experimental, isolation)
        own = [*given, *split_delegates(delegates, isolation)]
        self.by_default: Sequence[Delegate] = ()
        if delegates is None and experimental is None and takes_defaults:
            own = self.by_default = defaults.configured(failures)
        if own or delegates is None:
            own = [*compiled_by(model, isolation), *own]
        last = custom_op_delegate(model, OpResolver(custom_ops), custom_ops or {})
        own += [] if last is None else [last]
        self.all: list[Any] = [
            delegate
            if hasattr(delegate, "_get_native_delegate_pointer")
            else LiteRtDelegate(
                delegate,
                model,
                numerics,
                self._rules,
                kept_in,
                FailurePolicy("raise") if delegate is last else failures,
                is_default=any(delegate is known for known in self.by_default),
                custom_ops=custom_ops,
            )
            for delegate in own
        ]
        self._made = [d for d, given in zip(self.all, own, strict=True) if d is not given]
        outer = limits.cancellation
        self.cancellation = (
            Cancellation(limits.time) if outer is None else NestedCancellation(outer)
        )
        self._memory = limits.memory
        for delegate in self._made:
            delegate.cancellation = self.cancellation
            if limits.memory is not None:
                delegate.memory_limit = MemoryLimit.of(limits.memory, model.bytes)
        if limits.depth is not None:
            require_depth(model, limits.depth)
        self._left_out: Sequence[LiteRtDelegate] = ()
        self._messages = _Messages()
        self.observer: RuntimeNodes | None = None

    @property
    def own(self) -> list[LiteRtDelegate]:
        """Delegates written in Python; all other delegates are the runtime's own."""
        return [delegate for delegate in self.all if isinstance(delegate, LiteRtDelegate)]

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates after which the runtime went on."""
        own = (*self._left_out, *self.own)
        return tuple(incident for delegate in own for incident in delegate.incidents)

    def make(self, official: Callable[[], _Made]) -> _Made:
        """Return the official object that *official* creates with the delegates :attr:`all`.

        If *official* fails, default delegates are removed from :attr:`all`, and it is called again.

        Raises:
            Exception: the exception of a delegate, or the runtime's error.
        """
        try:
            with self.raising(self._refused):
                return official()
        except Exception as error:
            self._left_out = [delegate for delegate in self.own if delegate.failures.is_default]
            if not self._left_out:
                raise
            self.all = [each for each in self.all if each not in self._left_out]
            with self.raising(self._refused):
                made = official()
            failed_while_made(self._left_out, error)
            return made

    def placement(self, official: RuntimeNodes) -> Placement:
        """Return the placement: the delegate or kernel of every node."""
        return placement_of(self.model, self.own, official, self.by_default, self.incidents)

    def check(self, official: RuntimeNodes) -> None:
        """Raise an error unless the placement meets the policy's ``rules`` and ``require``.

        Args:
            official: object that reports the runtime's nodes; see :func:`placement_of`.

        Raises:
            PlacementError: the placement does not meet ``rules`` or ``require``.
        """
        if self._rules is None and self._require is None:
            return
        found = self.placement(official)
        if self._rules is not None:
            require_allowed(found, self._rules)
            self._rules.check_pins(found)
        if self._require == "full":
            require_full(found)

    @property
    def has_requirements(self) -> bool:
        """Whether the user restricts the placement or the memory of tensors."""
        return self.limits_memory or self._rules is not None or self._require is not None

    @property
    def limits_memory(self) -> bool:
        """Whether the user limits the memory of tensors; then :meth:`require_memory` checks it."""
        return self._memory is not None

    def require_memory(self, observer: Observer) -> None:
        """Check that the tensors' memory, as *observer* reports it, is within the limit.

        Raises:
            OperatorError: the tensors of a subgraph take more memory.
        """
        if self._memory is None:
            return
        limit = MemoryLimit.of(self._memory, self.model.bytes)
        for spec in self.model.subgraphs:
            limit.require(observer.memory(spec), f"subgraph {spec.index}")

    @contextmanager
    def profile(self, *, whole_partitions: bool) -> Iterator[Profile]:
        """Context that yields a profile, which records the runs of the Python delegates' nodes.

        With *whole_partitions*, a delegate node is recorded as a whole, even if the delegate
        records the nodes in it.
        """
        profile = Profile(whole_partitions=whole_partitions)
        for delegate in self.own:
            delegate.profile = profile
        try:
            yield profile
        finally:
            for delegate in self.own:
                delegate.profile = None

    def close(self) -> None:
        """Release the delegates, after the official object has been released."""
        for delegate in self._made:
            delegate.forget_resources()
        self.cancellation.close()
        self.all, self._made = [], []

    # -- errors --------------------------------------------------------------------------------

    def _refused(self) -> str:
        """Error text for a runtime that rejects a delegate but reports no reason.

        The text names the delegate that was asked about no nodes, and the likely cause.
        """
        refused = next((delegate for delegate in self.own if not delegate.claims), None)
        if refused is None:
            return "LiteRT refuses a delegate without a word"
        return (
            f"LiteRT refuses delegate {refused.delegate_name!r} without a word; it does so when "
            "shapes of the graph are known only while invoking and the delegate's flags() lack "
            "ALLOW_DYNAMIC_TENSORS"
        )

    @contextmanager
    def raising(self, unsaid: Callable[[], str] | None = None) -> Iterator[None]:
        """Context that raises the delegate's exception in place of the runtime's error report.

        Args:
            unsaid: function that returns the error text if the runtime reports a failure without
                text.
        """
        failure: RuntimeError | ValueError | None = None
        self._begin()
        try:
            yield
        except (RuntimeError, ValueError) as reported:
            failure = reported
        finally:
            raised = self._end()
        self._raise(failure, raised, unsaid)

    def call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Return the result of *method*; raise a delegate's exception as :meth:`raising` does."""
        failure: RuntimeError | ValueError | None = None
        result = None
        self._begin()
        try:
            result = method(*arguments, **named)
        except (RuntimeError, ValueError) as reported:
            failure = reported
        finally:
            raised = self._end()
        self._raise(failure, raised)
        return result

    def _begin(self) -> None:
        if self.cancellation.is_timed or self.cancellation.reason:
            self.cancellation.begin()
        thunks.await_raised()

    def _end(self) -> BaseException | None:
        if self.cancellation.is_timed or self.cancellation.reason:
            self.cancellation.forget()
        return thunks.take_raised()

    def _raise(
        self,
        failure: RuntimeError | ValueError | None,
        raised: BaseException | None,
        unsaid: Callable[[], str] | None = None,
    ) -> None:
        """Raise the delegate's exception, or else the runtime's error; do nothing without an error.

        *unsaid* returns the error text if the runtime reports a failure without text. If it is
        None, the runtime's error is raised.
        """
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
            raise unloaded_error(self.model, self.own) from failure
        if self.observer is not None and "allocate tensors" in news:
            require_resolved(self.model, self.own, self.placement(self.observer))
        if unsaid is not None and (not news or "modify graph" in news):
            raise DelegateError(unsaid()) from failure
        raise type(failure)(news).with_traceback(failure.__traceback__) if news != text else failure


class _Messages:
    """Extracts the new part of the runtime's error text, which the runtime never clears."""

    def __init__(self) -> None:
        self._said = ""

    def news(self, text: str) -> str:
        """Return the lines of the error text *text* that were not in the text of the last call."""
        fresh = text.removeprefix(self._said) if self._said else text
        self._said = text
        return "\n".join(dict.fromkeys(line for line in fresh.splitlines() if line)) or text
