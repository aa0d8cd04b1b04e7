"""Table of the kernel modules of each operator, imported when a model first needs them.

Importing this module declares all operators in the op table.
"""

from delegraph.operators.op_table import OP_TABLE

KERNELS = {
    "arg_min_max": "ARG_MAX:3 ARG_MIN:3",
    "batch_matmul": "BATCH_MATMUL:4",
    "broadcast_to": "BROADCAST_TO:2-4 BROADCAST_ARGS",
    "cast": "CAST:9",
    "concatenation": "CONCATENATION:7",
    "control_flow": "IF STABLEHLO_CASE WHILE STABLEHLO_WHILE CALL_ONCE",
    "conv": "CONV_2D:8",
    "conv3d": "CONV_3D CONV_3D_TRANSPOSE",
    "cumsum": "CUMSUM",
    "custom.audio_spectrogram": "AudioSpectrogram",
    "custom.detection_postprocess": "TFLite_Detection_PostProcess",
    "custom.hadamard_rotation": "aeq.hadamard_rotation",
    "custom.mfcc": "Mfcc",
    "custom.numeric_verify": "NumericVerify",
    "custom.pooling3d": "AvgPool3D MaxPool3D",
    "custom.random": "RandomUniform RandomStandardNormal RandomUniformInt Multinomial",
    "custom.roll": "Roll",
    "custom.table": "Table",
    "densify": "DENSIFY",
    "depthwise_conv": "DEPTHWISE_CONV_2D:7",
    "dequantize": "DEQUANTIZE:9",
    "dilate": "DILATE",
    "dynamic_update_slice": "DYNAMIC_UPDATE_SLICE:6",
    "elementwise.activations": (
        "RELU:3 RELU6:3 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU:2 ELU HARD_SWISH LOGISTIC:3 TANH:3"
    ),
    "elementwise.add_n": "ADD_N",
    "elementwise.binary": "ADD:6 SUB:5 MUL:8 DIV:2 POW ATAN2 Atan2 SQUARED_DIFFERENCE:2",
    "elementwise.bucketize": "BUCKETIZE",
    "elementwise.comparison": "EQUAL:5 NOT_EQUAL:4 LESS:3 LESS_EQUAL:2 GREATER:2 GREATER_EQUAL:3",
    "elementwise.complex_numbers": "COMPLEX_ABS REAL IMAG",
    "elementwise.floor_division": "FLOOR_DIV:3 FLOOR_MOD:2",
    "elementwise.gelu": "GELU:3",
    "elementwise.logical": "LOGICAL_AND LOGICAL_OR LOGICAL_NOT BITWISE_XOR RIGHT_SHIFT",
    "elementwise.maximum_minimum": "MAXIMUM:4 MINIMUM:4",
    "elementwise.prelu": "PRELU",
    "elementwise.select": "SELECT:4 SELECT_V2:2",
    "elementwise.unary": (
        "ABS:5 NEG EXP:2 LOG:2 SIN:2 COS:2 SQRT:2 RSQRT:3 SQUARE FLOOR CEIL ROUND SIGN:2 Sign"
    ),
    "fake_quant": "FAKE_QUANT:2",
    "fill": "FILL:5 ZEROS_LIKE",
    "fully_connected": "FULLY_CONNECTED:14",
    "gather": "GATHER:8 GATHER_ND:6",
    "l2_normalization": "L2_NORMALIZATION:2",
    "local_response_normalization": "LOCAL_RESPONSE_NORMALIZATION",
    "log_softmax": "LOG_SOFTMAX:2",
    "lookup.embedding_lookup": "EMBEDDING_LOOKUP:5 EMBEDDING_LOOKUP_SPARSE",
    "lookup.hashtable": "HASHTABLE HASHTABLE_IMPORT HASHTABLE_FIND HASHTABLE_SIZE",
    "lookup.hashtable_lookup": "HASHTABLE_LOOKUP",
    "lookup.lsh_projection": "LSH_PROJECTION",
    "lookup.skip_gram": "SKIP_GRAM",
    "matrix_diag": "MATRIX_DIAG MATRIX_SET_DIAG",
    "non_max_suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
    "one_hot": "ONE_HOT",
    "pack": "PACK:5 UNPACK:6",
    "pad": "PAD:6 PADV2:6 MIRROR_PAD:3",
    "pooling": "AVERAGE_POOL_2D:3 MAX_POOL_2D:3 L2_POOL_2D",
    "quantize": "QUANTIZE:6",
    "random": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL",
    "range": "RANGE:2",
    "recurrent.bidirectional_sequence_lstm": "BIDIRECTIONAL_SEQUENCE_LSTM:3",
    "recurrent.lstm": "LSTM:4",
    "recurrent.rnn": "RNN:3 UNIDIRECTIONAL_SEQUENCE_RNN:3 BIDIRECTIONAL_SEQUENCE_RNN:3",
    "recurrent.svdf": "SVDF:4",
    "recurrent.unidirectional_sequence_lstm": "UNIDIRECTIONAL_SEQUENCE_LSTM:4",
    "reduce_window": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
    "reductions": "SUM:2 MEAN:3 REDUCE_PROD:2 REDUCE_MAX:3 REDUCE_MIN:3 REDUCE_ANY REDUCE_ALL",
    "reshape": "RESHAPE SQUEEZE:2 EXPAND_DIMS BITCAST",
    "resize": "RESIZE_BILINEAR:4 RESIZE_NEAREST_NEIGHBOR:4",
    "reverse": "REVERSE_V2:4 REVERSE_SEQUENCE",
    "rfft2d": "RFFT2D IRFFT2D",
    "scatter": "SCATTER_ND",
    "segment_sum": "SEGMENT_SUM",
    "shape": "SHAPE RANK",
    "signal.delay": "SignalDelay",
    "signal.energy": "SignalEnergy",
    "signal.fft_auto_scale": "SignalFftAutoScale",
    "signal.filter_bank": "SignalFilterBank",
    "signal.filter_bank_log": "SignalFilterBankLog",
    "signal.filter_bank_spectral_subtraction": "SignalFilterBankSpectralSubtraction",
    "signal.filter_bank_square_root": "SignalFilterBankSquareRoot",
    "signal.framer": "SignalFramer",
    "signal.overlap_add": "SignalOverlapAdd",
    "signal.pcan": "SignalPCAN",
    "signal.rfft": "SignalRfft SignalIrfft",
    "signal.stacker": "SignalStacker",
    "signal.window": "SignalWindow",
    "slice": "SLICE:8",
    "softmax": "SOFTMAX:4",
    "space_batch": "SPACE_TO_BATCH_ND:4 BATCH_TO_SPACE_ND:4",
    "space_depth": "SPACE_TO_DEPTH:2 DEPTH_TO_SPACE:2",
    "sparse_to_dense": "SPARSE_TO_DENSE:3",
    "split": "SPLIT:5 SPLIT_V:3",
    "stablehlo.composite": "STABLEHLO_COMPOSITE",
    "stablehlo.convolution": "STABLEHLO_CONVOLUTION",
    "stablehlo.data_movement": (
        "STABLEHLO_RESHAPE STABLEHLO_TRANSPOSE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_IOTA "
        "STABLEHLO_CONCATENATE STABLEHLO_SLICE STABLEHLO_DYNAMIC_SLICE "
        "STABLEHLO_DYNAMIC_UPDATE_SLICE"
    ),
    "stablehlo.dot_general": "STABLEHLO_DOT_GENERAL",
    "stablehlo.elementwise": (
        "STABLEHLO_ADD STABLEHLO_AND STABLEHLO_DIVIDE STABLEHLO_MAXIMUM STABLEHLO_MINIMUM "
        "STABLEHLO_MULTIPLY STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_SUBTRACT "
        "STABLEHLO_CBRT STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG "
        "STABLEHLO_LOGISTIC STABLEHLO_NEGATE STABLEHLO_RSQRT STABLEHLO_TANH STABLEHLO_ABS "
        "STABLEHLO_COMPARE STABLEHLO_SELECT STABLEHLO_CLAMP STABLEHLO_CONVERT"
    ),
    "stablehlo.gather": "STABLEHLO_GATHER",
    "stablehlo.pad": "STABLEHLO_PAD",
    "stablehlo.reduce": "STABLEHLO_REDUCE",
    "stablehlo.rng_bit_generator": "STABLEHLO_RNG_BIT_GENERATOR",
    "stablehlo.scatter": "STABLEHLO_SCATTER",
    "stablehlo.shift_left": "STABLEHLO_SHIFT_LEFT",
    "stablehlo.sort": "STABLEHLO_SORT",
    "strided_slice": "STRIDED_SLICE:8",
    "tile": "TILE:3",
    "topk": "TOPK_V2:3",
    "transpose": "TRANSPOSE:9",
    "transpose_conv": "TRANSPOSE_CONV:5",
    "unique": "UNIQUE",
    "unsorted_segment": (
        "UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN"
    ),
    "variables": "VAR_HANDLE ASSIGN_VARIABLE READ_VARIABLE",
    "where": "WHERE:2",
}
"""Mapping from a module under ``delegraph.kernels`` to the operators that it registers.

``:8`` after an operator means that versions 1 to 8 are implemented, ``:2-4`` versions 2 to 4, and
no suffix version 1. The versions are those in ``register.cc`` of TFLite.
"""

OP_TABLE.declare(__package__, KERNELS)
