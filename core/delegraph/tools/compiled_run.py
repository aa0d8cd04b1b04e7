"""Runs a compiled model file once, and compares its outputs with the original model's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from delegraph.delegation.dry_run import dry_run
from delegraph.delegation.model_entries import entries_read
from delegraph.delegation.placement import Placement
from delegraph.errors import DelegateError, DelegraphError, PluginError
from delegraph.json_records import JsonRecord
from delegraph.plugins.plugin_set import installed
from delegraph.quantities import plural
from delegraph.tools.differing.difference import OutputDifference, diff
from delegraph.tools.kept_entries import KeptEntries
from delegraph.tools.model_call import allocate, model_call
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

_RANDOM = InputRequest(distribution="run")
"""The random inputs of ``delegraph run``, whose integers are small, as they may be positions."""


@dataclass(frozen=True, slots=True)
class CompiledRun(JsonRecord):
    """Outcome of one run of a compiled file on random inputs.

    Attributes:
        is_equal: whether all outputs equal the outputs of the original model; None if not compared.
        output: name of the output that differs most; empty if no output differs.
        largest: largest difference of an element of that output.
        value: value of that element in the original model's output.
        failure: text that says why the compiled file is wrong; empty if it is right.
        reason: text that says why outputs were not compared although the file may be right; empty
            if they were compared.
        unchecked: delegates with entries in the file, as text in the command line's syntax, that
            cannot run on this machine.
    """

    is_equal: bool | None = None
    output: str = ""
    largest: float = 0.0
    value: float = 0.0
    failure: str = ""
    reason: str = ""
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntriesUse(JsonRecord):
    """Whether entries of a model file are used when the file is loaded here without options.

    Attributes:
        is_used_here: whether all of them are used.
        why: the delegate's note about its entries, or the reason why they are not used.
    """

    is_used_here: bool
    why: str


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """Use of the entries in a model file that was loaded without options.

    Attributes:
        uses: use of the entries of each delegate, level and number of threads.
        told: notes of all delegates with entries, as one sentence; empty if they have none, or the
            file cannot be loaded.
    """

    uses: tuple[EntriesUse, ...]
    told: str = ""


def why_not_here(address: str) -> str:
    """Reason why a delegate cannot be created on this machine; empty if it can.

    Args:
        address: the delegate with its options, as text in the command line's syntax.
    """
    try:
        installed().create_delegate(address, None)
    except (DelegateError, PluginError) as error:
        return str(error)
    return ""


def loaded_file(kept: Sequence[KeptEntries], setup: Setup) -> LoadedFile:
    """Load a model file with entries, and tell which of them are used.

    Args:
        kept: the entries, with their names.
        setup: set-up with the file, and without delegates.
    """
    try:
        with dry_run(), entries_read() as read, setup.interpreter() as interpreter:
            allocate(interpreter, None)
            placement = interpreter.placement
    except DelegraphError as error:
        return LoadedFile(tuple(EntriesUse(False, str(error)) for _ in kept))
    names = dict.fromkeys(each.delegate.partition(":")[0] for each in kept)
    notes = [f"{name}: {placement.notes[name]}" for name in names if placement.notes.get(name)]
    told = f"loaded here without options, {'; '.join(notes)}" if notes else ""
    used = [each for each in kept if each.names and each.names <= read]
    return LoadedFile(tuple(_use(each, used, placement) for each in kept), told)


def _use(kept: KeptEntries, used: Sequence[KeptEntries], placement: Placement) -> EntriesUse:
    name = kept.delegate.partition(":")[0]
    note = placement.notes.get(name, "")
    if kept in used:
        return EntriesUse(True, note)
    why = why_not_here(kept.delegate)
    for other in used:
        if other.delegate.partition(":")[0] == name:
            threads = plural(other.threads or other.used_threads or 1, "thread")
            why = why or f"without options, {name} uses those for {other.delegate}, {threads}"
    if name not in placement.delegates:
        why = why or f"{name} is not applied here unless --delegate names it"
    return EntriesUse(False, why or note or f"{name} asks for other entries")


def run_compiled(before: Setup, after: Setup) -> CompiledRun:
    """Run a compiled file and its original model once, on the same random inputs.

    Finite differences are no failure, since an engine may round differently.

    Args:
        before: set-up with the original model.
        after: set-up with the compiled file.

    Raises:
        ArgumentError: a set-up has a wrong value.
    """
    try:
        found = diff(after, before, inputs=_RANDOM, runs=1, warmup=0)
    except DelegraphError as error:
        own = _failure(before)
        return CompiledRun(reason=own) if own else CompiledRun(failure=str(error))
    names = (*found.only_in_test, *found.only_in_reference)
    if names:
        return CompiledRun(failure=f"it has other outputs: {', '.join(names)}")
    worst = max(found.outputs, key=_largest, default=None)
    if worst is None or not any(each.worst.unequal for each in found.outputs):
        return CompiledRun(is_equal=True)
    compared = worst.worst.compared
    if compared is None:
        return CompiledRun(False, failure=f"output {worst.name!r}: {'; '.join(worst.remarks)}")
    if not math.isfinite(compared.max):
        failure = f"output {worst.name!r}: {compared.found} in place of {compared.expected}"
        return CompiledRun(False, worst.name, compared.max, compared.expected, failure)
    return CompiledRun(False, worst.name, compared.max, compared.expected)


def _largest(output: OutputDifference) -> float:
    compared = output.worst.compared
    return math.inf if compared is None else compared.max


def _failure(setup: Setup) -> str:
    """Text that says why the model of *setup* fails on random inputs; empty if it runs."""
    try:
        with setup.interpreter() as interpreter:
            call = model_call(interpreter, None)
            given = _RANDOM.arrays(call.input_details(), setup.loaded_model())
            call.prepare([each.values for each in given])
            call.invoke()
    except DelegraphError as error:
        return str(error)
    return ""
