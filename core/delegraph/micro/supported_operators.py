"""Operators and element types that TensorFlow Lite Micro's reference kernels take.

A node that this module does not name may still be refused: for its rank, its options, or one of the
types that only some operators take.

Source:
    tflite-micro/micro/micro_mutable_op_resolver.h and the Prepare and Eval functions of
    micro/kernels/; compared with the wheel `tflite-micro`.
"""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.graph.model import Model, OperatorSpec, TensorSpec
from delegraph.schema.enums import TensorType

_OPERATORS = """
    ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND
    BROADCAST_ARGS BROADCAST_TO CALL_ONCE CAST CEIL CONCATENATION CONV_2D COS CUMSUM
    DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP
    EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND
    GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL
    LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM
    MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD PADV2 PRELU QUANTIZE READ_VARIABLE REDUCE_ALL
    REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2
    ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V
    SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE
    TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK VAR_HANDLE WHILE ZEROS_LIKE
    CIRCULAR_BUFFER TFLite_Detection_PostProcess ethos-u
    SignalDelay SignalEnergy SignalFftAutoScale SignalFilterBank SignalFilterBankLog
    SignalFilterBankSpectralSubtraction SignalFilterBankSquareRoot SignalFramer SignalIrfft
    SignalOverlapAdd SignalPCAN SignalRfft SignalStacker SignalWindow
"""

_TYPES = frozenset(
    TensorType[name]
    for name in ("FLOAT32", "INT8", "INT16", "INT32", "INT64", "BOOL", "INT4", "RESOURCE")
)
"""Element types that some kernels compute with."""

_MOVED = frozenset({TensorType.FLOAT16, TensorType.UINT8, TensorType.UINT32, TensorType.UINT64})
_BYTES = frozenset({TensorType.UINT8})
_FLOATS = frozenset({TensorType.FLOAT32})
_FLOATS_AND_BYTES = frozenset({TensorType.FLOAT32, TensorType.INT8})
_FURTHER = {
    **dict.fromkeys(("RESHAPE", "SQUEEZE"), _MOVED),
    **dict.fromkeys(("DEQUANTIZE", "QUANTIZE", "REVERSE_V2", "SHAPE"), _BYTES),
    "CAST": frozenset({TensorType.UINT32}),
}
"""Types that an operator takes besides: it moves elements, or converts them."""

_ONLY = {
    **dict.fromkeys(("EXP", "FLOOR_DIV", "FLOOR_MOD", "LOG", "NEG", "SQRT"), _FLOATS),
    **dict.fromkeys(("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"), _FLOATS_AND_BYTES),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "MIRROR_PAD"), _FLOATS_AND_BYTES),
}
"""Types of the first input, of operators that take few."""

_WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SVDF"})
"""Operators whose weights are float32 where their input is: they compute nothing hybrid."""


def unsupported_operators(model: Model) -> tuple[str, ...]:
    """Sorted names of a model's operators that TFLM cannot run, each once.

    If TFLM has an operator, but not for the types in the model, the types of its first two inputs
    follow the name: ``DEQUANTIZE of FLOAT16``.
    """
    found, known = set(), set(_OPERATORS.split())
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if operator.name not in known:
                found.add(operator.name)
            elif not _takes_types(operator, subgraph.tensors):
                found.add(f"{operator.name} of {_types(operator, subgraph.tensors)}")
    return tuple(sorted(found))


def _takes_types(operator: OperatorSpec, tensors: Sequence[TensorSpec]) -> bool:
    """Whether TFLM's kernel takes the element types of a node, whose operator TFLM has.

    *tensors* are all tensors of the node's subgraph.
    """
    name = operator.name
    types = [tensors[i].type for i in (*operator.inputs, *operator.outputs) if i >= 0]
    if name.startswith("Signal") or name == "ethos-u" or not types:
        return True
    if name == "BATCH_MATMUL" and types[0] is not types[1]:
        return False
    if name in _WEIGHTED and types[0] is TensorType.FLOAT32 is not types[1]:
        return False
    return types[0] in _ONLY.get(name, types) and (_TYPES | _FURTHER.get(name, set())).issuperset(
        types
    )


def _types(operator: OperatorSpec, tensors: Sequence[TensorSpec]) -> str:
    """Names of the types of the first two inputs of *operator*, each once, joined by "and"."""
    first = [tensors[i].type.name for i in operator.inputs[:2] if i >= 0]
    return " and ".join(dict.fromkeys(first))
