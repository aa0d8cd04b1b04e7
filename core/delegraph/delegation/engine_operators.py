"""Operators of a partition in the simple form that most engines compute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from delegraph.arithmetic.padding import Window, convolution_windows, pool_windows
from delegraph.delegation.node_features import ELEMENT_WISE
from delegraph.delegation.node_traits import fused_activation
from delegraph.graph.dtypes import bits_of
from delegraph.graph.model import TensorSpec
from delegraph.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType
from delegraph.schema.options import OPTIONS_OF_OPERATOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from delegraph.graph.model import OperatorSpec, SubgraphSpec

Layout = Literal["NHWC", "NCHW"]
"""Order of the axes of images: NHWC as in TFLite, or channels before height and width."""

WEIGHTS = {"CONV_2D": (0, 3, 1, 2), "DEPTHWISE_CONV_2D": (3, 0, 1, 2)}
"""For each convolution: axes of its weights that are output, input, height and width."""

POOLS = frozenset({"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"})

_FUSING = frozenset({
    *WEIGHTS, *POOLS, "ADD", "CONCATENATION", "CONV_3D", "CONV_3D_TRANSPOSE", "DIV",
    "FULLY_CONNECTED", "MUL", "SUB", "TRANSPOSE_CONV",
})  # fmt: skip
"""Operators whose fused activation can become a separate operator after them."""

_ACTIVATIONS = frozenset({"RELU", "RELU6", "RELU_N1_TO_1", "TANH"})
"""Fused activations with the same name as a builtin operator."""

_UNARY = frozenset({
    "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG",
    "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN",
    "SIN", "SQRT", "SQUARE", "TANH",
})  # fmt: skip
_IN_ANY_LAYOUT = (_UNARY | ELEMENT_WISE) - {"PRELU", "SELECT"}
"""Operators that compute element by element, if all their inputs have one shape."""

_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)

ABSENT = TensorSpec(-1, "", TensorType.FLOAT32, (), ())
"""Stands for an absent optional input that other inputs follow."""


class EngineOperator(NamedTuple):
    """One operator of a partition, with its tensors.

    Attributes:
        name: name of the operator, such as ``CONV_2D``; for a custom operator its custom code.
        inputs: its inputs, without absent inputs at the end. An absent input before others has the
            index -1 and an empty name. Names are unique, and ``inputs[1].array()`` returns the
            values of a constant. Tensors that the partition's file lacks have the index -1, too.
        outputs: its outputs.
        options: typed options; the schema's defaults if the file has none; None for operators
            without options.
        windows: window of a convolution or pool along height, then along width, with the numbers of
            zeros before and after the input; empty for other operators.
        groups: number of groups of a convolution: the input's channels divided by the input
            channels of the weights; 1 for other operators.
        custom_options: raw bytes of a custom operator, ``[bytes], uint8``; None if absent.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    options: Any = None
    windows: tuple[Window, ...] = ()
    groups: int = 1
    custom_options: NDArray[np.uint8] | None = None


def engine_operators(graph: SubgraphSpec, layout: Layout = "NHWC") -> list[EngineOperator]:
    """Return the operators of a partition in simple form, in the order of execution.

    Args:
        graph: the partition, whose tensors have fixed shapes and unique names.
        layout: layout in which convolutions and pools compute; see ``PartitionModel.operators``.
    """
    simple = _SimpleOperators(graph, layout == "NCHW")
    for operator in graph.operators:
        simple.translate(operator)
    for index in graph.outputs:
        simple.read(graph.tensors[index])
    return simple.made


class _SimpleOperators:
    """Collects the operators of a partition in simple form.

    Attributes:
        made: the operators collected so far.
    """

    def __init__(self, graph: SubgraphSpec, channels_first: bool) -> None:
        self.made: list[EngineOperator] = []
        self._tensors, self._channels_first = graph.tensors, channels_first
        self._names = {tensor.name for tensor in graph.tensors}
        self._planes: dict[str, TensorSpec] = {}  # the same values in NCHW, by name
        self._waiting: set[str] = set()  # names of tensors that exist in NCHW only

    def translate(self, operator: OperatorSpec) -> None:
        """Add the engine's form of *operator*; its fused activation becomes a separate operator."""
        indices = list(operator.inputs)
        while indices and indices[-1] < 0:
            indices.pop()
        inputs = tuple(ABSENT if i < 0 else self._tensors[i] for i in indices)
        outputs = tuple(self._tensors[i] for i in operator.outputs)
        options: Any = operator.options
        if options is None and operator.builtin_code in OPTIONS_OF_OPERATOR:
            options = _options(operator.builtin_code)
        plain = EngineOperator(operator.name, inputs, outputs, options)
        activation = fused_activation(options)
        if operator.name not in _FUSING or activation not in _ACTIVATIONS:
            self._add_simple(plain._replace(custom_options=operator.custom_options))
            return
        none = options.replace(fused_activation_function=ActivationFunctionType.NONE)
        before = self._like(outputs[0], "before_activation")
        self._add_simple(plain._replace(outputs=(before,), options=none))
        self._add_placed(EngineOperator(activation, (before,), outputs))

    def _add_simple(self, operator: EngineOperator) -> None:
        if operator.name == "FULLY_CONNECTED":
            self._add_product(operator)
        elif operator.name == "SOFTMAX":
            self._add_softmax(operator)
        elif operator.name == "RESHAPE":
            self._reshape(operator.inputs[0], operator.outputs[0])
        else:
            self._add_placed(operator)

    def _add_product(self, operator: EngineOperator) -> None:
        """Add FULLY_CONNECTED as a product of two matrices, with RESHAPE around it if needed.

        If the weights are shuffled or have no elements, the operator is added unchanged.
        """
        x, weights, *_ = operator.inputs
        (count, depth), result = weights.shape, operator.outputs[0]
        is_usual = not operator.options.weights_format and len(operator.outputs) == 1
        if not (is_usual and count and depth):
            self._add(operator)
            return
        rows = math.prod(x.shape) // depth
        matrix, product = self._as_shape(x, (rows, depth)), self._as_shape(result, (rows, count))
        if matrix is not x:
            self._reshape(x, matrix)
        self._add(operator._replace(inputs=(matrix, *operator.inputs[1:]), outputs=(product,)))
        if product is not result:
            self._reshape(product, result)

    def _add_softmax(self, operator: EngineOperator) -> None:
        """Add SOFTMAX; for floats, a factor other than 1 becomes a MUL before it."""
        (x,), options = operator.inputs, operator.options
        if options.beta != 1 and x.type == TensorType.FLOAT32:
            beta = self._constant("beta", np.array(options.beta, np.float32))
            scaled, product = self._like(x, "times_beta"), _options(BuiltinOperator.MUL)
            self._add(EngineOperator("MUL", (x, beta), (scaled,), product))
            operator = operator._replace(inputs=(scaled,), options=options.replace(beta=1.0))
        self._add(operator)

    def _add_placed(self, operator: EngineOperator) -> None:
        """Add an operator in the layout in which it computes."""
        if operator.name in WEIGHTS or operator.name in POOLS:
            self._add_windowed(operator)
        elif operator.name in _IN_ANY_LAYOUT and self._has_planes(operator):
            planes = tuple(self._planes[tensor.name] for tensor in operator.inputs)
            self._add_planes(operator, planes)
        else:
            self._add(operator)

    def _add_windowed(self, operator: EngineOperator) -> None:
        """Add a convolution or a pool with its windows."""
        x, options, rest = operator.inputs[0], operator.options, operator.inputs[1:]
        groups = 1
        if operator.name in POOLS:
            windows = pool_windows(options, x.shape, (options.filter_height, options.filter_width))
        else:
            weights, axes = rest[0], WEIGHTS[operator.name]
            windows = convolution_windows(options, x.shape, weights.shape[1:3])
            groups = x.shape[3] // weights.shape[axes[1]] if weights.shape[axes[1]] else 1
            if self._channels_first:
                rest = (self._transposed(weights, axes, "planes"), *rest[1:])
        operator = operator._replace(inputs=(x, *rest), windows=windows, groups=groups)
        if self._channels_first:
            self._add_planes(operator, (self._plane(x), *rest))
        else:
            self._add(operator)

    def _has_planes(self, operator: EngineOperator) -> bool:
        """Whether all inputs of *operator* exist in NCHW, and none is broadcast."""
        shape = operator.outputs[0].shape
        return all(t.name in self._planes and t.shape == shape for t in operator.inputs)

    def _plane(self, tensor: TensorSpec) -> TensorSpec:
        if tensor.name not in self._planes:
            self._planes[tensor.name] = self._transposed(tensor, _TO_NCHW, "planes")
        return self._planes[tensor.name]

    def _add_planes(self, operator: EngineOperator, inputs: tuple[TensorSpec, ...]) -> None:
        """Add an operator that reads *inputs* and computes its result in NCHW."""
        (result,) = operator.outputs
        made = self._planes[result.name] = self._moved(result, _TO_NCHW, "planes")
        self._waiting.add(result.name)
        self.made.append(operator._replace(inputs=inputs, outputs=(made,)))

    def read(self, tensor: TensorSpec) -> None:
        """Make sure that a tensor exists in TFLite's layout."""
        if tensor.name in self._waiting:
            self._waiting.remove(tensor.name)
            self._transpose(self._planes[tensor.name], _TO_NHWC, tensor)

    def _add(self, operator: EngineOperator) -> None:
        for tensor in operator.inputs:
            self.read(tensor)
        self.made.append(operator)

    def _reshape(self, x: TensorSpec, y: TensorSpec) -> None:
        shape = self._constant("shape", np.array(y.shape, np.int32))
        self._add(EngineOperator("RESHAPE", (x, shape), (y,), _options(BuiltinOperator.RESHAPE)))

    def _transpose(self, x: TensorSpec, axes: Sequence[int], y: TensorSpec) -> None:
        order = self._constant("perm", np.array(axes, np.int32))
        options = _options(BuiltinOperator.TRANSPOSE)
        self.made.append(EngineOperator("TRANSPOSE", (x, order), (y,), options))

    def _transposed(self, tensor: TensorSpec, axes: Sequence[int], suffix: str) -> TensorSpec:
        """Return *tensor* with its axes in the order *axes*; *suffix* makes its name.

        A constant is transposed here. For other tensors, and for constants of packed integers, a
        TRANSPOSE is added.
        """
        moved = self._moved(tensor, axes, suffix)
        if tensor.data is not None and bits_of(tensor.type) >= 8:
            return moved._replace(data=_stored(tensor.array().transpose(axes)), sparsity=None)
        self.read(tensor)
        self._transpose(tensor, axes, moved)
        return moved

    def _moved(self, tensor: TensorSpec, axes: Sequence[int], suffix: str) -> TensorSpec:
        """Return a new tensor, without a value: *tensor* with its axes in the order *axes*.

        *suffix* is added to the name.
        """
        shape = tuple(tensor.shape[axis] for axis in axes)
        found = self._like(tensor, suffix)._replace(shape=shape, shape_signature=shape)
        per_channel = tensor.quantization
        if per_channel is None or len(per_channel.scales) < 2:
            return found
        axis = list(axes).index(per_channel.quantized_dimension)
        return found._replace(quantization=per_channel._replace(quantized_dimension=axis))

    def _as_shape(self, tensor: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
        """Return *tensor* if it has this shape, else a new tensor of this shape."""
        if tensor.shape == shape:
            return tensor
        return self._like(tensor, "matrix")._replace(shape=shape, shape_signature=shape)

    def _like(self, tensor: TensorSpec, suffix: str) -> TensorSpec:
        """Return a new tensor, without a value, with the type, shape and quantization of *tensor*.

        Its name is that of *tensor* with *suffix*.
        """
        name = self._unique(f"{tensor.name}/{suffix}")
        return TensorSpec(
            -1, name, tensor.type, tensor.shape, tensor.shape, quantization=tensor.quantization
        )

    def _constant(self, name: str, values: NDArray[Any]) -> TensorSpec:
        kind, shape = TensorType[values.dtype.name.upper()], values.shape
        return TensorSpec(-1, self._unique(name), kind, shape, shape, _stored(values))

    def _unique(self, name: str) -> str:
        unique, number = name, 0
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        return unique


def _options(operator: BuiltinOperator) -> Any:
    """Options of a builtin operator with the schema's defaults."""
    return OPTIONS_OF_OPERATOR[operator]()


def _stored(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
