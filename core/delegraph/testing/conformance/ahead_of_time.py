"""Checks of ahead-of-time compilation: models are compiled, written, damaged and run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from unittest import SkipTest

import numpy as np

from delegraph.delegation.compiled_partition import (
    CUSTOM_OP,
    CompiledPartition,
    read_custom_options,
)
from delegraph.errors import DelegraphError, PluginOptionError
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.creation import compiler_version
from delegraph.plugins.plugin_set import Offer, installed
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.testing.conformance.differences import difference
from delegraph.testing.conformance.kernel_observer import PATTERN, fill
from delegraph.testing.conformance.reproduction import recompiled, rerun
from delegraph.testing.conformance.run_reports import model_begins, remembered
from delegraph.testing.conformance.sample_models import specimens
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import (
    Outputs,
    Trial,
    all_answers,
    gallery_for,
    open_interpreter,
)
from delegraph.testing.operator_case import OperatorCase
from delegraph.tools.compiling import compile_model

Edit = Callable[[CompiledPartition, bytes], tuple[CompiledPartition, bytes]]
"""Function that returns a changed description of a partition, and a changed blob."""


@dataclass(frozen=True)
class _Compiled:
    """A model that the delegate compiled ahead of time, or the error of its compilation.

    Attributes:
        trial: the model with its right results.
        case: the compiled file, with the model as its reference.
        error: text that says why the model could not be compiled; empty otherwise.
    """

    trial: Trial
    case: OperatorCase
    error: str = ""


def compiled_files_give_the_same(subject: Subject) -> None:
    """Check that a model gives the same results if it was compiled ahead of time.

    A delegate that only runs compiled partitions is compared with Delegraph's kernels.
    """
    offer = _offer(subject)
    for made in _compiled(subject):
        wrong = made.error or _difference(subject, offer, made)
        if wrong:
            raise AssertionError(wrong + recompiled(subject, made.trial.case))


def other_versions_are_refused(subject: Subject) -> None:
    """Check that a blob of another compiler version is rejected, with advice in the message."""
    offer = _offer(subject)
    assert offer.compiler is not None  # _offer has checked it
    versions = [compiler_version(offer.compiler, offer.plugin) for _ in range(2)]
    if versions[0] != versions[1]:
        raise AssertionError(
            f"version of its CompilerSpec returns {versions[0]!r} and then {versions[1]!r}: no "
            "file that it has compiled can be loaded; return what changes with the blobs' form"
        )
    made = _usable(subject)[0]
    other = f"{versions[0][:100]}-other"
    case = _edited(made.case, lambda partition, blob: (replace(partition, version=other), blob))
    error = _error(subject, case)
    if "delegraph compile " not in error:
        shown = f"the error has no remedy: {error}" if error else "the model runs nevertheless"
        raise AssertionError(
            f"the blob is of version {other!r}, installed is {versions[0]!r}, and {shown}; does "
            "the delegate claim custom operators that are not its own?"
            + rerun(subject, case, "other-version")
        )


def damaged_blobs_are_errors(subject: Subject) -> None:
    """Check that a damaged blob is rejected even if the digest in the partition matches it."""
    for made in _usable(subject):
        for what, damage in _DAMAGES:
            case = _edited(made.case, _with_blob(damage))
            if not _error(subject, case):
                raise AssertionError(
                    f"{what}, and load_compiled of its CompilerSpec takes it, nor does its kernel "
                    "refuse to run it; check a length or digest of the blob's own"
                    + rerun(subject, case, "damaged-blob")
                )
        for place in range(_FLIPS):  # constants may have any values
            _error(subject, _edited(made.case, _with_blob(partial(_flipped, place=place))))


def _zeros(blob: bytes) -> bytes:
    return bytes(len(blob))


def _noise(blob: bytes) -> bytes:
    return np.random.default_rng(len(blob)).bytes(len(blob))


_DAMAGES: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("the second half of the blob is missing", lambda blob: blob[: -(-len(blob) // 2)]),
    ("the blob is zeros", _zeros),
    ("the blob is noise", _noise),
)
"""Descriptions of damages, each with a function that damages a blob so."""

_FLIPS = 4
"""Number of places in a blob at which a byte is inverted, one after the other."""


def _flipped(blob: bytes, place: int) -> bytes:
    """Return the compiled bytes *blob* with one byte inverted.

    The byte is *place* quarters of the length from the start (*place* is 0 to 3).
    """
    changed = bytearray(blob)
    changed[place * len(blob) // _FLIPS] ^= 0xFF
    return bytes(changed)


def _offer(subject: Subject) -> Offer:
    if subject.spec is None:
        raise SkipTest("it is no installed delegate, which `delegraph compile` could compile for")
    offer = installed().find(DelegateAddress.parse(subject.address))
    if offer.compiler is None:
        raise SkipTest("its plugin compiles nothing ahead of time")
    return offer


@cache
def _compiled(subject: Subject) -> tuple[_Compiled, ...]:
    """Return a few models, each with the file that the delegate compiled from it.

    Raises:
        SkipTest: there is no such model.
    """
    tried = (_compiled_one(subject, trial) for trial in _sources(subject))
    found = tuple(islice(filter(None, tried), subject.effort.specimens))
    if not found:
        raise SkipTest("it compiles none of the models that it was given")
    return found


def _sources(subject: Subject) -> Iterator[Trial]:
    """Yield one-step models to compile: models that the delegate claims, or of any operator."""
    compiler = _offer(subject).compiler
    if compiler is not None and compiler.load_claims is None:
        yield from specimens(subject)
        return
    for trial in gallery_for(subject.make(), FULL.gallery):
        is_plain = len(trial.case.steps) == 1 and not trial.case.is_random
        if is_plain and trial.features.isdisjoint({"dynamic-shapes", "empty"}):
            yield trial


def _compiled_one(subject: Subject, trial: Trial) -> _Compiled | None:
    """Return the compiled model of *trial*; None if no partition of it is compiled."""
    with remembered(subject.name, "compiled", trial.case) as death:
        if death:
            return _Compiled(trial, trial.case, f"when it compiles ahead of time, it {death}")
        model_begins(trial.case)
        try:
            made = compile_model(trial.case.model(), [subject.address])
        except PluginOptionError as error:
            raise SkipTest(f"with these options it compiles nothing: {error}") from None
        except DelegraphError as error:
            return _Compiled(trial, trial.case, f"cannot be compiled ahead of time: {error}")
    if not made.partitions:
        return None
    records = read_model(np.frombuffer(made.content, np.uint8))
    return _Compiled(
        trial, replace(trial.case, op=CUSTOM_OP, records=records, reference=trial.case.right)
    )


def _usable(subject: Subject) -> list[_Compiled]:
    """Return the models that the delegate compiled without an error, each with its file.

    Raises:
        SkipTest: there is no such model.
    """
    _offer(subject)
    found = [made for made in _compiled(subject) if not made.error]
    if not found:
        raise SkipTest("nothing can be compiled; see compiled_files_give_the_same")
    return found


def _difference(subject: Subject, offer: Offer, made: _Compiled) -> str:
    """Return how the results of *made*, a compiled file, differ from right results; empty if not.

    *offer* is the installed delegate, which says how its compiled partitions are loaded.
    """
    assert offer.compiler is not None  # _offer has checked it
    trial, whose = made.trial, "Delegraph's kernels"
    if offer.compiler.load_claims is None:
        trial = replace(trial, expected=_answers(subject, trial.case))
        whose = "the delegate that compiles when it starts"
    try:
        found = _answers(subject, made.case)
    except DelegraphError as error:
        return f"what was compiled ahead of time does not run: {error}"
    wrong = difference(found, trial, subject.capabilities)
    return wrong and f"what was compiled ahead of time gives other results than {whose}: {wrong}"


def _answers(subject: Subject, case: OperatorCase) -> Outputs:
    with open_interpreter(case, subject.make()) as interpreter:
        interpreter.allocate_tensors()
        main = interpreter.session.subgraphs[0]
        for index in main.outputs:  # memory may still hold the right results of an earlier run
            fill(main.tensors[index].data, PATTERN)
        return all_answers(interpreter, case)


def _error(subject: Subject, case: OperatorCase) -> str:
    """Text of the error when the file of *case* is opened, prepared or run; empty without one."""
    try:
        _answers(subject, case)
    except DelegraphError as error:
        return str(error)
    return ""


def _with_blob(change: Callable[[bytes], bytes]) -> Edit:
    """Return an edit of a compiled partition: *change* is applied to its blob (compiled bytes).

    The digest in the partition is updated, so that only the delegate can notice the change.
    """

    def edit(partition: CompiledPartition, blob: bytes) -> tuple[CompiledPartition, bytes]:
        changed = change(blob)
        digest = hashlib.sha256(changed).hexdigest()
        return replace(partition, blob_digest=digest, blob_bytes=len(changed)), changed

    return edit


def _edited(case: OperatorCase, edit: Edit) -> OperatorCase:
    """Return the compiled file *case* in which every compiled partition is changed by *edit*."""
    records, subgraphs = case.records, []
    buffers = list(records.buffers or ())
    codes = [code.custom_code for code in records.operator_codes or ()]
    for graph in records.subgraphs or ():
        tensors, operators = list(graph.tensors or ()), []
        for operator in graph.operators or ():
            if codes[operator.opcode_index] == CUSTOM_OP:
                operator = _edited_operator(operator, tensors, buffers, edit)
            operators.append(operator)
        made = graph.replace(tensors=tuple(tensors), operators=tuple(operators))
        subgraphs.append(made)
    changed = records.replace(subgraphs=tuple(subgraphs), buffers=tuple(buffers))
    return replace(case, records=changed)


def _edited_operator(
    operator: tables.Operator,
    tensors: list[tables.Tensor],
    buffers: list[tables.Buffer],
    edit: Edit,
) -> tables.Operator:
    """Return the operator of a partition, changed by *edit*.

    Its changed blob is stored in the lists *tensors* and *buffers*.
    """
    index = (operator.inputs or ())[-1]
    buffer = tensors[index].buffer
    content = np.asarray(buffers[buffer].data, np.uint8).tobytes()
    options = np.asarray(operator.custom_options, np.uint8).tobytes()
    partition, blob = edit(read_custom_options(options), content)
    buffers[buffer] = buffers[buffer].replace(data=np.frombuffer(blob, np.uint8))
    tensors[index] = tensors[index].replace(shape=(len(blob),))
    options = partition.custom_options()
    return operator.replace(custom_options=np.frombuffer(options, np.uint8))
