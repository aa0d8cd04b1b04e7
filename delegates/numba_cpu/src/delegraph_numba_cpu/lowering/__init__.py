"""Lowering: decides which nodes are claimed, and turns them into kernel calls.

Each sub-package has a family of operators. A module has the name of its operator, or of the first
of several that are alike, and registers them for all types: ``convolution/conv.py``,
``moves/slice.py`` (also STRIDED_SLICE and SPLIT), ``recurrent/lstm.py``.
Element-wise operators have a module for each type: ``elementwise_f32``, ``elementwise_int8`` (with
``elementwise_lookup_tables``, ``elementwise_int8_pairs`` and ``elementwise_int8_formulas``),
``elementwise_int16``, ``elementwise_int32``.

A module with the name of a family of kernels (``convolution/conv_int8.py``) writes its calls for
several operators; ``conv_int8_packing`` and the like are parts of it. ``schedule.py`` lowers a
partition: its fusers first, then node by node.
"""

from __future__ import annotations

from delegraph_numba_cpu.lowering.registry import OPERATORS, Call, Operator

MODULES = {
    "rows.arg_min_max": "ARG_MAX ARG_MIN",
    "convolution.batch_matmul": "BATCH_MATMUL",
    "elementwise.cast": "CAST",
    "composites": "STABLEHLO_COMPOSITE",
    "elementwise.comparison": "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL",
    "moves.concatenation": "CONCATENATION PACK UNPACK",
    "convolution.conv": "CONV_2D",
    "convolution.depthwise_conv": "DEPTHWISE_CONV_2D",
    "elementwise.dequantize": "DEQUANTIZE",
    "moves.dynamic_update_slice": "DYNAMIC_UPDATE_SLICE",
    "elementwise.elementwise_f32": "ABS ADD CEIL COS DIV ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU "
    "LOG LOGISTIC MAXIMUM MINIMUM MUL NEG PRELU RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT "
    "SIGN SIN SQRT SQUARE SQUARED_DIFFERENCE SUB TANH",
    "elementwise.elementwise_int16": "ADD SUB MUL",
    "elementwise.elementwise_int32": "ADD SUB MUL FLOOR_DIV MAXIMUM MINIMUM",
    "elementwise.elementwise_int8": "ABS ELU EXP GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC NEG RELU "
    "RELU6 RELU_0_TO_1 RELU_N1_TO_1 TANH ADD SUB MUL DIV MAXIMUM MINIMUM PRELU SQUARED_DIFFERENCE",
    "moves.embedding_lookup": "EMBEDDING_LOOKUP",
    "convolution.fully_connected": "FULLY_CONNECTED",
    "moves.gather": "GATHER GATHER_ND",
    "rows.l2_normalization": "L2_NORMALIZATION",
    "recurrent.lstm": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM",
    "moves.pad": "PAD PADV2 MIRROR_PAD",
    "images.pooling": "AVERAGE_POOL_2D MAX_POOL_2D",
    "convolution.conv_int16": "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED",
    "elementwise.quantize": "QUANTIZE",
    "rows.reductions": "SUM MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD",
    "moves.reshape": "RESHAPE SQUEEZE EXPAND_DIMS",
    "images.resize": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
    "elementwise.select": "SELECT SELECT_V2",
    "moves.slice": "SLICE STRIDED_SLICE SPLIT SPLIT_V",
    "rows.softmax": "SOFTMAX LOG_SOFTMAX",
    "moves.space_batch": "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND SPACE_TO_DEPTH DEPTH_TO_SPACE",
    "recurrent.svdf": "SVDF",
    "moves.tile": "TILE BROADCAST_TO FILL ZEROS_LIKE",
    "moves.transpose": "TRANSPOSE REVERSE_V2",
    "convolution.transpose_conv": "TRANSPOSE_CONV",
}
"""Mapping from a module to the operators that it registers, some of them for one type only."""

OPERATORS.declare(__name__, MODULES)

__all__ = ["OPERATORS", "Call", "Operator"]
