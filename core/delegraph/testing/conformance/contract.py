"""Checks of the contract between Delegraph and a delegate, for any operator.

Each check is a function of a :class:`Subject`, the delegate under test. It raises
``AssertionError`` with the delegate's fault, ``DelegateError`` if the delegate cannot be applied,
and ``unittest.SkipTest`` if the check does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from unittest import SkipTest

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags
from delegraph.delegation.rejections import NO_REASON
from delegraph.errors import DelegraphError, PluginOptionError, UnresolvedOpError
from delegraph.operators.registration import Node
from delegraph.plugins.options import describe_options
from delegraph.runtime.interpreter import Interpreter
from delegraph.testing.conformance.composition import behind_a_reshape
from delegraph.testing.conformance.differences import difference, is_same
from delegraph.testing.conformance.kernel_observer import (
    PATTERN,
    KernelWatch,
    WatchedDelegate,
    move_border_tensors,
)
from delegraph.testing.conformance.placements import placings
from delegraph.testing.conformance.reproduction import explained
from delegraph.testing.conformance.sample_models import (
    all_with,
    computed,
    specimens,
    with_other_shapes,
    with_other_values,
)
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import (
    Trial,
    open_interpreter,
)
from delegraph.testing.outputs import outputs_of

_MANY_SHAPES = (2, 3, 4, 5, 6)
"""Factors by which an axis is longer in later invokes than in the first one."""


def require_right(subject: Subject, interpreter: Interpreter, trial: Trial, when: str) -> None:
    """Invoke *interpreter* on the inputs of *trial*; raise an error if its results are wrong.

    *when* is the moment, for the error message.
    """
    try:
        found = difference(
            (outputs_of(interpreter, trial.case.steps[0]),), trial, subject.capabilities
        )
    except DelegraphError as error:
        found = f"{type(error).__name__}: {error}"
    if found:
        raise AssertionError(f"{when}: {found}\n  model: {trial.case}")


# -- identity and options ----------------------------------------------------------------------


def name_is_stable(subject: Subject) -> None:
    """Check that the delegate's name never changes, and is the name that users type."""
    first, second = subject.make(), subject.make()
    names = [first.name(), first.name(), second.name()]
    if not all(isinstance(name, str) and name for name in names):
        raise AssertionError(f"name() returns {names[0]!r}, expected text")
    if len(set(names)) > 1:
        raise AssertionError(f"name() returns {names[0]!r}, and later {names[-1]!r}")
    if subject.spec is not None and subject.spec.name != names[0]:
        raise AssertionError(
            f"name() returns {names[0]!r}, its DelegateSpec says {subject.spec.name!r}"
        )


def options_are_validated(subject: Subject) -> None:
    """Check that unknown options are rejected, and documented defaults accepted, also as text."""
    if subject.create is None or subject.spec is None:
        raise SkipTest("the delegate is not installed, so it has no options")
    unknown = {"no_such_option": "1"}
    try:
        subject.create(unknown)
    except PluginOptionError:
        pass
    else:
        raise AssertionError(f"options {unknown} are accepted; unknown options must be refused")
    for option in describe_options(subject.spec):
        if option.default not in (None, "(empty)"):
            _require_accepted(subject.create, option.name, option.default)


def _require_accepted(create: Callable[..., Delegate], name: str, default: object) -> None:
    try:
        create({name: default})
    except DelegraphError as error:
        raise AssertionError(
            f"option {name!r} refuses its own documented default {default!r}: {error}"
        ) from error


# -- which nodes -------------------------------------------------------------------------------


def every_operator_is_answered(subject: Subject) -> None:
    """Check that a delegate accepts or rejects models of every operator without an exception."""
    for placing in placings(subject):
        if placing.error is not None:
            case = placing.trial.case
            raise AssertionError(
                f"asked about a model of {case.op}: {placing.error}; expected a Rejection"
                + explained(subject, case, "fails-to-apply")
            ) from placing.error


def reasons_are_given(subject: Subject) -> None:
    """Check that the delegate gives a reason for each node that it rejects."""
    for placing in placings(subject):
        for node in placing.nodes:
            reasons = node.rejections.values()
            if node.delegate is None and (not reasons or NO_REASON in reasons):
                raise AssertionError(
                    f"node {node.index} ({node.op}) is left with no reason given; return a "
                    "Rejection instead of False"
                    + explained(subject, placing.trial.case, "no-reason")
                )


# -- preparing ---------------------------------------------------------------------------------


class _Idle(Delegate):
    """A delegate that claims no node; a test applies it so that all nodes are prepared again."""

    @property
    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def name(self) -> str:
        return "idle"

    def prepare(self, context: DelegateContext) -> None:
        pass


def prepare_is_idempotent(subject: Subject) -> None:
    """Check that a kernel prepared again for the same shapes gives the same results."""
    for trial in specimens(subject):
        with open_interpreter(trial.case, subject.make()) as interpreter:
            for times in range(1, 4):
                require_right(subject, interpreter, trial, f"prepare called {times} times")
                interpreter.modify_graph_with_delegate(_Idle())


def resize_is_survived(subject: Subject) -> None:
    """Check that results stay right after the inputs are resized, and resized back."""
    for trial, other in all_with(subject, with_other_shapes, "other shapes"):
        with open_interpreter(trial.case, subject.make()) as interpreter:
            require_right(subject, interpreter, trial, "before a resize")
            require_right(subject, interpreter, other, f"after a resize to {_shapes(other)}")
            require_right(subject, interpreter, trial, f"after a resize back to {_shapes(trial)}")


def no_views_are_kept(subject: Subject) -> None:
    """Check that a kernel reads ``tensor.data`` at each invoke, since memory may have moved."""
    for trial, other in all_with(subject, with_other_values, "other values"):
        with open_interpreter(trial.case, subject.make()) as interpreter:
            interpreter.allocate_tensors()
            for each in (trial, other, trial):
                _move(interpreter)
                require_right(
                    subject, interpreter, each,
                    "tensors moved to other memory; does the kernel keep views of tensor.data?",
                )  # fmt: skip


def delegate_can_be_taken_off(subject: Subject) -> None:
    """Check that the delegate can be removed and applied again.

    After the removal, Delegraph's kernels compute.
    """
    for trial in specimens(subject):
        delegate = subject.make()
        with open_interpreter(trial.case, delegate) as interpreter:
            require_right(subject, interpreter, trial, "before it is taken off")
            if trial.case.reference is None:
                interpreter.remove_all_delegates()
                require_right(subject, interpreter, trial, "after it is taken off")
            else:
                with suppress(UnresolvedOpError):  # there is no other kernel
                    interpreter.remove_all_delegates()
            interpreter.modify_graph_with_delegate(delegate)
            require_right(subject, interpreter, trial, "after it is applied again")


# -- evaluating --------------------------------------------------------------------------------


def inputs_are_only_read(subject: Subject) -> None:
    """Check that a kernel writes only to outputs, not to inputs or constants."""
    for trial in computed(subject):
        watch = KernelWatch()
        with open_interpreter(trial.case, WatchedDelegate(subject.make(), watch)) as interpreter:
            outputs_of(interpreter, trial.case.steps[0])
        if watch.changed_inputs:
            raise AssertionError(
                f"the kernel changed {watch.changed_inputs[0]}, which it must only read"
                f"\n  model: {trial.case}"
            )


def outputs_are_fully_written(subject: Subject) -> None:
    """Check that a kernel writes every byte of its outputs, which hold old values before."""
    for trial in computed(subject):
        runs = []
        for pattern in (0x2A, 0x55):
            watched = WatchedDelegate(subject.make(), KernelWatch(pattern))
            with open_interpreter(trial.case, watched) as interpreter:
                runs.append(outputs_of(interpreter, trial.case.steps[0]))
        if not is_same(*runs):
            raise AssertionError(
                "a part of an output is not written: it shows earlier contents of the memory"
                f"\n  model: {trial.case}"
            )


def invokes_are_independent(subject: Subject) -> None:
    """Check that equal inputs give equal results, even after invokes on other inputs."""
    for trial, other in all_with(subject, with_other_values, "other values"):
        with open_interpreter(trial.case, subject.make()) as interpreter:
            first, again, changed, later = (
                outputs_of(interpreter, each.case.steps[0]) for each in (trial, trial, other, trial)
            )
        if not is_same(first, again):
            raise AssertionError(
                f"a second invoke on the same inputs returns another result\n  model: {trial.case}"
            )
        is_stale = difference((changed,), other, subject.capabilities)
        if is_stale or not is_same(first, later):
            raise AssertionError(
                f"the result depends on the inputs of the invoke before\n  model: {trial.case}"
            )


def eval_async_gives_what_eval_does(subject: Subject) -> None:
    """Check that ``eval_async``, once awaited, gives the same outputs as ``eval``."""
    started = 0
    for trial in specimens(subject):
        with open_interpreter(trial.case, subject.make()) as interpreter:
            expected = outputs_of(interpreter, trial.case.steps[0])
        watch = KernelWatch(PATTERN, starts=True)
        with open_interpreter(trial.case, WatchedDelegate(subject.make(), watch)) as interpreter:
            try:
                found = outputs_of(interpreter, trial.case.steps[0])
            except DelegraphError as error:
                raise AssertionError(f"eval_async: {error}\n  model: {trial.case}") from error
        started += watch.started
        if not watch.started:
            continue  # another check is about ``eval``
        if watch.changed_inputs:
            changed = watch.changed_inputs[0]
            raise AssertionError(f"eval_async changed {changed}\n  model: {trial.case}")
        if not is_same(found, expected):
            raise AssertionError(
                "after the wait for eval_async, outputs are other than those of eval"
                f"\n  model: {trial.case}"
            )
    if not started:
        raise SkipTest("no kernel of the delegate has eval_async")


def dynamic_shapes_are_followed(subject: Subject) -> None:
    """Check that results are right for shapes that are known only during invoke.

    More shapes are used than a delegate is likely to keep programs for, and the first shape is
    repeated.
    """
    if not subject.make().flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS:
        raise SkipTest("the delegate does not set ALLOW_DYNAMIC_TENSORS")
    when = "shapes known only while invoking (ALLOW_DYNAMIC_TENSORS is set)"
    pairs = all_with(subject, behind_a_reshape, "shapes known only while invoking")
    for trial, dynamic in pairs:
        resized = filter(None, (with_other_shapes(trial, times) for times in _MANY_SHAPES))
        others = list(filter(None, map(behind_a_reshape, resized)))
        with open_interpreter(dynamic.case, subject.make()) as interpreter:
            require_right(subject, interpreter, dynamic, when)
            for other in others:
                require_right(subject, interpreter, other, f"{when}, then others")
            if others:
                require_right(subject, interpreter, dynamic, f"{when}, then the first again")


def _move(interpreter: Interpreter) -> None:
    subgraph = interpreter.session.subgraphs[0]
    move_border_tensors(subgraph.tensors, _delegate_nodes(interpreter))


def _delegate_nodes(interpreter: Interpreter) -> Sequence[Node]:
    plan = interpreter.session.subgraphs[0].plan
    return [node for node, _ in plan.steps() if node.delegate is not None]


def _shapes(trial: Trial) -> list[list[int]]:
    return [list(array.shape) for array in trial.case.steps[0]]
