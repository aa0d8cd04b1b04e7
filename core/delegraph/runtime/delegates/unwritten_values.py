"""Finds values that a delegate's node does not write, at its first run after each preparation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.delegation.written_outputs import Marks, partly_written
from delegraph.lazy_dataclass import replace
from delegraph.operators.asynchronous import DONE, AnyEvent, AsyncEval, Started
from delegraph.operators.registration import Eval
from delegraph.runtime.delegates.partition_state import PartitionState

if TYPE_CHECKING:
    from delegraph.operators.tensor import Tensor


def with_outputs_checked(
    step: Eval, outputs: list[Tensor], inputs: list[Tensor], state: PartitionState
) -> Eval:
    """Return *step*, extended to check at its first run that it writes every output value.

    Outputs are filled with a mark before the run. If a value equals the mark afterwards, it may
    still be right. So the step runs once more over another mark, with the variables restored.
    *state* has the variables and resources that the step may change.
    """
    first = _FirstRun(outputs, inputs, state)

    def run() -> None:
        if first.is_over:
            step()
        else:
            first.check(step)

    if not isinstance(step, AsyncEval):
        return run

    def start() -> AnyEvent:
        if first.is_over:
            return step.start()
        first.check(lambda: step.finish(Started(step.start())))
        return DONE

    return replace(step, run=run, start=start)


class _FirstRun:
    """Checks whether a node's first run writes all values of its outputs.

    Attributes:
        is_over: whether the first run is over and has written all outputs.
    """

    def __init__(self, outputs: list[Tensor], inputs: list[Tensor], state: PartitionState) -> None:
        self._outputs = outputs
        self._inputs = inputs
        self._state = state
        self.is_over = False

    def check(self, compute: Eval) -> None:
        """Call *compute*, and once more if values may be unwritten.

        Raises:
            OperatorError: *compute* does not write all values of an output.
        """
        saved = self._state.save() if self._state else None
        marks = Marks(self._outputs, self._inputs, is_whole=True)
        compute()
        left = marks.left()
        if left:
            if saved is not None:
                saved.put_back()
            marks.invert()
            compute()
            for number, again in marks.left().items():
                missing = int(np.count_nonzero(again & left[number])) if number in left else 0
                if missing:
                    raise partly_written(self._outputs[number], missing)
        self.is_over = True
