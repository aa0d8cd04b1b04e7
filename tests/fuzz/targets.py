"""What a copy is tried on: the core, and each delegate beside it, in both hosts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from delegraph.delegation.delegate import Delegate
from delegraph.errors import UnresolvedOpError
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegates.requested_delegates import as_delegate
from delegraph.testing.sweep import hosts
from delegraph.testing.sweep.hosts import (
    is_undefined,
    open_official,
    open_official_with,
    open_ours,
    operator_names,
)
from delegraph.testing.sweep.input_roundings import NUDGES
from delegraph.testing.sweep.judging import (
    OFFICIAL,
    OURS,
    Announce,
    Ending,
    Fault,
    Run,
    difference_fault,
    error_fault,
)
from fuzz.copies import Copy
from fuzz.feeding import Feeding
from fuzz.starting_models import StartingModel, starting_models

RANDOM = ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL", "STABLEHLO_RNG_BIT_GENERATOR")


def is_random(names: Sequence[str]) -> bool:
    """Whether an operator in *names* computes random numbers."""
    return any(name in RANDOM or "Random" in name or "Multinomial" in name for name in names)


@dataclass(frozen=True)
class Target:
    """A part of Delegraph that copies are tried on.

    Attributes:
        name: ``core``, a delegate's name, or ``NAME@litert``.
        delegate: its name as plugins are asked for it; empty for the core.
        options: of the delegate.
        in_litert: whether the host is the official interpreter.
        only_host: run a copy without the delegate, and judge nothing.
    """

    name: str
    delegate: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    in_litert: bool = False
    only_host: bool = False

    def models(self, every: int = 1) -> list[StartingModel]:
        """Return the starting models for the target; with *every*, of one operator in *every*."""
        if not self.delegate:
            return starting_models("core", every=every)
        claims = self.make().capabilities().claims
        names = {op for claim in claims for op in claim.operators}
        return starting_models(self.delegate, names, every=every)

    def warm_up(self) -> None:
        """Load modules once, before processes are forked."""
        if self.delegate == "numba_cpu" or "numba_cpu" in dict(self.options).values():
            from delegraph_numba_cpu.library.cpu import level_named
            from delegraph_numba_cpu.library.families import families
            from delegraph_numba_cpu.library.kernel_library import library

            library(level_named("auto")).load(families())

    def make(self) -> Delegate:
        """Return a new delegate."""
        if self.options:
            return installed().create_delegate(self.delegate, dict(self.options))
        return as_delegate(self.delegate)

    def judge(self, copy: Copy, announce: Announce = lambda phase: None) -> Ending:
        """Try a copy.

        Args:
            copy: the file and what it is fed.
            announce: is told what runs next, so that a crash can be ascribed.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not self.delegate:
                announce(OURS)
                return _judged_core(run(open_ours, copy))
            return self._beside_another(copy, announce)

    def _beside_another(self, copy: Copy, announce: Announce) -> Ending:
        delegate = self.make()
        alone = open_official if self.in_litert else open_ours
        announce(OFFICIAL if self.in_litert else OURS)
        right = run(alone, copy)
        if self.only_host:
            return Ending("refused" if right.error is not None else "computed")
        announce(OURS)
        together = open_official_with if self.in_litert else open_ours
        mine = run(lambda content: together(content, delegate), copy)
        names = operator_names(copy.content)
        fault = None if mine.error is None else self._error_fault(mine.error, right.error)
        if fault is None and _lacks_operators(right.error):
            return Ending("computed" if mine.error is None else "refused", None, mine.delegated)
        if fault is None:
            promised, random = delegate.capabilities(), is_random(names)
            fault = difference_fault(right, mine, promised, random)
            if fault is not None and fault.kind == "differs":
                announce(OFFICIAL if self.in_litert else OURS)
                nudged = [run(alone, replace(copy, nudge=i + 1)) for i in range(NUDGES)]
                announce(OURS)
                fault = difference_fault(right, mine, promised, random, nudged)
        if fault is not None and self.in_litert and fault.kind == "refuses alone":
            return Ending("refused", None, mine.delegated)  # in our words, which is an answer, too
        if (
            fault is not None
            and self.in_litert
            and is_undefined(right, lambda: run(open_official, copy), announce)
        ):
            return Ending("not judged")
        if fault is not None:
            return Ending("fault", fault, mine.delegated)
        return Ending("equal" if mine.error is None else "refused", None, mine.delegated)

    def _error_fault(self, error: BaseException, alone: BaseException | None) -> Fault | None:
        is_official = type(error) in (RuntimeError, ValueError) or type(error) is type(alone)
        return None if self.in_litert and is_official else error_fault(error)


def _judged_core(found: Run) -> Ending:
    if found.error is None:
        return Ending("computed")
    fault = error_fault(found.error)
    return Ending("refused" if fault is None else "fault", fault)


def targets() -> dict[str, Target]:
    """Return all targets: the core, and each installed delegate in both hosts."""
    found = [Target("core")]
    for offer in installed().offers():
        name = offer.spec.name
        options: dict[str, Any] = {}
        if name == "numba_cpu":
            options = {"num_threads": 1}
        elif name == "edgetpu" and any(o.spec.name == "numba_cpu" for o in installed().offers()):
            options = {"via": "numba_cpu"}
        found.append(Target(name, name, tuple(options.items())))
        found.append(Target(f"{name}@litert", name, tuple(options.items()), in_litert=True))
    return {target.name: target for target in found}


# -- running a copy ---------------------------------------------------------------------------


def run(open_it: Callable[[bytes], Any], copy: Copy) -> Run:
    """Open a copy, run it on its inputs, and return the outcome."""
    feeding = copy.feeding()
    return hosts.run(
        open_it, copy.content, feeding.invokes, lambda opened, step: _feed(opened, feeding, step)
    )


def _feed(interpreter: Any, feeding: Feeding, step: int) -> None:
    details = interpreter.get_input_details()
    resize = feeding.new_shape(step, details)
    if resize is not None:
        interpreter.resize_tensor_input(details[resize[0]]["index"], resize[1])
    if resize is not None or not step:
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
    for number, detail in enumerate(details):
        array = feeding.array(step, number, detail["shape"], detail["dtype"])
        interpreter.set_tensor(detail["index"], array)


def _lacks_operators(error: BaseException | None) -> bool:
    """Whether an error says that operators without a kernel need a delegate."""
    unresolved = ("unresolved custom op", "Select TensorFlow op(s)")
    return isinstance(error, UnresolvedOpError) or any(t in str(error) for t in unresolved)
