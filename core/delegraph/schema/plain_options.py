"""Options tables without fields, which only mark the operator that they belong to.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from delegraph.schema.table import Table


class PadOptions(Table):
    """Options of ``PAD``."""


class BatchToSpaceNDOptions(Table):
    """Options of ``BATCH_TO_SPACE_ND``."""


class SpaceToBatchNDOptions(Table):
    """Options of ``SPACE_TO_BATCH_ND``."""


class TransposeOptions(Table):
    """Options of ``TRANSPOSE``."""


class ExpOptions(Table):
    """Options of ``EXP``."""


class TopKV2Options(Table):
    """Options of ``TOPK_V2``."""


class LogSoftmaxOptions(Table):
    """Options of ``LOG_SOFTMAX``."""


class DequantizeOptions(Table):
    """Options of ``DEQUANTIZE``."""


class MaximumMinimumOptions(Table):
    """Options of ``MAXIMUM`` and ``MINIMUM``."""


class LessOptions(Table):
    """Options of ``LESS``."""


class NegOptions(Table):
    """Options of ``NEG``."""


class PadV2Options(Table):
    """Options of ``PADV2``."""


class GreaterOptions(Table):
    """Options of ``GREATER``."""


class GreaterEqualOptions(Table):
    """Options of ``GREATER_EQUAL``."""


class LessEqualOptions(Table):
    """Options of ``LESS_EQUAL``."""


class SelectOptions(Table):
    """Options of ``SELECT``."""


class SliceOptions(Table):
    """Options of ``SLICE``."""


class TileOptions(Table):
    """Options of ``TILE``."""


class ExpandDimsOptions(Table):
    """Options of ``EXPAND_DIMS``."""


class EqualOptions(Table):
    """Options of ``EQUAL``."""


class NotEqualOptions(Table):
    """Options of ``NOT_EQUAL``."""


class PowOptions(Table):
    """Options of ``POW``."""


class LogicalOrOptions(Table):
    """Options of ``LOGICAL_OR``."""


class LogicalAndOptions(Table):
    """Options of ``LOGICAL_AND``."""


class LogicalNotOptions(Table):
    """Options of ``LOGICAL_NOT``."""


class FloorDivOptions(Table):
    """Options of ``FLOOR_DIV``."""


class SquareOptions(Table):
    """Options of ``SQUARE``."""


class ZerosLikeOptions(Table):
    """Options of ``ZEROS_LIKE``."""


class FillOptions(Table):
    """Options of ``FILL``."""


class FloorModOptions(Table):
    """Options of ``FLOOR_MOD``."""


class RangeOptions(Table):
    """Options of ``RANGE``."""


class SquaredDifferenceOptions(Table):
    """Options of ``SQUARED_DIFFERENCE``."""


class AbsOptions(Table):
    """Options of ``ABS``."""


class ReverseV2Options(Table):
    """Options of ``REVERSE_V2``."""


class AddNOptions(Table):
    """Options of ``ADD_N``."""


class GatherNdOptions(Table):
    """Options of ``GATHER_ND``."""


class CosOptions(Table):
    """Options of ``COS``."""


class WhereOptions(Table):
    """Options of ``WHERE``."""


class RankOptions(Table):
    """Options of ``RANK``."""


class MatrixDiagOptions(Table):
    """Options of ``MATRIX_DIAG``."""


class QuantizeOptions(Table):
    """Options of ``QUANTIZE``."""


class MatrixSetDiagOptions(Table):
    """Options of ``MATRIX_SET_DIAG``."""


class HardSwishOptions(Table):
    """Options of ``HARD_SWISH``."""


class NonMaxSuppressionV4Options(Table):
    """Options of ``NON_MAX_SUPPRESSION_V4``."""


class NonMaxSuppressionV5Options(Table):
    """Options of ``NON_MAX_SUPPRESSION_V5``."""


class ScatterNdOptions(Table):
    """Options of ``SCATTER_ND``."""


class SelectV2Options(Table):
    """Options of ``SELECT_V2``."""


class DensifyOptions(Table):
    """Options of ``DENSIFY``."""


class SegmentSumOptions(Table):
    """Options of ``SEGMENT_SUM``."""


class BroadcastToOptions(Table):
    """Options of ``BROADCAST_TO``."""


class Rfft2dOptions(Table):
    """Options of ``RFFT2D``."""


class HashtableFindOptions(Table):
    """Options of ``HASHTABLE_FIND``."""


class HashtableImportOptions(Table):
    """Options of ``HASHTABLE_IMPORT``."""


class HashtableSizeOptions(Table):
    """Options of ``HASHTABLE_SIZE``."""


class ReadVariableOptions(Table):
    """Options of ``READ_VARIABLE``."""


class AssignVariableOptions(Table):
    """Options of ``ASSIGN_VARIABLE``."""


class DynamicUpdateSliceOptions(Table):
    """Options of ``DYNAMIC_UPDATE_SLICE``."""


class UnsortedSegmentProdOptions(Table):
    """Options of ``UNSORTED_SEGMENT_PROD``."""


class UnsortedSegmentMaxOptions(Table):
    """Options of ``UNSORTED_SEGMENT_MAX``."""


class UnsortedSegmentMinOptions(Table):
    """Options of ``UNSORTED_SEGMENT_MIN``."""


class UnsortedSegmentSumOptions(Table):
    """Options of ``UNSORTED_SEGMENT_SUM``."""


class ATan2Options(Table):
    """Options of ``ATAN2``."""


class SignOptions(Table):
    """Options of ``SIGN``."""


class BitcastOptions(Table):
    """Options of ``BITCAST``."""


class BitwiseXorOptions(Table):
    """Options of ``BITWISE_XOR``."""


class RightShiftOptions(Table):
    """Options of ``RIGHT_SHIFT``."""


class DilateOptions(Table):
    """Options of ``DILATE``."""


class StablehloShiftLeftOptions(Table):
    """Options of ``STABLEHLO_SHIFT_LEFT``."""
