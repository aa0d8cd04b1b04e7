"""Parts that LSTM layers of all types share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.operators import LstmInput, LstmTensors, OpContext, lstm_tensors, option
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import padded
from delegraph_numba_cpu.lowering.checks import check_types
from delegraph_numba_cpu.lowering.recurrent.lstm_packing import BLOCK
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, WorkerScratch


def check_layer(call: Call, *types: str) -> Rejection | None:
    """Return a rejection unless the tensors of an LSTM layer are supported.

    Weights must be dense constants, states must be variables, and every input and output must have
    one of the *types*.
    """
    states = (LstmInput.OUTPUT_STATE, LstmInput.CELL_STATE)
    if len(call.node.inputs) not in (20, 24):
        return Rejection("operands", actual=len(call.node.inputs), expected="20 or 24 inputs")
    for i, index in enumerate(call.node.inputs):
        tensor = call.optional_input(i)
        if tensor is None or i == LstmInput.INPUT:
            continue
        if i in states:
            if not tensor.is_variable:
                return Rejection("state", expected="a variable", tensor=index)
        elif not tensor.is_constant:
            return Rejection("computed-weights", expected="constants", tensor=index)
        elif tensor.sparsity is not None:
            return Rejection("sparse", expected="dense constants", tensor=index)
        elif 0 in tensor.shape:
            return Rejection("weights-shape", actual=list(tensor.shape), expected="weights")
    return check_types(call, *types)


def layer_tensors(call: Call) -> LstmTensors:
    """Return the tensors of an LSTM node by their role."""
    norm = call.optional_input(LstmInput.FORGET_LAYER_NORM_COEFFICIENTS)
    first = None if norm is None else LstmInput.INPUT_LAYER_NORM_COEFFICIENTS
    # The called function reads the node's tensors, and no other part of a kernel's context.
    return lstm_tensors(cast(OpContext, call.context), call.node, layer_norm=first)


@dataclass(frozen=True, slots=True)
class LstmLayer:
    """Tensors of an LSTM layer, and the layout of its gates in the kernels' matrices.

    Attributes:
        tensors: the layer's tensors.
    """

    tensors: LstmTensors

    @property
    def cells(self) -> int:
        """Length of the cell state."""
        return self.tensors.n_cell

    @property
    def count(self) -> int:
        """Number of gates."""
        return len(self.tensors.biases)

    @property
    def row(self) -> int:
        """Number of columns of one gate."""
        return padded(self.cells, BLOCK)

    @property
    def width(self) -> int:
        """Number of columns of all gates."""
        return self.count * self.row


Pack = Callable[[str, Callable[[], NDArray[Any]]], Memory]
"""Function that returns a stored constant by name; if it is missing, it is computed and stored."""


def packer(call: Call, builder: ProgramBuilder) -> Pack:
    """Return a function that packs a constant of the node once, stores it, and returns its memory.

    It is called with a name that is unique in the node, and with a function that returns the packed
    array; see :data:`Pack`.

    Args:
        call: the LSTM node.
        builder: builder of the program, which stores the constants.
    """
    return lambda part, make: builder.packed((call.node.inputs, part), make)


@dataclass(frozen=True, slots=True)
class Sequences:
    """Geometry of the sequences that a layer processes.

    Attributes:
        source: index of the input tensor.
        target: index of the output tensor.
        batch: number of sequences.
        steps: number of time steps of a sequence.
        inputs: length of the input's last axis.
        outputs: length of the output's last axis.
        is_time_major: whether the first axis is time, or there is one step without a time axis.
    """

    source: int
    target: int
    batch: int
    steps: int
    inputs: int
    outputs: int
    is_time_major: bool

    @classmethod
    def of(cls, call: Call) -> Sequences:
        """Return the number and the length of the sequences that an LSTM node reads and writes."""
        x, y = call.input(LstmInput.INPUT), call.output()
        is_step = len(x.shape) == 2
        is_time_major = is_step or bool(option(call.node, "time_major", False))
        leading = (1, x.shape[0]) if is_step else x.shape[:2]
        steps, batch = leading if is_time_major else leading[::-1]
        return cls(x.index, y.index, batch, steps, x.shape[-1], y.shape[-1], is_time_major)

    @property
    def rows(self) -> int:
        """Number of time steps of all sequences together."""
        return self.batch * self.steps

    def words(self, gates_bytes: int, output_bytes: int) -> dict[str, int]:
        """Return the kernel's operands, by name, for the places of steps and sequences in memory.

        Args:
            gates_bytes: number of bytes of all gates of a step.
            output_bytes: number of bytes of a row of the output.
        """
        gates_step, gates_batch = self._strides(gates_bytes)
        target_step, target_batch = self._strides(output_bytes)
        return {
            "steps": self.steps,
            "batch": self.batch,
            "outputs": self.outputs,
            "gates_step": gates_step,
            "gates_batch": gates_batch,
            "target_step": target_step,
            "target_batch": target_batch,
        }

    def _strides(self, size: int) -> tuple[int, int]:
        return (size * self.batch, size) if self.is_time_major else (size, size * self.steps)


def emit_steps(
    builder: ProgramBuilder,
    instruction: Instruction,
    layer: LstmLayer,
    over: Sequences,
    gates: Memory,
    itemsizes: tuple[int, int],
    scratch_bytes: int,
    **words: Any,
) -> None:
    """Add to the program a kernel call that computes all time steps of an LSTM layer.

    The call has one parallel tile for each sequence.

    Args:
        builder: builder of the program, to which the kernel call is added.
        instruction: the kernel that is called, with the names of its operands.
        layer: tensors of the layer, and the layout of its gates.
        over: number of sequences and time steps, and their tensors.
        gates: memory of the gates' values so far: the products of the inputs and their weights.
        itemsizes: number of bytes of a gate's value, and of an output value.
        scratch_bytes: number of scratch bytes for each thread.
        words: the kernel's remaining operands, by name.
    """
    gate_bytes, output_bytes = itemsizes
    builder.emit(
        instruction,
        over.batch,
        gates=gates,
        target=builder.tensor(over.target),
        output_state=builder.tensor(layer.tensors.output_state.index),
        cell_state=builder.tensor(layer.tensors.cell_state.index),
        **over.words(gate_bytes * layer.width, output_bytes * over.outputs),
        cells=layer.cells,
        count=layer.count,
        row=layer.row,
        width=layer.width,
        scratch=WorkerScratch(scratch_bytes),
        **words,
    )
