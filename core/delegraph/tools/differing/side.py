"""One of the two set-ups that are compared, while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.model_call import Details, ModelCall, model_call

Outputs = Sequence[tuple[Details, NDArray[Any]]]
"""Details and values of each output."""


class Side:
    """An interpreter that computes on given values, from variables that are zero.

    Args:
        interpreter: Delegraph's, or the official one.
        signature: what is called; None for the whole model.

    Attributes:
        inputs: details of the inputs.
        values: what the next computation gets, in their order.
        seconds: that each computation took.
    """

    def __init__(self, interpreter: Any, signature: str | None) -> None:
        self.interpreter = interpreter
        self._call: ModelCall = model_call(interpreter, signature)
        self.inputs: list[Details] = self._call.input_details()
        self.values: list[NDArray[Any]] = []
        self.seconds: list[float] = []

    def compute(self, warmup: int) -> None:
        """Compute on :attr:`values` with variables at zero, and take the time of it."""
        self._call.prepare(self.values)
        for _ in range(warmup):
            self._call.invoke()
        if warmup:
            self.interpreter.reset_all_variables()
            self._call.prepare(self.values)
        start = time.perf_counter()
        self._call.invoke()
        self.seconds.append(time.perf_counter() - start)

    def outputs(self) -> list[tuple[Details, NDArray[Any]]]:
        """Return details and values of all outputs; then variables are zero again."""
        found = [(entry, np.array(values)) for entry, values in self._call.outputs()]
        self.interpreter.reset_all_variables()
        return found
