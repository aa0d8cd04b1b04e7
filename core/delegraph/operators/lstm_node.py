"""Tensors of an LSTM node with their shapes and types, and the node's options."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import IntEnum

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    option,
    require_one_scale,
    require_rank,
    require_shape,
    require_type,
)
from delegraph.operators.registration import (
    Node,
    OpContext,
    input_tensor,
    optional_input,
    variable_input,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType


class LstmInput(IntEnum):
    """Inputs of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM. Source: tflite/kernels/lstm_shared.h."""

    INPUT = 0
    INPUT_TO_INPUT_WEIGHTS = 1
    INPUT_TO_FORGET_WEIGHTS = 2
    INPUT_TO_CELL_WEIGHTS = 3
    INPUT_TO_OUTPUT_WEIGHTS = 4
    RECURRENT_TO_INPUT_WEIGHTS = 5
    RECURRENT_TO_FORGET_WEIGHTS = 6
    RECURRENT_TO_CELL_WEIGHTS = 7
    RECURRENT_TO_OUTPUT_WEIGHTS = 8
    CELL_TO_INPUT_WEIGHTS = 9
    CELL_TO_FORGET_WEIGHTS = 10
    CELL_TO_OUTPUT_WEIGHTS = 11
    INPUT_GATE_BIAS = 12
    FORGET_GATE_BIAS = 13
    CELL_GATE_BIAS = 14
    OUTPUT_GATE_BIAS = 15
    PROJECTION_WEIGHTS = 16
    PROJECTION_BIAS = 17
    OUTPUT_STATE = 18
    CELL_STATE = 19
    INPUT_LAYER_NORM_COEFFICIENTS = 20
    FORGET_LAYER_NORM_COEFFICIENTS = 21
    CELL_LAYER_NORM_COEFFICIENTS = 22
    OUTPUT_LAYER_NORM_COEFFICIENTS = 23


@dataclass(frozen=True, slots=True)
class LstmOptions:
    """Options that all LSTM operators share; a clip of 0 means that values are not clipped."""

    activation: int = ActivationFunctionType.TANH
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    asymmetric: bool = False

    @classmethod
    def of(cls, node: Node) -> LstmOptions:
        """Return the LSTM options of *node*.

        Raises:
            OperatorError: a clip is negative or NaN.
        """
        options = cls(
            option(node, "fused_activation_function", ActivationFunctionType.NONE),
            option(node, "cell_clip", 0.0),
            option(node, "proj_clip", 0.0),
            option(node, "asymmetric_quantize_inputs", False),
        )
        if not (options.cell_clip >= 0 and options.proj_clip >= 0):
            raise OperatorError(
                f"clips are {options.cell_clip} and {options.proj_clip}, expected 0 or more"
            )
        return options


@dataclass(frozen=True, slots=True)
class LstmTensors:
    """Tensors of an LSTM layer, except input and output.

    Gates are in the order input, forget, cell, output. With a coupled input gate (CIFG) the input
    gate is one minus the forget gate, and all tuples lack their first entry.

    Attributes:
        input_weights: ``[n_cell, n_input]`` for each gate.
        recurrent_weights: ``[n_cell, n_output]`` for each gate, or ``[n_cell]`` for diagonal
            matrices.
        peephole: ``[n_cell]`` for the input, forget and output gate; empty if there are no
            peepholes.
        biases: ``[n_cell]`` for each gate.
        projection_weights: ``[n_output, n_cell]``; None if there is no projection.
        projection_bias: ``[n_output]``; None if there is none.
        output_state: ``B * n_output`` elements.
        cell_state: ``B * n_cell`` elements.
        layer_norm: ``[n_cell]`` for each gate; empty without layer normalisation.
        aux_weights: ``[n_cell, n_aux]`` for each gate; empty without a second input.
    """

    input_weights: tuple[Tensor, ...]
    recurrent_weights: tuple[Tensor, ...]
    peephole: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    projection_weights: Tensor | None
    projection_bias: Tensor | None
    output_state: Tensor
    cell_state: Tensor
    layer_norm: tuple[Tensor, ...] = ()
    aux_weights: tuple[Tensor, ...] = ()

    @property
    def cifg(self) -> bool:
        """Whether the input gate is coupled to the forget gate."""
        return len(self.input_weights) == 3

    @property
    def n_cell(self) -> int:
        """Number of cells, the length of the cell state."""
        return self.input_weights[-1].shape[0]

    @property
    def n_output(self) -> int:
        """Number of outputs, the length of the output state."""
        return self.recurrent_weights[-1].shape[-1]

    @property
    def states(self) -> tuple[Tensor, Tensor]:
        """The output state and the cell state."""
        return self.output_state, self.cell_state

    def weights(self) -> Iterator[Tensor]:
        """Yield all tensors with trained weights."""
        yield from self.input_weights + self.recurrent_weights + self.peephole + self.biases
        yield from self.layer_norm + self.aux_weights
        yield from (t for t in (self.projection_weights, self.projection_bias) if t is not None)

    def gate_scales(self, intermediates: Sequence[Tensor]) -> list[float]:
        """Scale of each gate before layer normalisation; without it, the scale of Q3.12.

        Args:
            intermediates: the node's intermediate tensors; the first four have the gates' scales,
                input gate first.
        """
        gates = len(self.input_weights)
        if self.layer_norm:
            return [t.scale for t in intermediates[4 - gates : 4]]
        return [2.0**-12] * gates

    def check(self, batch: int, n_input: int, *, integer: bool = False, n_aux: int = 0) -> None:
        """Raise an error unless all shapes and types are valid.

        Args:
            batch: number of sequences in the input.
            n_input: length of the input's last axis.
            integer: whether all arithmetic is in integers.
            n_aux: length of the second input's last axis.

        Raises:
            OperatorError: a tensor does not fit.
        """
        matrices, vectors = self._weight_types(integer)
        require_one_scale(*self.weights())
        require_rank(self.input_weights[-1], 2)
        if len(self.recurrent_weights[-1].shape) not in (1, 2):
            require_rank(self.recurrent_weights[-1], 2)
        for tensor in self.input_weights:
            _require(tensor, (self.n_cell, n_input), matrices)
        for tensor in self.aux_weights:
            _require(tensor, (self.n_cell, n_aux), matrices)
        for tensor in self.recurrent_weights:
            if len(tensor.shape) == 1:
                _require(tensor, (self.n_cell,), TensorType.FLOAT32)
            else:
                _require(tensor, (self.n_cell, self.n_output), matrices)
        for tensor in self.peephole:
            _require(tensor, (self.n_cell,), TensorType.INT16 if integer else matrices)
        for tensor in self.layer_norm:
            _require(tensor, (self.n_cell,), TensorType.INT16 if integer else TensorType.FLOAT32)
        for tensor in self.biases:
            _require(tensor, (self.n_cell,), vectors)
        self._check_projection(matrices, vectors)
        _require_elements(self.output_state, batch * self.n_output)
        _require_elements(self.cell_state, batch * self.n_cell)
        types = (TensorType.INT8, TensorType.INT16) if integer else (TensorType.FLOAT32,) * 2
        for tensor, type_ in zip(self.states, types, strict=True):
            require_type(tensor, {type_})

    def _weight_types(self, integer: bool) -> tuple[TensorType, TensorType]:
        """Return the type of the weight matrices, taken from the last gate, and of the biases.

        *integer* says whether all arithmetic is in integers.
        """
        matrices = self.input_weights[-1].type
        allowed = [TensorType.INT8] if integer else [TensorType.FLOAT32, TensorType.INT8]
        require_type(self.input_weights[-1], {*allowed, TensorType.UINT8})
        return matrices, TensorType.INT32 if integer else TensorType.FLOAT32

    def _check_projection(self, matrices: TensorType, bias_type: TensorType) -> None:
        if self.projection_weights is not None:
            _require(self.projection_weights, (self.n_output, self.n_cell), matrices)
        elif self.projection_bias is not None:
            raise OperatorError("projection bias without projection weights")
        elif self.n_output != self.n_cell:
            raise OperatorError(
                f"output has {self.n_output} elements and the cell {self.n_cell}, "
                "expected the same without projection"
            )
        if self.projection_bias is not None:
            _require(self.projection_bias, (self.n_output,), bias_type)


def lstm_tensors(
    context: OpContext,
    node: Node,
    *,
    first: int = LstmInput.INPUT_TO_INPUT_WEIGHTS,
    states: int = LstmInput.OUTPUT_STATE,
    layer_norm: int | None = None,
    aux_weights: int | None = None,
) -> LstmTensors:
    """Return the tensors of one direction of an LSTM node, grouped by role.

    Args:
        context: context of the subgraph.
        node: node of any LSTM operator, except the basic kernel of LSTM.
        first: index of the input with the direction's first weights; the other weights follow in
            the order of LstmInput.
        states: index of the input with the output state; the cell state follows.
        layer_norm: index of the first of four inputs with normalisation coefficients, or None.
        aux_weights: index of the first of four inputs with weights for a second input, or None.

    Raises:
        OperatorError: a required tensor is absent, or only a part of a group is present.
    """
    at = first - LstmInput.INPUT_TO_INPUT_WEIGHTS
    input_weights = _gates(context, node, at + LstmInput.INPUT_TO_INPUT_WEIGHTS)
    gates = len(input_weights)
    return LstmTensors(
        input_weights,
        _gates(context, node, at + LstmInput.RECURRENT_TO_INPUT_WEIGHTS, gates),
        _peephole(context, node, at + LstmInput.CELL_TO_INPUT_WEIGHTS, gates),
        _gates(context, node, at + LstmInput.INPUT_GATE_BIAS, gates),
        optional_input(context, node, at + LstmInput.PROJECTION_WEIGHTS),
        optional_input(context, node, at + LstmInput.PROJECTION_BIAS),
        variable_input(context, node, states),
        variable_input(context, node, states + 1),
        () if layer_norm is None else _gates(context, node, layer_norm, gates),
        () if aux_weights is None else _gates(context, node, aux_weights, gates),
    )


def _gates(
    context: OpContext, node: Node, first: int, expected: int | None = None
) -> tuple[Tensor, ...]:
    """Return inputs *first* to *first* + 3, or only the last three if input *first* is absent.

    *expected* is their required number, 3 or 4; None allows both.
    """
    coupled = optional_input(context, node, first)
    found: tuple[Tensor, ...] = () if coupled is None else (coupled,)
    found += tuple(input_tensor(context, node, first + k) for k in (1, 2, 3))
    if expected not in (None, len(found)):
        raise OperatorError(
            f"inputs {first} to {first + 3} hold {len(found)} tensors, expected {expected}: "
            "either everything has an input gate or nothing has"
        )
    return found


def _peephole(context: OpContext, node: Node, first: int, gates: int) -> tuple[Tensor, ...]:
    """Return the peephole weights of three gates, or of two without an input gate.

    Input *first* has the weights of the input gate, and *gates* is the number of gates.
    """
    wanted = range(first, first + 3) if gates == 4 else range(first + 1, first + 3)
    found = [optional_input(context, node, i) for i in wanted]
    present = tuple(tensor for tensor in found if tensor is not None)
    if present and len(present) != len(found):
        raise OperatorError(f"{len(present)} peephole weights, expected {len(found)} or none")
    return present


def _require(tensor: Tensor, shape: tuple[int, ...], type_: TensorType) -> None:
    require_shape(tensor, shape)
    require_type(tensor, {type_})


def _require_elements(tensor: Tensor, count: int) -> None:
    if math.prod(tensor.shape) != count:
        raise OperatorError(
            f"state {tensor.name!r} has shape {list(tensor.shape)}, expected {count} elements"
        )
