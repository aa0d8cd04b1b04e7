"""Stages of a micro interpreter, and the calls that each stage allows."""

from __future__ import annotations

from enum import Enum

from delegraph.errors import StateError


class MicroState(Enum):
    """Stages of an interpreter, in this order. Source: TFLM's InterpreterState.

    Attributes:
        INIT: kernels' ``init`` is called; it may allocate persistent memory.
        PREPARE: kernels check their tensors; they may allocate persistent memory and request
            scratch buffers.
        MEMORY_PLANNING: tensors and scratch buffers get their offsets; no kernel runs.
        INVOKE: kernels compute; they allocate nothing.
    """

    INIT = "kInit"
    PREPARE = "kPrepare"
    MEMORY_PLANNING = "kMemoryPlanning"
    INVOKE = "kInvoke"


class Stage:
    """The present stage of an interpreter, shared by the contexts of all subgraphs.

    Attributes:
        state: the present state.
    """

    def __init__(self) -> None:
        self.state = MicroState.INIT

    def require(self, call: str, *allowed: MicroState) -> None:
        """Check that *call* is allowed in the present stage.

        Raises:
            StateError: the state is not among *allowed*.
        """
        if self.state not in allowed:
            states = " or ".join(state.value for state in allowed)
            raise StateError(f"{call}() in state {self.state.value}; it is possible in {states}")
