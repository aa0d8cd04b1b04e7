"""Cases that TFLM does otherwise, by the names of their entries in docs/differences.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from flatbuffers import flexbuffers

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import AddOptions, UnidirectionalSequenceLSTMOptions, VarHandleOptions
from delegraph.testing import constant, one_op_model, subgraphs_model, tensor
from micro.wheel.goldens import Step

Case = tuple[str, bytes, tuple[Step, ...]]


def differences() -> Iterator[Case]:
    """Yield a case of each entry."""
    numbers = np.arange(-3, 3, dtype=np.int32)
    relu = AddOptions(fused_activation_function=ActivationFunctionType.RELU)
    six = [tensor((6,), "INT32") for _ in range(2)]
    yield (
        "tflm-add-of-int32-with-activation",
        one_op_model("ADD", six, [tensor((6,), "INT32")], relu),
        ((numbers, numbers),),
    )
    scales = {"scale": [1.0, 0.5], "zero_point": [0, 0], "axis": 0}
    yield (
        "tflm-dequantize-by-channel",
        one_op_model("DEQUANTIZE", [tensor((2, 2), "INT8", **scales)], [tensor((2, 2))], version=5),
        ((np.full((2, 2), 4, np.int8),),),
    )
    table = constant(np.full((2, 2), 4, np.int8), **scales)
    yield (
        "tflm-embedding-lookup-by-row",
        one_op_model("EMBEDDING_LOOKUP", [tensor((2,), "INT32"), table], [tensor((2, 2))]),
        ((np.array([0, 1], np.int32),),),
    )
    quantized = {"scale": 0.5, "zero_point": 9}
    pads = [constant(np.array(x, np.int32)) for x in ([2, 2], [[1, 1], [1, 1]])]
    image, tiles = (
        tensor((1, 2, 2, 1), "INT8", **quantized),
        tensor((4, 2, 2, 1), "INT8", **quantized),
    )
    yield (
        "tflm-space-to-batch-padding",
        one_op_model("SPACE_TO_BATCH_ND", [image, *pads], [tiles]),
        ((np.zeros((1, 2, 2, 1), np.int8),),),
    )
    yield "tflm-hybrid-lstm", _hybrid_lstm(), ((np.ones((1, 2, 2), np.float32),),)
    for model, step in _types():
        yield "tflm-types-of-its-own", model, (step,)
    options = bytes(flexbuffers.Dumps({"T": 7, "fft_length": 14}))
    yield (
        "tflm-transform-of-other-lengths",
        one_op_model("SignalRfft", [tensor((14,), "INT16")], [tensor((16,), "INT16")],
                     custom_options=options),
        ((np.zeros(14, np.int16),),),
    )  # fmt: skip
    yield "tflm-variable-nobody-assigns", _unassigned(), ((np.ones(3, np.float32),),)


def _unassigned() -> bytes:
    """Return a model that reads a variable nobody assigns, into memory that was in use before."""
    nodes = [
        ("NEG", "x", "a"),
        ("NEG", "a", "b"),
        ("NEG", "b", "c"),
        ("VAR_HANDLE", "", "h", VarHandleOptions(container="", shared_name="v")),
        ("READ_VARIABLE", "h", "old"),
        ("ADD", "old c", "y", AddOptions()),
    ]
    floats = {name: tensor((3,)) for name in ("x", "a", "b", "c", "old", "y")}
    return subgraphs_model([(nodes, "x", "y", {"h": tensor((), "RESOURCE"), **floats})])


def _types() -> Iterator[tuple[bytes, Step]]:
    """Operators of types that LiteRT does not have."""
    small = tensor((2,), "INT8", scale=0.5)
    x = np.array([5, -3])
    eight, sixteen = x.astype(np.int8), x.astype(np.int16)
    axis = constant(np.array([0], np.int32))
    yield (one_op_model("CUMSUM", [small, axis], [tensor((2,), "INT8", scale=0.5)]), (eight,))
    wide = [tensor((2,), "INT16", scale=0.5) for _ in range(3)]
    yield (one_op_model("SQUARED_DIFFERENCE", wide[:2], wide[2:]), (sixteen, 2 * sixteen))
    large = tensor((2,), "INT32", scale=0.25)
    yield one_op_model("QUANTIZE", [small], [large]), (eight,)
    scales = [0.5, 0.25, 0.125]
    uneven = [tensor((2,), "INT16", scale=scale) for scale in scales]
    yield (one_op_model("ADD", uneven[:2], uneven[2:], AddOptions()), (sixteen, sixteen))


def _hybrid_lstm() -> bytes:
    weights = [constant(np.full((2, 2), 64, np.int8), scale=0.01) for _ in range(8)]
    biases = [constant(np.zeros(2, np.float32)) for _ in range(4)]
    states = [tensor((1, 2), is_variable=True) for _ in range(2)]
    x, y = tensor((1, 2, 2)), tensor((1, 2, 2))
    options = UnidirectionalSequenceLSTMOptions(
        fused_activation_function=ActivationFunctionType.TANH
    )
    inputs = [x, *weights, *[None] * 3, *biases, *[None] * 2, *states, *[None] * 4]
    return one_op_model("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], options, version=2)
