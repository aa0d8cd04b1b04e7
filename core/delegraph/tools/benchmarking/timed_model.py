"""An allocated model with inputs, ready to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from delegraph.delegation.placement import Placement
from delegraph.graph.loader import load_model
from delegraph.graph.model import Model
from delegraph.runtime.delegates.requested_delegates import as_delegates
from delegraph.tools.benchmarking.clock import Clock
from delegraph.tools.benchmarking.stages import Stages
from delegraph.tools.called_inputs import require_room_for
from delegraph.tools.given_inputs import GivenInput
from delegraph.tools.model_call import ModelCall, model_call
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

if TYPE_CHECKING:
    from delegraph.native import LiteRtInterpreter
    from delegraph.runtime.interpreter import Interpreter

INIT = ("create delegates", "load", "apply delegates", "allocate")
"""The stages until a model is ready."""


@dataclass(frozen=True, slots=True)
class TimedModel:
    """An allocated set-up with input values; :func:`timed_model` makes one.

    Attributes:
        setup: what it is.
        interpreter: what runs it.
        call: how it is called.
        inputs: what its inputs are, made once.
        values: their arrays.
        clock: where times come from.
        stages: of making it; more may follow.
    """

    setup: Setup
    interpreter: Interpreter | LiteRtInterpreter
    call: ModelCall
    inputs: Sequence[GivenInput]
    values: Sequence[NDArray[Any]]
    clock: Clock
    stages: Stages

    def run(self) -> float:
        """Run once; return the seconds of the computation without copying the inputs."""
        self.call.fill(self.values)
        now = self.clock.now
        begin = now()
        self.call.invoke()
        return now() - begin

    @property
    def placement(self) -> Placement:
        """The delegate or kernel of each node."""
        return self.interpreter.placement

    @property
    def input_bytes(self) -> int:
        """Number of bytes of all inputs together; strings count their characters."""
        return sum(map(_bytes, self.values))


def _bytes(values: NDArray[Any]) -> int:
    if values.dtype.kind == "O":
        return sum(len(text) for text in values.ravel())
    return int(values.nbytes)


@contextmanager
def timed_model(
    setup: Setup,
    inputs: InputRequest | None = None,
    *,
    signature: str | None = None,
    clock: Clock | None = None,
) -> Iterator[TimedModel]:
    """Context with a set-up that is ready to run; its end closes the interpreter.

    Args:
        setup: a model and what runs it.
        inputs: what its inputs are to be; default: random as in ``benchmark_model``.
        signature: which of the model's is timed; None: the whole model.
        clock: where times come from.

    Raises:
        ArgumentError: an input, a signature or an argument that does not fit.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or a delegate failed.
    """
    clock = Clock() if clock is None else clock
    model = load_model(setup.model, setup.table_limit)
    _import_runtime(setup)
    stages = Stages(clock)
    requested = setup.requested_delegates()
    objects = None if requested is None else as_delegates(requested, setup.isolation)
    stages.end("create delegates")
    made = replace(setup, delegates=objects, delegate_files=())
    with made.interpreter(on_loaded=lambda: stages.end("load")) as interpreter:
        stages.end("apply delegates")
        call = model_call(interpreter, signature)
        chosen = _inputs(setup, call, model, inputs or InputRequest(), signature)
        values = [given.values for given in chosen]
        stages.skip()
        call.allocate(values)
        stages.end("allocate")
        yield TimedModel(setup, interpreter, call, chosen, values, clock, stages)


def _import_runtime(setup: Setup) -> None:
    """Import the runtime's modules, so that imports count in no stage."""
    import delegraph.plugins.delegate_file

    if setup.runtime == "litert":
        import delegraph.native.litert.interpreter
        from delegraph.native.litert.installed_runtimes import interpreter_module

        interpreter_module(None)
    else:
        import delegraph.runtime.interpreter  # noqa: F401 - imported only


def _inputs(
    setup: Setup, call: ModelCall, model: Model, request: InputRequest, signature: str | None
) -> list[GivenInput]:
    details = call.input_details()
    require_room_for(setup, model, details)
    return request.arrays(details, model, signature)
