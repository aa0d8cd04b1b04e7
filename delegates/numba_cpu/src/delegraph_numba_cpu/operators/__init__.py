"""The operators this delegate takes: when, and as which kernel calls.

A file is named by its operator or family, in the schema's words, and registers it for all types:
``conv.py``, ``softmax.py``, ``lstm.py``. Element-wise operators have a file for each type:
``elementwise_f32``, ``elementwise_int8`` (with ``lookup`` and ``pairs``), ``elementwise_int16``,
``elementwise_int32``.
What several operators share is in ``checks``, ``moves``, ``move_checks``, ``chains``, ``rows``,
``products_*`` and ``packing_*``. Fusers are in ``conv_layers``, ``inverted_residual``,
``strips_int8`` and ``elementwise_f32``; ``fusion_order.py``, one folder up, has their order.
"""

from __future__ import annotations

from delegraph_numba_cpu.operators.registry import OPERATORS, Call, Operator

MODULES = {
    "arg_min_max": "ARG_MAX ARG_MIN",
    "batch_matmul": "BATCH_MATMUL",
    "cast": "CAST",
    "comparison": "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL",
    "concatenation": "CONCATENATION",
    "conv": "CONV_2D",
    "depthwise_conv": "DEPTHWISE_CONV_2D",
    "dequantize": "DEQUANTIZE",
    "dynamic_update_slice": "DYNAMIC_UPDATE_SLICE",
    "elementwise_f32": "ABS ADD CEIL COS DIV ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC "
    "MAXIMUM MINIMUM MUL NEG PRELU RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT "
    "SIGN SIN SQRT SQUARE SQUARED_DIFFERENCE SUB TANH",
    "elementwise_int16": "ADD SUB MUL",
    "elementwise_int32": "ADD SUB MUL FLOOR_DIV MAXIMUM MINIMUM",
    "elementwise_int8": "ABS ELU EXP GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC NEG RELU RELU6 "
    "RELU_0_TO_1 RELU_N1_TO_1 TANH ADD SUB MUL DIV MAXIMUM MINIMUM PRELU SQUARED_DIFFERENCE",
    "fill": "FILL ZEROS_LIKE",
    "fully_connected": "FULLY_CONNECTED",
    "gather": "GATHER GATHER_ND",
    "l2_normalization": "L2_NORMALIZATION",
    "log_softmax": "LOG_SOFTMAX",
    "lstm": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM",
    "pack": "PACK UNPACK",
    "pad": "PAD PADV2 MIRROR_PAD",
    "pooling": "AVERAGE_POOL_2D MAX_POOL_2D",
    "products_int16": "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED",
    "quantize": "QUANTIZE",
    "reductions": "SUM MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD",
    "reshape": "RESHAPE SQUEEZE EXPAND_DIMS",
    "resize": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
    "reverse": "REVERSE_V2",
    "select": "SELECT SELECT_V2",
    "slice": "SLICE",
    "softmax": "SOFTMAX",
    "space_batch": "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND",
    "space_depth": "SPACE_TO_DEPTH DEPTH_TO_SPACE",
    "split": "SPLIT SPLIT_V",
    "strided_slice": "STRIDED_SLICE",
    "svdf": "SVDF",
    "tile": "TILE BROADCAST_TO",
    "transpose": "TRANSPOSE",
    "transpose_conv": "TRANSPOSE_CONV",
}
"""Module to the operators that it registers, some of them for one type only."""

OPERATORS.declare(MODULES)

__all__ = ["OPERATORS", "Call", "Operator"]
