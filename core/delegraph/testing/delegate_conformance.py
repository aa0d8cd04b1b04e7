"""Base class of delegate authors' tests, which runs the conformance kit on a delegate.

It needs pytest and Hypothesis: ``pip install delegraph[testing]``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from delegraph.delegation.capabilities import Capabilities
from delegraph.errors import DelegraphError
from delegraph.runtime.delegates.requested_delegates import AnyDelegate
from delegraph.testing.check_runner import check_runner
from delegraph.testing.conformance import (
    ahead_of_time,
    contract,
    isolation,
    numbers,
    released_resources,
    soundness,
)
from delegraph.testing.conformance.generated import EXAMPLES, check_generated_models
from delegraph.testing.conformance.reproduction import rerun
from delegraph.testing.conformance.run_reports import WITNESS, check_begins
from delegraph.testing.conformance.sample_models import NotTried
from delegraph.testing.conformance.sampling import FULL, QUICK
from delegraph.testing.conformance.scorecard import NOT_TRIED
from delegraph.testing.conformance.subject import (
    Identity,
    Subject,
    installed_subject,
    require_claims,
    subject_of,
)
from delegraph.testing.conformance.transpositions import transposed_are_right
from delegraph.testing.operator_case import KeptCases, OperatorCase
from delegraph.testing.pytest_plugin import RESULT, SWEEPS

CONTRACT: Sequence[Callable[[Subject], None]] = (
    contract.name_is_stable,
    contract.options_are_validated,
    contract.every_operator_is_answered,
    contract.reasons_are_given,
    contract.prepare_is_idempotent,
    contract.resize_is_survived,
    contract.no_views_are_kept,
    contract.delegate_can_be_taken_off,
    contract.inputs_are_only_read,
    contract.outputs_are_fully_written,
    contract.invokes_are_independent,
    contract.eval_async_gives_what_eval_does,
    contract.dynamic_shapes_are_followed,
    isolation.kernels_are_not_shared,
    isolation.one_object_serves_two_interpreters,
    isolation.two_objects_share_nothing,
    isolation.partitions_share_nothing,
    isolation.threads_do_not_meet,
    released_resources.nothing_is_left_behind,
    ahead_of_time.compiled_files_give_the_same,
    ahead_of_time.other_versions_are_refused,
    ahead_of_time.damaged_blobs_are_errors,
)
"""Checks of the contract; each becomes a test of this name."""


class DelegateConformance:
    """Tests of a delegate's conformance; a subclass names the delegate.

    ::

        class TestSin(DelegateConformance):
            delegate = "sin"

    Attributes:
        delegate: an installed delegate: ``name``, ``dist:name``, or with options.
        capabilities: claims of the delegate; None means the claims that its ``capabilities()``
            returns.
        examples: number of generated models to try.
    """

    delegate: str = ""
    capabilities: Capabilities | None = None
    examples: int = EXAMPLES

    def make_delegate(self) -> AnyDelegate:
        """Return a new delegate; override this for a delegate that is not installed.

        An override is used even if ``delegate`` is set.
        """
        raise pytest.UsageError(
            f"{type(self).__name__} names no delegate: set `delegate`, or override make_delegate()"
        )

    def cases(self) -> Iterable[OperatorCase]:
        """Return the author's own cases, made by ``operator_case``; none by default."""
        return ()

    def subjects(self, config: pytest.Config) -> list[Subject]:
        """Return the subjects (delegates under test): one, unless overridden."""
        is_overridden = type(self).make_delegate is not DelegateConformance.make_delegate
        if self.delegate and not is_overridden:
            subject = installed_subject(self.delegate, self.capabilities)
        else:
            subject = subject_of(self.make_delegate, self.capabilities)
        return [replace(subject, cases=KeptCases(self.cases), folder=failures_folder(config))]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize each test with subjects, checks and operators; pytest calls this hook."""
        if "subject" not in metafunc.fixturenames:
            return  # the author's own test
        try:
            found = self._tested(metafunc)
        except (DelegraphError, pytest.UsageError) as error:
            raise pytest.Collector.CollectError(f"{type(error).__name__}: {error}") from error
        if "check" in metafunc.fixturenames:
            rows = [(s, check, check.__name__) for s in found for check in CONTRACT]
            metafunc.parametrize(("subject", "check"), _named(rows))
        elif "operator" in metafunc.fixturenames:
            by_operator = [(s, op, op) for s in found for op in s.operators]
            metafunc.parametrize(("subject", "operator"), _named(by_operator))
        else:
            metafunc.parametrize("subject", found, ids=[s.name for s in found])

    def _tested(self, metafunc: pytest.Metafunc) -> Sequence[Subject | Identity]:
        """Return the subjects for *metafunc*, or identities if another process runs the tests."""
        kind, config = type(self), metafunc.config
        if kind not in _TESTED:
            runner = check_runner(config, failures_folder(config))
            if runner is None:
                effort = QUICK if config.getoption("delegate_quick") else FULL
                _TESTED[kind] = [replace(each, effort=effort) for each in self.subjects(config)]
            else:
                _, *names, _ = metafunc.definition.nodeid.split("::")
                tests = "::".join([str(metafunc.definition.path), *names])
                _TESTED[kind] = runner.identities(kind, tests)
        return _TESTED[kind]

    def test_declares_capabilities(self, subject: Subject, request: pytest.FixtureRequest) -> None:
        """Test that the delegate declares its claims."""
        with _verdict(request, subject, "soundness", "capabilities are declared"):
            require_claims(subject)

    def test_contract(
        self, subject: Subject, check: Callable[[Subject], None], request: pytest.FixtureRequest
    ) -> None:
        """Test that the delegate passes one check of the contract."""
        with _verdict(request, subject, "contract", check.__name__.replace("_", " ")):
            check(subject)

    def test_claims_are_executed(
        self, subject: Subject, operator: str, request: pytest.FixtureRequest
    ) -> None:
        """Test that the delegate runs models which show its claims for an operator."""
        with _verdict(request, subject, "soundness", f"claims of {operator} are executed"):
            soundness.claims_are_executed(subject, operator)

    def test_nothing_unclaimed_is_taken(
        self, subject: Subject, request: pytest.FixtureRequest
    ) -> None:
        """Test that the delegate takes no node that its claims do not cover."""
        with _verdict(request, subject, "soundness", "nothing unclaimed is taken"):
            soundness.nothing_unclaimed_is_taken(subject)

    def test_numbers(self, subject: Subject, operator: str, request: pytest.FixtureRequest) -> None:
        """Test that results equal those of Delegraph's kernels, within the declared tolerance."""
        with _verdict(request, subject, "numbers", operator) as note:
            note["types"] = numbers.results_by_type(subject, operator)
            numbers.results_are_right(subject, operator)

    def test_transposed(self, subject: Subject, request: pytest.FixtureRequest) -> None:
        """Test that operators give right results between TRANSPOSE nodes."""
        with _verdict(request, subject, "numbers", "between TRANSPOSEs"):
            transposed_are_right(subject)

    def test_generated_models(self, subject: Subject, request: pytest.FixtureRequest) -> None:
        """Test that results are right for generated models with several nodes and partitions."""
        with _verdict(request, subject, "numbers", "generated models"):
            most = subject.effort.examples
            check_generated_models(subject, self.examples if most is None else most)

    def test_sweep(self, subject: Subject, request: pytest.FixtureRequest) -> None:
        """Test that results are right for the models of a sweep of ``--delegate-sweep`` minutes."""
        minutes: float = request.config.getoption("delegate_sweep")
        seed: int = request.config.getoption("delegate_seed")
        with _verdict(request, subject, "numbers", f"a sweep with seed {seed}"):
            from delegraph.testing.conformance.sweeping import sweep_finds_nothing

            sweep_finds_nothing(subject, minutes, seed)

    setattr(test_sweep, SWEEPS, True)


_TESTED: dict[type, Sequence[Subject | Identity]] = {}
"""Mapping from each class of tests to its subjects, whose results later tests reuse."""


def subjects_of(kind: type) -> list[Subject]:
    """Return the subjects of the test class *kind*, which was collected in this process."""
    return [each for each in _TESTED[kind] if isinstance(each, Subject)]


def failures_folder(config: pytest.Config) -> Path:
    """Return the folder for models that show failures."""
    folder: str | None = config.getoption("delegate_folder", None)
    if folder is not None:
        return Path(folder)
    cache = getattr(config, "cache", None)
    if cache is None:
        return Path(tempfile.gettempdir(), "delegraph")
    return Path(cache.mkdir("delegraph"))


def _failure(check: str, subject: Subject, error: BaseException) -> str:
    """Return the message of *error* in a check; after a timeout also the check and the model."""
    if isinstance(error, AssertionError) or "pytest-timeout" not in str(error):
        return str(error)
    last = "" if WITNESS.case is None else rerun(subject, WITNESS.case, "timeout")
    return (
        f"in the check {check!r} the delegate {subject.name!r} took too long: {error}; raise that "
        f"limit (--timeout), or try less with --delegate-quick{last}"
    )


def _named(rows: Sequence[tuple[Subject | Identity, object, str]]) -> list[Any]:
    """Return pytest parameters for *rows* of a subject, a value and the name of the value."""
    return [
        pytest.param(subject, value, id=f"{subject.name}-{name}") for subject, value, name in rows
    ]


@contextmanager
def _verdict(
    request: pytest.FixtureRequest, subject: Subject, section: str, check: str
) -> Iterator[dict[str, Any]]:
    """Context that fails or skips the test by the error of *check*, and records the result.

    *section* is the part of the scorecard: ``"soundness"``, ``"contract"`` or ``"numbers"``.
    """
    sample = subject.effort.described(subject.capabilities)
    note: dict[str, Any] = {"delegate": subject.name, "section": section, "check": check}
    note |= {"types": {}, "sample": sample}
    check_begins(note)
    request.node.user_properties.append((RESULT, note))
    try:
        yield note
    except (AssertionError, pytest.fail.Exception) as error:
        note["message"] = _failure(check, subject, error)
        raise pytest.fail.Exception(note["message"], pytrace=False) from None
    except DelegraphError as error:
        note["message"] = f"{type(error).__name__}: {error}"
        raise
    except SkipTest as reason:
        note["message"] = str(reason)
        note |= {"outcome": NOT_TRIED} if isinstance(reason, NotTried) else {}
        raise pytest.skip.Exception(str(reason)) from None
