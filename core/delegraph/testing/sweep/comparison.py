"""Comparison: runs each case in two interpreters, and judges the differences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.delegation.delegate import Delegate
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError, DelegraphError, NodeError, TimeLimitError
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.plugins.delegate_file import delegate_from_file
from delegraph.runtime.delegates.requested_delegates import as_delegate
from delegraph.schema.options import AddOptions
from delegraph.testing.one_op import one_op_model, tensor
from delegraph.testing.sweep import hosts
from delegraph.testing.sweep.documented_refusals import documented_refusal
from delegraph.testing.sweep.documented_values import documented_values
from delegraph.testing.sweep.hosts import TIME_LIMIT
from delegraph.testing.sweep.input_roundings import NUDGES, nudged_case
from delegraph.testing.sweep.judging import (
    OFFICIAL,
    OURS,
    Announce,
    Ending,
    Fault,
    Run,
    cut,
    difference_fault,
    error_fault,
    innermost,
)
from delegraph.testing.sweep.observed_claims import observed_claims
from delegraph.testing.sweep.promised_values import meets_unpromised_values
from delegraph.testing.sweep.sweep_case import SweepCase, feed
from delegraph.tools.setup import file_and_options

CORE = "core"
"""Word in place of a delegate's name, for Delegraph's own kernels.

These are compared with the official interpreter.
"""

COMPILING = 3
"""Factor of the processor time that the tested side may use, relative to the side with right
results.

A delegate that compiles during its run needs more time.
"""

Runtime = Literal["delegraph", "litert"]
Open = Callable[[bytes], Any]


def _unannounced(phase: str) -> None:
    """Ignore *phase*; used if the caller need not know the phase."""


@dataclass(frozen=True)
class Comparison:
    """Runs each case in two interpreters: one with right results, and the tested one.

    Attributes:
        delegate: delegate as for ``--delegate`` or ``--delegate-file``, or ``core``.
        runtime: ``litert`` applies the delegate in the official interpreter, and compares with that
            interpreter without a delegate.
        by_default: whether the delegate is applied as the default of ``Interpreter(...)``. Then
            errors must have the core's class and text, and incidents count as differences.
        make: function that returns a new delegate; None means the installed delegate named
            *delegate*.
        promised: claims of the delegate; None means the claims it declares.
    """

    delegate: str
    runtime: Runtime = "delegraph"
    by_default: bool = False
    make: Callable[[], Delegate] | None = None
    promised: Capabilities | None = None

    @property
    def is_core(self) -> bool:
        """Whether the core's kernels are tested, without a delegate."""
        return self.delegate == CORE

    @property
    def is_official_right(self) -> bool:
        """Whether the official interpreter's results count as right."""
        return self.is_core or self.runtime == "litert"

    @cached_property
    def capabilities(self) -> Capabilities:
        """Claims of the delegate; empty for the core."""
        if self.promised is not None:
            return self.promised
        return Capabilities() if self.is_core else self._made().capabilities()

    def warm_up(self) -> list[dict[str, Any]]:
        """Load the delegate once, so that later processes find its caches filled.

        Returns:
            Its claims as JSON data; empty if it declares none.

        Raises:
            ArgumentError: the delegate should be the default one and is not, or it is ``core``
                and the runtime is LiteRT.
            PluginError: the delegate is not installed, or cannot be used.
        """
        if self.by_default:
            _require_default(self)
        elif self.is_core and self.runtime == "litert":
            raise ArgumentError("'core' is no delegate that the official interpreter can have")
        claims = [claim.to_json() for claim in self.capabilities.claims]
        if self.is_official_right:
            interpreter_module()
        return claims

    def observed(self, operators: Sequence[str], seed: int) -> list[dict[str, Any]]:
        """Claims, as JSON data, of the forms of *operators* that the delegate takes when asked.

        Args:
            operators: names of the operators.
            seed: seed of the cases that it is asked about.
        """
        delegate = as_delegate(self._made())
        return [claim.to_json() for claim in observed_claims(delegate, operators, seed)]

    def judge(self, case: SweepCase, announce: Announce = _unannounced) -> Ending:
        """Run a case in both interpreters, and return how it ended.

        Args:
            case: the model with its inputs.
            announce: function that is called with the name of the next phase, so that a crash can
                be assigned to it.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ending = self._judged(case, announce)
        return ending._replace(group=case.op)

    def _judged(self, case: SweepCase, announce: Announce) -> Ending:
        announce(OFFICIAL if self.is_official_right else OURS)
        right = run_case(self._open_right, case)
        announce(OURS)
        mine = run_case(
            lambda content: self._open_tested(content, case.threads), case, COMPILING * TIME_LIMIT
        )
        if right.error is None and _is_static_only(mine.error):
            return Ending("not judged")
        fault = self._fault(right, mine, case, announce)
        if fault is not None:
            if self.is_official_right and hosts.is_undefined(
                right, lambda: run_case(self._open_right, case), announce
            ):
                return Ending("not judged")
            if self.is_core and _is_documented(fault, mine, case):
                return Ending("not judged")
            if fault.kind == "differs" and self._is_unpromised(case):
                return Ending("not judged")
            return Ending("fault", fault, mine.delegated, taken=mine.taken)
        if (right.error is None) != (mine.error is None):
            return Ending("not judged")
        computed = "equal" if mine.delegated or self.is_core else "not taken"
        outcome = computed if mine.error is None else "refused"
        return Ending(outcome, None, mine.delegated, taken=mine.taken)

    def _is_unpromised(self, case: SweepCase) -> bool:
        return not self.is_core and meets_unpromised_values(case, self.capabilities)

    def _fault(self, right: Run, mine: Run, case: SweepCase, announce: Announce) -> Fault | None:
        if mine.error is not None:
            fault = self._error_fault(mine.error, right.error)
            if fault is not None:
                return fault
        if mine.incidents and self.by_default:
            return Fault("incident", cut(mine.incidents[0]), _phase(mine.incidents[0]))
        if self.is_official_right and (right.error is not None or _is_limit(mine.error)):
            return None  # Delegraph supports more, but has limits
        promised = self._promised(right, case)
        fault = _difference(right, mine, promised, case.is_random)
        if fault is None or fault.kind != "differs":
            return fault
        announce(OFFICIAL if self.is_official_right else OURS)
        others = [run_case(self._open_right, nudged_case(case, i + 1)) for i in range(NUDGES)]
        announce(OURS)
        return _difference(right, mine, promised, case.is_random, others)

    def _error_fault(self, error: BaseException, other: BaseException | None) -> Fault | None:
        """Return the fault in *error*, raised on the tested side; None if it is expected.

        *other* is the error of the side with right results; None if that side had no error.
        """
        if self.runtime == "litert" and not isinstance(error, DelegraphError):
            return None if isinstance(error, RuntimeError | ValueError) else error_fault(error)
        if not self.is_core and type(error) is type(other) and str(error) == str(other):
            return None  # the core has the same text
        fault = error_fault(error)
        if fault is None and self.by_default and other is not None:
            if _name_two_nodes(error, other):
                return None
            words = f"{type(error).__name__}: {error} instead of {type(other).__name__}: {other}"
            return Fault("other words", cut(words, 600), innermost(error))
        return fault

    def _promised(self, right: Run, case: SweepCase) -> Capabilities:
        if not self.is_core:
            return self.capabilities
        floats = [x for outputs in right.outputs for x in outputs if x.dtype.kind == "f" and x.size]
        with np.errstate(all="ignore"):
            sizes = [np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in floats]
        given = Tolerance(case.tolerance, case.tolerance * float(max(sizes, default=0.0)))
        names = ("FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "COMPLEX64", "COMPLEX128")
        return Capabilities(tolerance=dict.fromkeys(names, given))

    def _made(self) -> Delegate:
        if self.make is not None:
            return self.make()
        path, options = file_and_options(self.delegate)
        if path.endswith(".py"):
            return delegate_from_file(path, options)
        return as_delegate(self.delegate)

    def _open_right(self, content: bytes) -> Any:
        return (hosts.open_official if self.is_official_right else hosts.open_ours)(content)

    def _open_tested(self, content: bytes, threads: int) -> Any:
        if self.by_default:
            return hosts.open_by_default(content, threads=threads)
        if self.is_core:
            return hosts.open_ours(content, threads=threads)
        if self.runtime == "litert":
            return hosts.open_official_with(content, self._made(), threads=threads)
        return hosts.open_ours(content, self._made(), threads=threads)


def run_case(open_it: Open, case: SweepCase, seconds: float = TIME_LIMIT) -> Run:
    """Run a case in an interpreter; return its outputs, error and incidents."""

    def feed_step(opened: Any, step: int) -> None:
        feed(opened, case.steps, step)

    return hosts.run(open_it, case.content, len(case.steps), feed_step, seconds)


def _difference(
    right: Run,
    mine: Run,
    promised: Capabilities,
    is_random: bool = False,
    others: list[Run] | None = None,
) -> Fault | None:
    return difference_fault(right, mine, promised, is_random, others or ())


def _is_documented(fault: Fault, mine: Run, case: SweepCase) -> bool:
    """Whether ``docs/differences.md`` explains *fault*, found in *mine*, the core's run."""
    if fault.kind == "refuses alone":
        return documented_refusal(mine.error) is not None
    return fault.kind == "differs" and documented_values(case) is not None


def _name_two_nodes(error: BaseException, other: BaseException) -> bool:
    """Whether the two errors are of one type and name different nodes, both of them ill-formed.

    If shapes are known only while invoking, nodes are prepared in another order, so that another
    node fails first.
    """
    if not isinstance(error, NodeError) or not isinstance(other, NodeError):
        return False
    return type(error) is type(other) and error.node_index != other.node_index


def _is_limit(error: BaseException | None) -> bool:
    return isinstance(error, TimeLimitError) or "Limits(memory=" in str(error)


def _is_static_only(error: BaseException | None) -> bool:
    """Whether an error says that a static delegate cannot be applied to dynamic tensors."""
    return "only supports static-sized tensors" in str(error or "")


def _phase(incident: str) -> str:
    """Return phase and error of an incident's text, without numbers, to find equal incidents."""
    return re.sub(r"[\[\]\d, -]+", " ", incident.partition("subgraph ")[2])[:80].strip()


def _require_default(comparison: Comparison) -> None:
    x = tensor((2, 2))
    model = one_op_model("ADD", [x, x], [tensor((2, 2))], AddOptions())
    with hosts.open_by_default(model) as interpreter:
        interpreter.allocate_tensors()
        owners = (row.delegate for row in interpreter.placement.nodes)
        found = sorted({owner for owner in owners if owner})
    if comparison.runtime != "delegraph" or comparison.delegate not in found:
        raise ArgumentError(
            f"{comparison.delegate!r} is no delegate that Interpreter(...) applies by default "
            f"(found: {', '.join(found) or 'none'}); leave out --default, or --runtime, or set "
            f"{DEFAULT_DELEGATES_VARIABLE}={comparison.delegate}"
        )
