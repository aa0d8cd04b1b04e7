"""An allocated model with inputs, ready to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.placement import Placement
from delegraph.graph.model import Model
from delegraph.tools.benchmarking.handed_on import HandedOn, tokens_of
from delegraph.tools.benchmarking.run_control import Clock
from delegraph.tools.benchmarking.stages import Stages
from delegraph.tools.benchmarking.threads import applied_delegates, most_threads
from delegraph.tools.called_inputs import require_room_for
from delegraph.tools.given_inputs import GivenInput
from delegraph.tools.model_call import KeptState, ModelCall, model_call
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import tensor_names, with_names

if TYPE_CHECKING:
    from delegraph.tools.setup import AnyInterpreter

INIT = ("create delegates", "load", "apply delegates", "allocate")
"""Names of the stages that make a model ready to run."""


@dataclass(frozen=True, slots=True)
class TimedModel:
    """A model with allocated tensors and input values, ready to be run and timed.

    Attributes:
        setup: the set-up.
        interpreter: the interpreter that runs the model.
        call: the way to call the model: as a whole, or by a signature.
        inputs: description of the inputs, with values that are generated once.
        values: array of each input.
        clock: source of the times.
        stages: measured stages of making the model ready; later stages may be added.
        model_bytes: size of the model in bytes.
        kept: states that each run passes to the next run; None if there are none.
        delegates: the applied delegates that are Python objects.
    """

    setup: Setup
    interpreter: AnyInterpreter
    call: ModelCall
    inputs: Sequence[GivenInput]
    values: Sequence[NDArray[Any]]
    clock: Clock
    stages: Stages
    model_bytes: int
    kept: KeptState | None
    delegates: Sequence[Delegate]

    def run(self) -> float:
        """Run once; return the seconds of the computation without copying the inputs.

        Passing states to the next run is included.
        """
        self.call.fill(self.values)
        now = self.clock.now
        begin = now()
        self.call.invoke()
        return now() - begin

    @property
    def placement(self) -> Placement:
        """Record of the delegate or kernel that computes each node."""
        return self.interpreter.placement

    @property
    def threads(self) -> int | None:
        """Largest number of threads of a run; None if a delegate does not report its choice."""
        return most_threads(self.setup.threads, self.placement, self.delegates)

    @property
    def handed_on(self) -> HandedOn | None:
        """States that each run passes to the next run; None if there are none."""
        kept = self.kept
        if kept is None:
            return None
        return HandedOn(kept.names, kept.bytes, kept.copied_bytes(), tokens_of(self.inputs))

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
    """Context that makes a set-up ready to run and closes its interpreter at the end.

    The arguments are those of :func:`delegraph.tools.benchmark`.

    Raises:
        ArgumentError: an input, a signature or an argument does not fit the model.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or a delegate failed.
    """
    clock = Clock() if clock is None else clock
    model = setup.loaded_model()
    _import_runtime(setup)
    stages = Stages(clock)
    made = setup.with_objects()
    stages.end("create delegates")
    with made.interpreter(on_loaded=lambda: stages.end("load")) as interpreter:
        stages.end("apply delegates")
        call = model_call(interpreter, signature)
        chosen = _inputs(setup, call, model, inputs or InputRequest(), signature)
        values = [given.values for given in chosen]
        stages.skip()
        call.allocate(values)
        stages.end("allocate")
        kept = call.keep_state(values)
        applied = applied_delegates(made, interpreter)
        yield TimedModel(
            setup, interpreter, call, chosen, values, clock, stages, model.bytes, kept, applied
        )


def _import_runtime(setup: Setup) -> None:
    """Import the runtime of *setup* now, so that no stage includes the time of imports."""
    import delegraph.plugins.delegate_file

    if setup.runtime == "litert":
        import delegraph.native.litert.interpreter
        from delegraph.native.litert.installed_runtimes import interpreter_module

        interpreter_module(None)
    elif setup.runtime == "litert2":
        import delegraph.native.litert.compiled_model
        from delegraph.native.litert.installed_runtimes import compiled_model_module

        compiled_model_module()
    else:
        import delegraph.runtime.interpreter  # noqa: F401 - imported only
    setup.keep_runtime_quiet()


def _inputs(
    setup: Setup, call: ModelCall, model: Model, request: InputRequest, signature: str | None
) -> list[GivenInput]:
    details = with_names(call.input_details(), tensor_names(setup, signature, call, model).inputs)
    require_room_for(setup, model, details)
    return request.arrays(details, model, signature)
