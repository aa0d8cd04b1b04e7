"""What a copy is tried on: the core, and each delegate beside it, in both hosts."""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter
from ai_edge_litert.interpreter import OpResolverType as OfficialResolver

from delegraph.delegation.delegate import Delegate
from delegraph.errors import DelegraphError, UnresolvedOpError
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.native.litert.interpreter import LiteRtInterpreter
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegates.choice import as_delegate
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.op_resolver import OpResolverType
from delegraph.schema.enums import TensorType
from delegraph.schema.reader import read_model
from fuzz.copies import Copy
from fuzz.feeding import Arrays, Feeding
from fuzz.judging import Fault, Run, difference_fault, error_fault, is_random
from fuzz.starting_models import StartingModel, starting_models

MEMORY_LIMIT = 64 << 20
"""Bytes of tensors: enough for what is interesting, and quickly filled."""

TIME_LIMIT = 2.0
"""Seconds of an invoke, after which the runtime itself must stop it."""

NUDGES = 6
"""Runs that tell how far answers depend on roundings."""

OFFICIAL = "the official interpreter alone"
OURS = "ours"
"""Phases of a judgement: what a process was doing when it died."""


class Ending(NamedTuple):
    """What came of a copy.

    Attributes:
        outcome: one of :data:`OUTCOMES`.
        fault: what must not be; None where all is well.
        delegated: whether a delegate had a node of it.
        feeding: what was fed.
    """

    outcome: str
    fault: Fault | None = None
    delegated: bool = False


OUTCOMES = ("refused", "computed", "equal", "not judged", "fault")
"""``equal``: a delegate and the core gave the same; ``not judged``: LiteRT alone cannot run it."""

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """Something to try copies on.

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
        """Return the models that copies for it are made of, or those of one operator in *every*."""
        if not self.delegate:
            return starting_models("core", every=every)
        claims = self.make().capabilities().claims
        names = {op for claim in claims for op in claim.operators}
        return starting_models(self.delegate, names, every=every)

    def warm_up(self) -> None:
        """Load what each process would have to load again."""
        if self.delegate == "numba_cpu" or "numba_cpu" in dict(self.options).values():
            from delegraph_numba_cpu.cpu import level_named
            from delegraph_numba_cpu.families import families
            from delegraph_numba_cpu.kernel_library import library

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
        if fault is not None and self.in_litert and _is_undefined(right, copy, announce):
            return Ending("not judged")
        if fault is not None:
            return Ending("fault", fault, mine.delegated)
        return Ending("equal" if mine.error is None else "refused", None, mine.delegated)

    def _error_fault(self, error: BaseException, alone: BaseException | None) -> Fault | None:
        is_official = type(error) in (RuntimeError, ValueError) or type(error) is type(alone)
        return None if self.in_litert and is_official else error_fault(error)


def _lacks_operators(error: BaseException | None) -> bool:
    """Tell whether nothing but a delegate has some operators of the model."""
    unresolved = ("unresolved custom op", "Select TensorFlow op(s)")
    return isinstance(error, UnresolvedOpError) or any(t in str(error) for t in unresolved)


def _judged_core(found: Run) -> Ending:
    if found.error is None:
        return Ending("computed")
    fault = error_fault(found.error)
    return Ending("refused" if fault is None else "fault", fault)


def targets() -> dict[str, Target]:
    """Return every target there is: the core, and each installed delegate in both hosts."""
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

_LIMITS: dict[str, Any] = {"memory_limit": MEMORY_LIMIT}
if "time_limit" in inspect.signature(Interpreter).parameters:
    _LIMITS["time_limit"] = TIME_LIMIT


def open_ours(content: bytes, *delegates: Delegate) -> Interpreter:
    """Return Delegraph's interpreter, with limits."""
    return Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        delegates=delegates,
        num_threads=1,
        **_LIMITS,
    )


def open_official(content: bytes) -> Any:
    """Return the official interpreter, without a delegate."""
    return OfficialInterpreter(
        model_content=content,
        experimental_op_resolver_type=OfficialResolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        num_threads=1,
    )


def open_official_with(content: bytes, delegate: Delegate) -> LiteRtInterpreter:
    """Return the official interpreter with a delegate of ours."""
    return LiteRtInterpreter(
        model_content=content,
        delegates=[delegate],
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        num_threads=1,
    )


def run(open_it: Callable[[bytes], Any], copy: Copy) -> Run:
    """Open a copy, feed it, and return what came of it."""
    outputs: list[Arrays] = []
    types: list[TensorType] = []
    delegated = False
    try:
        interpreter = open_it(copy.content)
        feeding = copy.feeding()
        for step in range(feeding.invokes):
            _feed(interpreter, feeding, step)
            interpreter.invoke()
            details = interpreter.get_output_details()
            outputs.append([np.array(_output(interpreter, detail)) for detail in details])
        types = [_type_of(detail["dtype"]) for detail in details]
        delegated = _is_delegated(interpreter)
        if hasattr(interpreter, "close"):
            interpreter.close()
    except Exception as error:  # noqa: BLE001 - whatever it raises is judged
        return Run(outputs, types, error)
    return Run(outputs, types, None, delegated)


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


def _output(interpreter: Any, detail: dict[str, Any]) -> Any:
    """Return an output; the official interpreter has no array for an empty dynamic one."""
    try:
        return interpreter.get_tensor(detail["index"])
    except ValueError as error:
        if "Invalid tensor size" not in str(error):
            raise
        return np.empty(detail["shape"], detail["dtype"])


def _type_of(dtype: Any) -> TensorType:
    wanted = np.dtype(dtype)
    found = (type_ for type_, known in NUMPY_DTYPES.items() if known == wanted)
    return next(found, TensorType.STRING)


def _is_delegated(interpreter: Any) -> bool:
    if isinstance(interpreter, Interpreter):
        plan = interpreter.session.subgraphs[0].plan
        return any(node.delegate is not None for node, _ in plan.nodes)
    return isinstance(interpreter, LiteRtInterpreter)


def operator_names(content: bytes) -> Sequence[str]:
    """Return the names of a file's operators; none if it cannot be read."""
    try:
        codes = read_model(np.frombuffer(content, np.uint8)).operator_codes or ()
    except DelegraphError:
        return ()
    return [code.custom_code or getattr(code.builtin_code, "name", "") for code in codes]


_PERTURB = -6
"""M_PERTURB of glibc's mallopt: fill memory that is allocated."""


def _is_undefined(right: Run, copy: Copy, announce: Announce) -> bool:
    """Tell whether the official interpreter alone does not answer twice alike.

    Its kernels may leave places unwritten; where the C library can (glibc) memory is filled with
    another pattern each time.
    """
    try:
        fill = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    announce(OFFICIAL)
    again = []
    for pattern in (0x2A, 0x55):
        fill(_PERTURB, pattern)
        again.append(run(open_official, copy))
    fill(_PERTURB, 0)
    announce(OURS)
    return any(_differ(right, other) for other in again)


def _differ(a: Run, b: Run) -> bool:
    if (a.error is None) != (b.error is None) or len(a.outputs) != len(b.outputs):
        return True
    pairs = (
        (x, y) for s, t in zip(a.outputs, b.outputs, strict=True) for x, y in zip(s, t, strict=True)
    )
    return any(x.shape != y.shape or x.tobytes() != y.tobytes() for x, y in pairs)
