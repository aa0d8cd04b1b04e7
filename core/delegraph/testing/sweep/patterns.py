"""Patterns: sequences of operators that converters write and delegates fuse.

A pattern is a line of words. Each word appends one operator, or a few, to a sketch. ``A|B`` is one
of the two words; a word with ``?`` is left out half of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from delegraph.arithmetic import window
from delegraph.schema.enums import ActivationFunctionType, Padding
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases.elementwise import FIXED_OUTPUTS
from delegraph.testing.random_operands import RandomOperands
from delegraph.testing.sweep.sketch import Sketch

IMAGE_TYPES = ("FLOAT32", "FLOAT32", "FLOAT32", "INT8", "INT8", "UINT8", "INT16")

FLOATS = ("FLOAT32",)

SIDES = (1, 2, 3, 5, 7, 9, 14, 17, 30)
"""Heights and widths of images; some kernels use several threads from 14 rows per thread on."""

CHANNELS = (1, 2, 3, 4, 8, 16, 17, 24, 33)

COMPOSITE = 0.1
"""Share of patterns that are the decomposition of a composite operator."""


@dataclass(frozen=True)
class Pattern:
    """Operators that are often fused.

    Attributes:
        words: names in :data:`WORDS`.
        types: types of the first graph input.
        is_image: whether the first graph input is ``[n, h, w, c]``; otherwise it is a stack of
            matrices.
    """

    words: str
    types: tuple[str, ...] = IMAGE_TYPES
    is_image: bool = True


PATTERNS = (
    Pattern("PAD? CONV_2D ACTIVATION? ADD? ACTIVATION?"),
    Pattern("CONV_2D ADD_PADDED ACTIVATION?"),
    Pattern("PAD? DEPTHWISE_CONV_2D ACTIVATION?"),
    Pattern(
        "ACTIVATION? CONV_2D? PAD? CHANNELWISE ACTIVATION? POINTWISE ADD|ADD_PADDED ACTIVATION?"
    ),
    Pattern("POINTWISE ACTIVATION? CHANNELWISE POINTWISE"),
    Pattern("CONV_2D FACTORS ADD ACTIVATION?"),
    Pattern("CONV_2D HALF_CONV_2D ACTIVATION?", FLOATS),
    Pattern("PAD? POOL ACTIVATION? CONV_2D"),
    Pattern("CONV_2D CONCATENATION CONV_2D"),
    Pattern("CONV_2D RESIZE ADD ACTIVATION?"),
    Pattern("CONV_2D MEAN FULLY_CONNECTED ACTIVATION?"),
    Pattern("QUANTIZE CONV_2D ACTIVATION? DEQUANTIZE", FLOATS),
    Pattern("ELEMENT ELEMENT ELEMENT? ELEMENT? ELEMENT? ELEMENT?"),
    Pattern("TRANSPOSE? PRODUCT FACTOR? MASK? SOFTMAX PRODUCT TRANSPOSE?", FLOATS, is_image=False),
    Pattern("PRODUCT MASK|FACTOR RESHAPE? SOFTMAX RESHAPE? PRODUCT", FLOATS, is_image=False),
    Pattern("FULLY_CONNECTED ACTIVATION? ADD? FULLY_CONNECTED SOFTMAX?", is_image=False),
    Pattern("RESHAPE TRANSPOSE RESHAPE? TRANSPOSE? RESHAPE?", is_image=False),
    Pattern("TRANSPOSE? PRODUCT ELEMENT? ELEMENT?", ("FLOAT32", "INT8"), is_image=False),
)
"""The patterns; there is one for each fusion of a delegate."""


def pattern_case(chance: Random) -> tuple[OperatorCase, tuple[str, ...]]:
    """Return a case of a pattern that *chance* chooses, and the names of its operators."""
    pattern = chance.choice(PATTERNS)
    random = RandomOperands(pattern.words, chance.randrange(1 << 30), 1)
    sketch = Sketch(random, random.pick(pattern.types), _first_shape(random, pattern))
    for word in pattern.words.split():
        if not word.endswith("?") or random.chance(0.5):
            WORDS[random.pick(word.rstrip("?").split("|"))](sketch)
    return sketch.case(COMPOSITE)


def _first_shape(random: RandomOperands, pattern: Pattern) -> tuple[int, ...]:
    if pattern.is_image:
        return random.pick((1, 1, 2)), random.pick(SIDES), random.pick(SIDES), _channels(random)
    stack = random.pick(((), (2,), (1, 3), (2, 2)))
    return (*stack, random.number(1, 19), random.number(1, 19))


def _channels(random: RandomOperands) -> int:
    return random.pick(CHANNELS)


def _activation(random: RandomOperands) -> ActivationFunctionType:
    names = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
    return ActivationFunctionType[random.pick(names)]


# -- convolutions ----------------------------------------------------------------------------------


def _pad(sketch: Sketch) -> None:
    pads = sketch.random.rng.integers(0, 3, (4, 2))
    pads[[0, 3]] = 0
    shape = np.add(sketch.shape, pads.sum(1))
    inputs = [sketch.y, sketch.integers(pads)]
    is_second = sketch.type == "FLOAT32" and sketch.random.chance(0.3)
    if is_second:
        inputs.append(constant(np.zeros(1, np.float32)))
    y = sketch.result([int(n) for n in shape], like=sketch.y)
    sketch.add("PADV2" if is_second else "PAD", inputs, y)


def _conv(sketch: Sketch, *, kernel: int = 0, is_half: bool = False) -> None:
    random, channels = sketch.random, _channels(sketch.random)
    size, options, shape = _windows(random, sketch.shape, kernel)
    y = sketch.result((*shape, channels))
    inputs = sketch.shape[3]
    taps = (channels, *size, inputs)
    weight, bias = sketch.weights(taps, 0, inputs * size[0] * size[1], y)
    if is_half:
        half = constant(sketch.random.rng.normal(size=taps).astype(np.float16))
        weight = sketch.aside("DEQUANTIZE", [half], tensor(taps))
    sketch.add("CONV_2D", [sketch.y, weight, bias], y, **options)


def _depthwise(sketch: Sketch, *, multiplier: int = 0) -> None:
    random = sketch.random
    multiplier = multiplier or random.pick((1, 1, 2))
    size, options, shape = _windows(random, sketch.shape, 0)
    channels = sketch.shape[3] * multiplier
    y = sketch.result((*shape, channels))
    weight, bias = sketch.weights((1, *size, channels), 3, size[0] * size[1], y)
    options["depth_multiplier"] = multiplier
    sketch.add("DEPTHWISE_CONV_2D", [sketch.y, weight, bias], y, **options)


def _windows(
    random: RandomOperands, shape: tuple[int, ...], kernel: int
) -> tuple[tuple[int, int], dict[str, Any], tuple[int, int, int]]:
    """Return sizes of pooling or convolution windows, their options, and the output's shape.

    *kernel* is the height and width of the windows; with 0, size, stride and dilation are drawn at
    random.
    """
    n, h, w, _ = shape
    size = (kernel, kernel) if kernel else random.pick(((1, 1), (3, 3), (3, 3), (5, 5), (2, 3)))
    stride = 1 if kernel else random.pick((1, 1, 2))
    dilation = 2 if not kernel and random.chance(0.1) else 1
    fits = all((k - 1) * dilation < side for k, side in zip(size, (h, w), strict=True))
    padding = random.pick((Padding.SAME, Padding.VALID)) if fits else Padding.SAME
    down, across = (
        window(padding, side, k, stride, dilation) for side, k in zip((h, w), size, strict=True)
    )
    options = {
        "padding": padding,
        "stride_h": stride,
        "stride_w": stride,
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
        "fused_activation_function": _activation(random),
    }
    return size, options, (n, down.output, across.output)


def _pool(sketch: Sketch) -> None:
    size, options, shape = _windows(sketch.random, sketch.shape, 0)
    down, across = (
        window(options["padding"], side, k, options["stride_h"])
        for side, k in zip(sketch.shape[1:3], size, strict=True)
    )
    options = {name: options[name] for name in options if not name.startswith("dilation")}
    y = sketch.result((shape[0], down.output, across.output, sketch.shape[3]), like=sketch.y)
    op = sketch.random.pick(("AVERAGE_POOL_2D", "MAX_POOL_2D"))
    sketch.add(op, [sketch.y], y, filter_height=size[0], filter_width=size[1], **options)


def _mean(sketch: Sketch) -> None:
    y = sketch.result((sketch.shape[0], sketch.shape[3]))
    sketch.add("MEAN", [sketch.y, sketch.integers([1, 2])], y, keep_dims=False)


def _fully_connected(sketch: Sketch) -> None:
    *rows, depth = sketch.shape
    units = _channels(sketch.random)
    y = sketch.result((*rows, units))
    inputs = [sketch.y, *sketch.weights((units, depth), 0, depth, y)]
    activation = _activation(sketch.random)
    sketch.add(
        "FULLY_CONNECTED", inputs, y, fused_activation_function=activation, keep_num_dims=True
    )


def _resize(sketch: Sketch) -> None:
    n, h, w, c = sketch.shape
    size = (2 * h, 2 * w)
    op = sketch.random.pick(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    y = sketch.result((n, *size, c), like=sketch.y)
    sketch.add(op, [sketch.y, sketch.integers(size)], y, half_pixel_centers=True)


def _concatenation(sketch: Sketch) -> None:
    other = _other(sketch)
    *shape, c = sketch.shape
    inputs = [sketch.y, _like(sketch, other)]
    y = sketch.result((*shape, c + other.shape[-1]), like=sketch.y)
    sketch.add("CONCATENATION", inputs, y, axis=3)


def _quantize(sketch: Sketch) -> None:
    type = sketch.random.pick(("INT8", "UINT8"))
    y = tensor(sketch.shape, type, **sketch.random.quantization(type))
    sketch.add("QUANTIZE", [sketch.y], y)


# -- element by element ----------------------------------------------------------------------------


def _other(sketch: Sketch) -> TensorDef:
    """Return a second operand: an earlier result with the last result's shape, or a graph input."""
    alike = [t for t in sketch.made[:-1] if t.shape == sketch.shape and t.type == sketch.y.type]
    if alike and sketch.random.chance(0.6):
        return sketch.random.pick(alike)
    return sketch.fed(sketch.shape)


def _like(sketch: Sketch, other: TensorDef) -> TensorDef:
    """Return *other* if it has the last result's quantization, else a new graph input with it."""
    if other.quantization is None or other.quantization is sketch.y.quantization:
        return other
    return sketch.fed(other.shape, sketch.y)


def _pair(sketch: Sketch, op: str, other: TensorDef) -> None:
    inputs = [sketch.y, other]
    if sketch.random.chance(0.3) and op in ("ADD", "MUL"):
        inputs.reverse()
    is_same = op in ("MAXIMUM", "MINIMUM")
    if is_same:
        inputs[1] = _like(sketch, other)
    y = sketch.result(sketch.shape, like=sketch.y if is_same else None)
    options = {}
    if op in ("ADD", "SUB", "MUL", "DIV"):
        options["fused_activation_function"] = _activation(sketch.random)
    sketch.add(op, inputs, y, **options)


def _add_padded(sketch: Sketch) -> None:
    """Add a graph input that has fewer channels and is padded with zeros."""
    *image, c = sketch.shape
    narrow = sketch.fed((*image, sketch.random.number(1, c)))
    pads = np.zeros((4, 2), np.int32)
    pads[3, 1] = c - narrow.shape[3]
    y = sketch.result(sketch.shape, like=narrow)
    _pair(sketch, "ADD", sketch.aside("PAD", [narrow, sketch.integers(pads)], y))


def _factor(sketch: Sketch) -> None:
    if sketch.random.chance(0.4):
        half = constant(np.float32(sketch.random.pick((2.0, 8.0, 0.5, 3.0))))
        sketch.add("DIV", [sketch.y, half], sketch.result(sketch.shape))
        return
    sketch.add("MUL", [sketch.y, sketch.constant(())], sketch.result(sketch.shape))


def _mask(sketch: Sketch) -> None:
    shape = tuple(1 if sketch.random.chance(0.3) else n for n in sketch.shape)
    y = sketch.result(sketch.shape)
    sketch.add("ADD", [sketch.y, sketch.fed(shape)], y)


CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
BYTE_ACTIVATIONS = ("RELU", "RELU6", "PRELU", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC")
ACTIVATIONS = {
    "FLOAT32": (*BYTE_ACTIVATIONS, "RELU_N1_TO_1", "RELU_0_TO_1", "PRELU", "PRELU"),
    "INT16": ("RELU", "LEAKY_RELU", "LOGISTIC"),
}


def _activate(sketch: Sketch) -> None:
    _function(sketch, sketch.random.pick(ACTIVATIONS.get(sketch.type, BYTE_ACTIVATIONS)))


def _function(sketch: Sketch, op: str) -> None:
    fixed = FIXED_OUTPUTS.get((op, sketch.type))
    y = sketch.result(sketch.shape)
    if fixed is not None:
        y = tensor(sketch.shape, sketch.type, **fixed)
    options: dict[str, Any] = {"alpha": 0.125} if op == "LEAKY_RELU" else {}
    inputs = [sketch.y]
    if op == "PRELU":
        inputs.append(sketch.constant((*(1,) * (len(sketch.shape) - 2), *sketch.shape[-1:])))
    sketch.add(op, inputs, y, **options)


FLOAT_FUNCTIONS = (
    "LOGISTIC", "TANH", "ELU", "EXP", "SQRT", "SQUARE", "ABS", "NEG", "SIN", "COS", "GELU",
    "LEAKY_RELU", "HARD_SWISH", *CLAMPS,
)  # fmt: skip
INTEGER_FUNCTIONS = ("LOGISTIC", "TANH", "RELU", "LEAKY_RELU")
PAIRS = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "ADD", "MUL")
FLOAT_PAIRS = (*PAIRS, "SQUARED_DIFFERENCE", "DIV")


def _element(sketch: Sketch) -> None:
    random, is_float = sketch.random, sketch.type == "FLOAT32"
    if random.chance(0.5):
        _function(sketch, random.pick(FLOAT_FUNCTIONS if is_float else INTEGER_FUNCTIONS))
        return
    op = random.pick(FLOAT_PAIRS if is_float else PAIRS)
    shape = random.pick((sketch.shape[-1:], (), None))
    _pair(sketch, op, _other(sketch) if shape is None else sketch.constant(shape))


# -- attention -------------------------------------------------------------------------------------


def _product(sketch: Sketch) -> None:
    random = sketch.random
    *stack, rows, depth = sketch.shape
    columns, is_turned = random.number(1, 19), random.chance(0.4)
    if random.chance(0.3):
        stack = []
    size = (columns, depth) if is_turned else (depth, columns)
    right = _turned(sketch, (*stack, *size)) if random.chance(0.3) else sketch.fed((*stack, *size))
    y = sketch.result((*sketch.shape[:-2], rows, columns))
    sketch.add("BATCH_MATMUL", [sketch.y, right], y, adj_y=is_turned)


def _turned(sketch: Sketch, shape: tuple[int, ...]) -> TensorDef:
    """Return a tensor of *shape* that a TRANSPOSE makes from a new graph input."""
    order = _order(sketch, shape)
    x = sketch.fed([shape[order.index(axis)] for axis in range(len(shape))])
    return sketch.aside("TRANSPOSE", [x, sketch.integers(order)], sketch.result(shape, like=x))


def _order(sketch: Sketch, shape: tuple[int, ...]) -> list[int]:
    """Return the axes of *shape* in random order; often the last axis stays last."""
    count = len(shape) - sketch.random.chance(0.6)
    order = [int(axis) for axis in sketch.random.rng.permutation(count)]
    return [*order, *range(count, len(shape))]


def _softmax(sketch: Sketch) -> None:
    fixed = FIXED_OUTPUTS.get(("LOGISTIC", sketch.type), {})
    y = tensor(sketch.shape, sketch.type, **fixed)
    sketch.add("SOFTMAX", [sketch.y], y, beta=sketch.random.pick((1.0, 1.0, 0.5)))


def _transpose(sketch: Sketch) -> None:
    order = _order(sketch, sketch.shape)
    y = sketch.result([sketch.shape[i] for i in order], like=sketch.y)
    sketch.add("TRANSPOSE", [sketch.y, sketch.integers(order)], y)


def _reshape(sketch: Sketch) -> None:
    """Join the matrices of a stack in one dimension, or split off one of length 1."""
    *stack, rows, columns = sketch.shape
    shape = (int(np.prod(stack)), rows, columns) if len(stack) != 1 else (1, *sketch.shape)
    y = sketch.result(shape, like=sketch.y)
    sketch.add("RESHAPE", [sketch.y, sketch.integers(shape)], y, new_shape=shape)


WORDS: Mapping[str, Callable[[Sketch], None]] = {
    "ACTIVATION": _activate,
    "ADD": lambda sketch: _pair(sketch, "ADD", _other(sketch)),
    "ADD_PADDED": _add_padded,
    "CHANNELWISE": lambda sketch: _depthwise(sketch, multiplier=1),
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEQUANTIZE": lambda sketch: sketch.add("DEQUANTIZE", [sketch.y], tensor(sketch.shape)),
    "ELEMENT": _element,
    "FACTOR": _factor,
    "FACTORS": lambda sketch: _pair(sketch, "MUL", sketch.constant(sketch.shape[-1:])),
    "FULLY_CONNECTED": _fully_connected,
    "HALF_CONV_2D": lambda sketch: _conv(sketch, is_half=True),
    "MASK": _mask,
    "MEAN": _mean,
    "PAD": _pad,
    "POINTWISE": lambda sketch: _conv(sketch, kernel=1),
    "POOL": _pool,
    "PRODUCT": _product,
    "QUANTIZE": _quantize,
    "RESHAPE": _reshape,
    "RESIZE": _resize,
    "SOFTMAX": _softmax,
    "TRANSPOSE": _transpose,
}
"""Mapping from each word of a pattern to the function that appends its operators to a sketch."""
